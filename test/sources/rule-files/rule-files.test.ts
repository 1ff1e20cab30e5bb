import { appendFileSync, utimesSync } from 'node:fs';
import { relative } from 'node:path';
import { MAX_FILE_BYTES } from '../../../src/rules/files/size-limits';
import { type RuleFileTiming, TIMING } from '../../../src/sources/rule-files/rule-file-source';
import { RecordedLog } from '../../support/data/recorded-log';
import {
  AT_ONCE,
  type Change,
  Files,
  MODES,
  QUICK,
  NEVER,
  type Scenario,
  type Step,
  WatchedRules,
  expectEvents,
  expectOneEvent,
  swap,
} from './watched-rules';

const RELEASES = 'for n in 1 2 3; do put releases/$n/config/a $n; done; ln -s releases/1 current';
const INVALID = `printf 'domain: a\\ndescriptor: []\\n'`;
const RULE = '{ key: k, rate_limit: { unit: day, requests_per_unit: 2 } }';

describe.each(MODES)('the rule file source, $mode, reads the rules again when', ({ watchRoot }) => {
  it.concurrent.each<Scenario>([
    {
      when: 'the link that leads to them is switched by `ln -sfn` or `mv -T`, and not when the old files change',
      given: RELEASES,
      root: 'current',
      steps: [
        ['ln -sfn releases/2 current', 'a=2'],
        ['ln -sfn $PWD/releases/1 current', 'a=1'],
        ['ln -s releases/3 next; mv -T next current', 'a=3'],
        ['put releases/2/config/a 77; rm -r releases/1'],
      ],
      edited: 'releases/3/config/a',
    },
    {
      when: 'any link on the path is switched, including one that another link leads through',
      given: `put disk/1/app/config/a 1; put disk/2/app/config/a 2; put disk/2/other/config/a 3
        mkdir mnt srv; ln -s 1 disk/now; ln -s ../disk/now/app mnt/rules; ln -s $PWD/mnt/rules srv/current`,
      root: 'srv/current',
      steps: [
        ['ln -sfn 2 disk/now', 'a=2'],
        ['ln -sfn ../disk/now/other mnt/rules', 'a=3'],
      ],
      edited: 'disk/2/other/config/a',
    },
    {
      when: 'invalid ones are switched to and back, with the ruleset from before',
      given: `${RELEASES}; ${INVALID} >releases/2/config/a.yaml`,
      root: 'current',
      steps: [
        ['ln -sfn releases/2 current', /^rejected: a\.yaml:2:1: config error, unknown key 'descriptor'/],
        ['ln -sfn releases/1 current', 'a=1 again'],
      ],
    },
    {
      when: 'their folder is created again at once, moved away and back, or replaced by another one',
      given: 'put root/config/a 1; put root/next/a 5; put other/config/a 6',
      root: 'root',
      steps: [
        // Its inode number may be the same.
        ...[2, 3, 4].map((limit): Step => [`rm -r root/config; put root/config/a ${limit}`, `a=${limit}`]),
        ['mv root/config aside', 'rejected: the rule folder ~/root/config does not exist'],
        ['mv aside root/config', 'a=4 again'],
        ['mv root/config root/old; mv root/next root/config', 'a=5'],
        ['mv root before; mv other root', 'a=6'],
        ['put before/config/a 66'],
      ],
      edited: 'root/config/a',
    },
    {
      when: 'two levels of folders are created that did not exist',
      given: '',
      root: 'root',
      first: 'rejected: the rule folder ~/root/config does not exist: there is nothing at ~/root',
      steps: [
        ['mkdir root', 'rejected: the rule folder ~/root/config does not exist'],
        ['mkdir root/config', 'no rules'],
        ['rmdir root/config', 'rejected: the rule folder ~/root/config does not exist'],
        ['put root/config/a 1', 'a=1'],
      ],
      edited: 'root/config/a',
    },
    {
      when: 'there was a file or a loop of links in the place of the folder',
      given: 'mkdir root; echo "not a folder" >root/config',
      root: 'root',
      first: 'rejected: the rule folder ~/root/config is not a folder',
      steps: [
        ['rm root/config; put root/config/a 1', 'a=1'],
        [
          'mv root/config valid; ln -s config root/config',
          /cannot be reached: its symbolic links form a loop \(ELOOP\)/,
        ],
        ['ln -sfn ../valid root/config', 'a=1 again'],
      ],
    },
    {
      when: 'the target of a link exists that was rejected by its name',
      given: 'put root/config/a 1; ln -s ../../elsewhere/b.yaml root/config',
      root: 'root',
      first: 'rejected: the rule file b.yaml cannot be read: it does not exist (ENOENT) at ~/root/config/b.yaml',
      steps: [['put elsewhere/b 1', 'a=1 b=1']],
    },
    {
      when: 'a ConfigMap mount is swapped, and when the link to an added file is created long after that',
      given: swap('root/config', { a: 1 }),
      root: 'root',
      steps: [
        [swap('root/config', { a: 2 }), 'a=2'],
        [swap('root/config', { a: 3, b: 3 }), 'a=3'],
        [''],
        ['ln -s ..data/b.yaml root/config', 'a=3 b=3'],
        ['rm root/config/b.yaml', 'a=3'],
      ],
    },
  ])('$when', (scenario) => expectEvents(scenario, { watchRoot }));
});

describe('the rule file source, RUNTIME_WATCH_ROOT=false,', () => {
  it.concurrent.each<Scenario>([
    {
      when: 'reads the rules again when files are written, replaced, created, removed or renamed',
      steps: [
        ['put config/a 2', 'a=2'],
        ['echo "  - key: other" >>config/a.yaml', 'a=2'],
        ['sed -i "s/unit: 2/unit: 3/" config/a.yaml', 'a=3'],
        ['put a 4; mv a.yaml config', 'a=4'],
        ['put config/b 1', 'a=4 b=1'],
        ['rm config/a.yaml', 'b=1'],
        ['mv config/b.yaml config/b.txt', 'no rules'],
      ],
    },
    {
      when: 'reads the rules again when contents change while size and modification time stay the same',
      steps: [
        [''],
        // By now, the clock of the file system has advanced since the rule file was written.
        ['touch config/notes.txt'],
        ['touch -r config/a.yaml time; put config/a 2; touch -r time config/a.yaml', 'a=2'],
      ],
    },
    {
      when: 'reads the rules again when files in subfolders change, also in new, moved and removed ones',
      given: 'put config/a 1; put config/old/b 1',
      first: 'a=1 b=1',
      steps: [
        ['put config/old/b 2', 'a=1 b=2'],
        ['put config/new/deep/c 1', 'a=1 c=1 b=2'],
        ['put config/new/deep/c 2', 'a=1 c=2 b=2'],
        ['mv config/old config/older', 'a=1 c=2 b=2'],
        ['put config/older/b 3', 'a=1 c=2 b=3'],
        ['rm -r config/new', 'a=1 b=3'],
      ],
    },
    {
      when: 'reads the rules again when a file elsewhere, to which a link leads, is written, replaced or switched',
      given: `put config/a 1; put elsewhere/1/b 1; put elsewhere/2/b 5
        ln -s 1 elsewhere/now; ln -s ../elsewhere/now/b.yaml config`,
      first: 'a=1 b=1',
      steps: [
        ['put elsewhere/1/b 2', 'a=1 b=2'],
        ['put b 4; mv b.yaml elsewhere/1', 'a=1 b=4'],
        ['ln -sfn 2 elsewhere/now', 'a=1 b=5'],
        ['put elsewhere/2/b 6', 'a=1 b=6'],
      ],
    },
    {
      when: 'reads the rules again when a file of a ConfigMap mount is edited by hand',
      given: swap('config', { a: 1 }),
      steps: [['put config/..data/a 2', 'a=2']],
    },
    {
      when: 'repeats an event once per change that leaves the contents as they are, and not per scan',
      steps: [
        ['chmod 600 config/a.yaml', 'a=1 repeated'],
        ['put config/a 1', 'a=1 repeated'],
        [`${INVALID} >config/a.yaml`, /^rejected: a\.yaml:2:1: config error, unknown key 'descriptor'.*[^d]$/s],
        [''],
        ['chmod 640 config/a.yaml', /^rejected: a\.yaml:2:1: .* repeated$/s],
        [
          'echo "domain: \'\'" >config/a.yaml',
          /^rejected: a\.yaml:1:\d+: config file cannot have empty domain.*[^d]$/s,
        ],
        ['put config/a 1', 'a=1 again'],
        ['put config/a 2', 'a=2'],
      ],
    },
    {
      when: 'emits a state that may be intermediate when it stays the same',
      steps: [
        ['truncate -s 0 config/a.yaml', /^rejected: a\.yaml:1:1: config file cannot have empty domain/],
        ['echo "domain: a" >config/a.yaml', 'a=undefined'],
        ['rm config/a.yaml', 'no rules'],
      ],
    },
    {
      when: 'rejects files that are too large, alone or together, without reading them, until they are removed',
      steps: [
        [
          'truncate -s 1900MB config/huge.yaml',
          /^rejected: huge\.yaml:1:1: .*the file has 1900000000 bytes, more than/,
        ],
        ['rm config/huge.yaml', 'a=1 again'],
        [
          `truncate -s ${MAX_FILE_BYTES} config/b.yaml config/c.yaml config/d.yaml`,
          'rejected: the rule folder ~/config has rule files of more than 67108864 bytes in total',
        ],
        ['rm config/[b-d].yaml', 'a=1 again'],
      ],
    },
  ])('$when', (scenario) => expectEvents(scenario));

  it.concurrent('reads the rules again by polling when the file system gives no notification', () => {
    // A change through another hard link of the same file gives no event in the watched folder.
    const given = 'put config/a 1; ln config/a.yaml same.yaml; sed "s/unit: 1/unit: 2/" same.yaml >changed';
    const steps: Step[] = [
      ['cat changed >same.yaml', 'a=2'],
      ['put config/a 3', 'a=3'],
      ['chmod 600 same.yaml', 'a=3 repeated'],
    ];
    return expectEvents({ given, steps });
  });

  // Where nothing gives notice, such as on NFS, the first poll finds a change and the second one reads it.
  it('reads a change at the second poll, within 2 s', () => {
    expect(2 * TIMING.poll).toBeLessThan(2_000);
    expect(TIMING.hold).toBeLessThan(TIMING.poll);
    expect(TIMING.forced + TIMING.poll).toBeLessThanOrEqual(2_000);
  });

  it('logs a change that has not been loaded in time, once, and its end', async () => {
    using files = new Files();
    files.change('put config/a 1');
    const [log, timing] = [new RecordedLog(), { ...QUICK, hold: NEVER, forced: 1_000, late: 100 }];
    using watched = new WatchedRules({ root: files.base, timing, log });
    expect(await watched.next()).toBe('a=1');
    files.change('put config/a 2');
    await log.line(/^warn a change of the rule files has not been loaded for more than 5 s/);
    expect(await watched.next()).toBe('a=2');
    await log.line(/ the change of the rule files is loaded or rejected$/);
    expect(log.short.filter((line) => line.includes('a change of the rule files'))).toHaveLength(1);
  });

  describe('reads a change while another file', () => {
    /** Changes a file all the time, so that no two looks find the same, until a change of another file is read. */
    async function expectReadBesides(
      other: (files: Files, time: number) => void,
      timing: RuleFileTiming,
    ): Promise<void> {
      using files = new Files();
      files.change('put config/a 1; put config/b 1');
      using watched = new WatchedRules({ root: files.base, timing });
      expect(await watched.next()).toBe('a=1 b=1');
      let time = 0;
      const changing = setInterval(() => other(files, (time += 1)), 2);
      using _ = { [Symbol.dispose]: () => clearInterval(changing) };
      // Changes that leave the contents the same are loads that change nothing.
      expect(await watched.next()).toMatch(/^a=1 b=1/);
      files.change('put config/a 2');
      let event: string;
      do event = await watched.next();
      while (event.startsWith('a=1 b=1'));
      expect(event).toBe('a=2 b=1');
    }

    it('is touched all the time', () =>
      expectReadBesides((files, time) => utimesSync(files.at('config/b.yaml'), time, time), QUICK));

    it('becomes longer all the time', () =>
      expectReadBesides((files) => appendFileSync(files.at('config/b.yaml'), '#'), {
        ...QUICK,
        hold: NEVER,
        forced: 100,
      }));
  });

  it.concurrent.each<[what: string, parts: readonly string[], after: string]>([
    ['a file that is empty for a moment', ['truncate -s 0 config/a.yaml', 'put config/a 2'], 'a=2 b=1'],
    [
      'a file that is removed and written again in parts, of which the first is a valid rule file',
      ['rm config/a.yaml; echo "domain: a" >config/a.yaml', `echo "descriptors: [${RULE}]" >>config/a.yaml`],
      'a=2 b=1',
    ],
    [
      'files that are removed before the new ones are written',
      ['rm config/a.yaml', 'rm config/b.yaml', 'put config/a 2', 'put config/b 2'],
      'a=2 b=2',
    ],
  ])('ignores the intermediate state of %s', (_, parts, after) => expectOneEvent(parts, after, {}));
});

describe('the rule file source, RUNTIME_WATCH_ROOT=true,', () => {
  it.concurrent('ignores changes in place until something is switched', () => {
    const steps: Step[] = [
      ['put releases/1/config/a 11'],
      ['put a 12; mv a.yaml releases/1/config; chmod 600 releases/1/config/a.yaml'],
      ['put releases/1/config/deep/c 1; echo invalid >releases/1/config/d.yaml'],
      ['ln -sfn releases/2 current', 'a=2'],
    ];
    return expectEvents({ given: RELEASES, root: 'current', steps }, { watchRoot: true });
  });

  it.concurrent('says with a rejection when the rules are read again', () => {
    const first = /read again when a link or folder on the path to them is switched/;
    return expectEvents({ given: `mkdir config; ${INVALID} >config/a.yaml`, first, steps: [] }, { watchRoot: true });
  });
});

describe('the rule file source reads the rules after the first look that finds', () => {
  it.concurrent.each<[what: string, change: Change, after: string]>([
    ['the link of a ConfigMap mount switched', swap('config/mount', { b: 2 }), 'a=1 b=2'],
    ['the link that leads to the folder switched', 'ln -sfn next root', 'a=2 b=2'],
  ])('%s', async (_, change, after) => {
    using files = new Files();
    files.change('put config/a 1; put next/a 2; put next/mount/b 2; ln -s config root');
    files.change(swap('config/mount', { b: 1 }));
    using watched = new WatchedRules({ root: files.at('root'), appDirectory: '', timing: AT_ONCE });
    expect(await watched.next()).toBe('a=1 b=1');
    files.change('put config/a 7');
    await watched.glance();
    files.change('put config/a 1');
    files.change(change);
    expect(await watched.next()).toBe(after);
  });
});

describe('the rule file source', () => {
  it.concurrent(
    'reads the .yaml and .yml files of a folder and its subfolders by name, and warns about others',
    async () => {
      using files = new Files();
      const read = ['.c.yaml', '.git/d.yaml', 'a.yaml', 'a/deep/er.yml', 'b.yml', 'lost+found.d/e.yaml', 'z/a.yaml'];
      // Only root can read the folder `lost+found` of a volume; the kubelet owns names that begin with two dots.
      const skipped = ['lost+found/x.yaml', 'z/lost+found/x.txt', '..2026/x.yaml', '..x.yaml', '...yaml'];
      for (const path of [...read, ...skipped]) files.write(`config/${path}`, `domain: ${path}`);
      // Reading a pipe or a device could block for ever.
      files.change(`cd config; touch notes.txt z/a.YAML yaml; mkdir ../outside; echo "domain: zz" >../outside/zz.yaml
      ln -s ../outside/zz.yaml zz.yaml; ln -s ../outside/zz.yaml zz.txt; ln -s ../outside folder; ln -s . loop
      mkfifo pipe.yaml; ln -s pipe.yaml piped.yaml; ln -s /dev/zero zero.yaml`);
      using all = new WatchedRules({ root: files.base });
      const expected = [...read, 'zz'].map((domain) => `${domain}=undefined`);
      expect((await all.next()).split(' ')).toEqual(expected);
      expect(all.warnings.slice(0, 2)).toEqual([
        `only *.yaml and *.yml are read in ${files.at('config')}, not notes.txt, yaml, z/a.YAML, zz.txt`,
        `links to folders are not followed in ${files.at('config')}: folder, loop`,
      ]);
      using visible = new WatchedRules({ root: files.base, ignoreDotFiles: true });
      expect((await visible.next()).split(' ')).toEqual(expected.slice(2));
    },
  );

  it.concurrent.each([
    ['slashes around them', '/sub//', '//config/'],
    ['the folder above', 'other', '../sub/config'],
  ])(
    'joins the directories of its settings below a root, also a relative one: %s',
    async (_, subdirectory, appDirectory) => {
      using files = new Files();
      files.change('put root/sub/config/b 1');
      using below = new WatchedRules({ root: relative('', files.at('root')), subdirectory, appDirectory });
      expect(await below.next()).toBe('b=1');
    },
  );

  it.concurrent('warns of a folder without rule files, and of many other files by the first ten names', async () => {
    using files = new Files();
    files.change('mkdir config; touch $(seq -f config/%g.txt 10 39)');
    using watched = new WatchedRules({ root: files.base });
    expect(await watched.next()).toBe('no rules');
    expect(watched.warnings).toEqual([
      `the rule folder ${files.at('config')} has no rule files (*.yaml, *.yml): nothing is limited`,
      expect.stringMatching(/not 10\.txt, .* 19\.txt and 20 more$/),
    ]);
  });

  it.concurrent('rejects rules with at most 50 errors, and the number of the others', async () => {
    using files = new Files();
    const rule = '  - key: k\n    rate_limit: { unit: moment, requests_per_unit: 1 }\n';
    files.write('config/a.yaml', `domain: a\ndescriptors:\n${rule.repeat(60)}`);
    using watched = new WatchedRules({ root: files.base });
    const lines = (await watched.next()).split('\n');
    expect(lines).toHaveLength(51);
    expect(lines.at(-1)).toMatch(/^and \d+ more errors: weir-check shows them all$/);
  });
});
