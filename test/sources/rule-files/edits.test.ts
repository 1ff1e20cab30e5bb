import { appendFileSync, chmodSync, linkSync, statSync, truncateSync, utimesSync } from 'node:fs';
import { appendFile, open, writeFile } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { ConfigMapMount, RuleTree, rules } from './rule-tree';
import { HINTS_ALONE, LONG_HOLD, WatchedRules } from './watched-rules';

/** For bursts: so long a quiet that even a slow machine makes one burst of it. */
const PATIENT = { ...HINTS_ALONE, settle: { quiet: 300, maxWait: 10_000 } };

describe('rule files that change in place', () => {
  let tree: RuleTree;
  let watched: WatchedRules | undefined;

  beforeEach(() => {
    tree = new RuleTree();
    tree.write('config/a.yaml', rules('a', 1));
  });
  afterEach(() => {
    watched?.[Symbol.dispose]();
    watched = undefined;
    tree[Symbol.dispose]();
  });

  async function watch(first = 'a=1', timing = HINTS_ALONE) {
    watched = new WatchedRules({ root: tree.base, timing });
    expect(await watched.next()).toEqual(first);
    return watched;
  }

  it('are read again when one is written in place', async () => {
    const { next, quietly } = bound(await watch());
    tree.write('config/a.yaml', rules('a', 2));
    expect(await next()).toBe('a=2');
    tree.write('config/a.yaml', rules('a', 3));
    expect(await next()).toBe('a=3');
    expect(await quietly()).toEqual([]);
  });

  it('are read again when one is appended to', async () => {
    const { next } = bound(await watch());
    appendFileSync(tree.at('config/a.yaml'), '  - key: other\n');
    expect(await next()).toBe('a=1');
  });

  it('are read again when one is created, removed, or renamed', async () => {
    const { next, quietly } = bound(await watch());
    tree.write('config/b.yaml', rules('b', 1));
    expect(await next()).toBe('a=1 b=1');
    tree.remove('config/a.yaml');
    expect(await next()).toBe('b=1');
    tree.move('config/b.yaml', 'config/b.txt');
    expect(await next()).toBe('no rules');
    tree.move('config/b.txt', 'config/b.yaml');
    expect(await next()).toBe('b=1');
    expect(await quietly()).toEqual([]);
  });

  it('are read again each time one is replaced by another, as `sed -i` does', async () => {
    const { next, quietly } = bound(await watch());
    for (const limit of [2, 3, 4]) {
      execFileSync('sed', ['-i', `s/requests_per_unit: [0-9]*/requests_per_unit: ${limit}/`, tree.at('config/a.yaml')]);
      expect(await next()).toBe(`a=${limit}`);
    }
    tree.replace('config/a.yaml', rules('a', 5));
    expect(await next()).toBe('a=5');
    expect(await quietly()).toEqual([]);
  });

  it('are read again when contents change and size and time of modification are put back', async () => {
    const { atime, mtime } = statSync(tree.at('config/a.yaml'));
    const { next } = bound(await watch());
    tree.write('config/a.yaml', rules('a', 2));
    utimesSync(tree.at('config/a.yaml'), atime, mtime);
    expect(await next()).toBe('a=2');
  });

  it('are not told again when nothing but their times or permissions change, or when they are written as they were', async () => {
    const { quietly } = bound(await watch());
    chmodSync(tree.at('config/a.yaml'), 0o600);
    utimesSync(tree.at('config/a.yaml'), 1, 1);
    expect(await quietly()).toEqual([]);
    tree.write('config/a.yaml', rules('a', 1));
    tree.replace('config/a.yaml', rules('a', 1));
    expect(await quietly()).toEqual([]);
    tree.write('config/notes.txt', 'not a rule');
    tree.folder('config/empty');
    expect(await quietly()).toEqual([]);
  });

  it('are told once when 200 are created', async () => {
    const { next, quietly } = bound(await watch('a=1', PATIENT));
    await Promise.all(
      Array.from({ length: 200 }, (_, i) => writeFile(tree.at(`config/f${i}.yaml`), rules(`d${i}`, i))),
    );
    expect((await next()).split(' ')).toHaveLength(201);
    expect(await quietly()).toEqual([]);
  });

  it('are told once when one is written 100 times in a row', async () => {
    const { next, quietly } = bound(await watch('a=1', PATIENT));
    for (let i = 1; i <= 100; i += 1) await writeFile(tree.at('config/a.yaml'), rules('a', i));
    expect(await next()).toBe('a=100');
    expect(await quietly()).toEqual([]);
  });

  it('are read again while a burst goes on for longer than the longest that is waited', async () => {
    const { next } = bound(await watch('a=1', { ...HINTS_ALONE, settle: { quiet: 5000, maxWait: 200 } }));
    const writing = new AbortController();
    const writer = (async () => {
      for (let i = 2; !writing.signal.aborted; i += 1) {
        tree.replace('config/a.yaml', rules('a', i));
        await wait(5);
      }
    })();
    expect(await next()).toMatch(/^a=\d+$/);
    expect(await next()).toMatch(/^a=\d+$/);
    writing.abort();
    await writer;
  });

  it('are read again when one in a subfolder changes, in a new subfolder too', async () => {
    tree.write('config/old/b.yaml', rules('b', 1));
    const { next, quietly } = bound(await watch('a=1 b=1'));
    tree.write('config/old/b.yaml', rules('b', 2));
    expect(await next()).toBe('a=1 b=2');
    tree.write('config/new/deep/c.yaml', rules('c', 1));
    expect(await next()).toBe('a=1 c=1 b=2');
    tree.write('config/new/deep/c.yaml', rules('c', 2));
    expect(await next()).toBe('a=1 c=2 b=2');
    tree.write('config/new/d.yaml', rules('d', 1));
    expect(await next()).toBe('a=1 d=1 c=2 b=2');
    tree.move('config/old', 'config/older');
    expect(await next()).toBe('a=1 d=1 c=2 b=2');
    tree.write('config/older/b.yaml', rules('b', 3));
    expect(await next()).toBe('a=1 d=1 c=2 b=3');
    tree.remove('config/new');
    expect(await next()).toBe('a=1 b=3');
    expect(await quietly()).toEqual([]);
  });

  it('are read again when the target of a link to a file elsewhere is written, replaced, or switched on the way', async () => {
    tree.write('elsewhere/1/b.yaml', rules('b', 1));
    tree.write('elsewhere/2/b.yaml', rules('b', 5));
    tree.link('elsewhere/now', '1');
    tree.link('config/b.yaml', '../elsewhere/now/b.yaml');
    const { next, quietly } = bound(await watch('a=1 b=1'));
    tree.write('elsewhere/1/b.yaml', rules('b', 2));
    expect(await next()).toBe('a=1 b=2');
    tree.replace('elsewhere/1/b.yaml', rules('b', 3));
    expect(await next()).toBe('a=1 b=3');
    tree.replace('elsewhere/1/b.yaml', rules('b', 4));
    expect(await next()).toBe('a=1 b=4');
    tree.switchLink('elsewhere/now', '2');
    expect(await next()).toBe('a=1 b=5');
    tree.write('elsewhere/2/b.yaml', rules('b', 6));
    expect(await next()).toBe('a=1 b=6');
    expect(await quietly()).toEqual([]);
  });

  it('are rejected when a link leads nowhere, by name, and read when it leads somewhere again', async () => {
    tree.link('config/b.yaml', '../elsewhere/b.yaml');
    const { next } = bound(
      await watch(
        `rejected: the rule file b.yaml cannot be read: it does not exist (ENOENT) at ${tree.at('config/b.yaml')}`,
      ),
    );
    tree.write('elsewhere/b.yaml', rules('b', 1));
    expect(await next()).toBe('a=1 b=1');
  });

  it('are good when there are none, with a warning', async () => {
    tree.remove('config/a.yaml');
    const { next, events } = bound(await watch('no rules'));
    expect(events[0]).toHaveProperty('warnings', [
      `the rule folder ${tree.at('config')} has no rule files (*.yaml, *.yml): nothing is limited`,
    ]);
    tree.write('config/a.yaml', rules('a', 1));
    expect(await next()).toBe('a=1');
  });

  it('are told with one warning for all other files, one for all links to folders, and those of the rules', async () => {
    tree.write('config/a.txt', '');
    tree.write('config/sub/b.json', '');
    tree.write('config/c.yaml', 'domain: c\ndescriptors:\n  - key: "*"\n');
    tree.link('config/linked', '..');
    const { events } = bound(await watch('a=1 c=undefined'));
    expect(events[0]).toHaveProperty('warnings', [
      `only *.yaml and *.yml are read in ${tree.at('config')}, not a.txt, sub/b.json`,
      `links to folders are not followed in ${tree.at('config')}: linked`,
      expect.stringContaining('c.yaml:3:10: '),
    ]);
  });

  it('are told to hold many other files with the first names and a number', async () => {
    for (let i = 10; i < 40; i += 1) tree.write(`config/${i}.txt`, '');
    const { events } = bound(await watch());
    expect(events[0]).toHaveProperty('warnings', [expect.stringMatching(/not 10\.txt, .* 19\.txt and 20 more$/)]);
  });

  it('whose name begins with a dot count or not, as is asked', async () => {
    tree.write('config/.b.yaml', rules('b', 1));
    const both = bound(await watch('b=1 a=1'));
    tree.write('config/.b.yaml', rules('b', 2));
    expect(await both.next()).toBe('b=2 a=1');
    using ignoring = new WatchedRules({ root: tree.base, ignoreDotFiles: true });
    expect(await ignoring.next()).toBe('a=1');
    tree.write('config/.b.yaml', rules('b', 3));
    expect(await both.next()).toBe('b=3 a=1');
    expect(await ignoring.quietly()).toEqual([]);
  });

  it('may describe one domain together when that is asked for', async () => {
    tree.write('config/b.yaml', 'domain: a\ndescriptors:\n  - key: other\n');
    await watch(expect.stringMatching(/^rejected: b\.yaml:1:\d+: duplicate domain 'a' in config file/));
    using merging = new WatchedRules({ root: tree.base, mergeDomainConfigs: true });
    expect(await merging.next()).toBe('a=1');
  });

  it('in a ConfigMap mount are read again at a swap, and when someone edits the dated folder by hand', async () => {
    tree.remove('config');
    const mount = new ConfigMapMount(tree, 'config');
    mount.publish({ 'a.yaml': rules('a', 1) });
    const { next, quietly } = bound(await watch());
    mount.publish({ 'a.yaml': rules('a', 2) });
    expect(await next()).toBe('a=2');
    tree.write('config/..data/a.yaml', rules('a', 3));
    expect(await next()).toBe('a=3');
    expect(await quietly()).toEqual([]);
  });

  it('in a ConfigMap mount come once although dot files count', async () => {
    tree.remove('config');
    new ConfigMapMount(tree, 'config').publish({ 'a.yaml': rules('a', 1) });
    using all = new WatchedRules({ root: tree.base, ignoreDotFiles: false });
    expect(await all.next()).toBe('a=1');
  });

  describe('and are bad', () => {
    it('are told once for each way of being bad, not once a look', async () => {
      const { next, quietly } = bound(await watch());
      tree.write('config/a.yaml', 'domain: a\ndescriptor: []\n');
      expect(await next()).toMatch(/^rejected: a\.yaml:2:1: config error, unknown key 'descriptor'/);
      chmodSync(tree.at('config/a.yaml'), 0o600);
      expect(await quietly()).toEqual([]);
      tree.write('config/a.yaml', 'domain: ""\n');
      expect(await next()).toMatch(/^rejected: a\.yaml:1:\d+: config file cannot have empty domain/);
      expect(await quietly()).toEqual([]);
    });

    it('are told when they are good again, the same as before too', async () => {
      const { next, nextEvent, rulesets } = bound(await watch());
      tree.write('config/a.yaml', '{');
      expect(await next()).toMatch(/^rejected: a\.yaml:1:/);
      tree.write('config/a.yaml', rules('a', 1));
      expect(await nextEvent()).toHaveProperty('ruleset', rulesets()[0]);
      tree.write('config/a.yaml', '{');
      expect(await next()).toMatch(/^rejected: /);
      tree.write('config/a.yaml', rules('a', 2));
      expect(await next()).toBe('a=2');
    });

    it('are rejected with every error, but no log is flooded', async () => {
      const rule = '  - key: k\n    rate_limit: { unit: moment, requests_per_unit: 1 }\n';
      tree.write('config/a.yaml', `domain: a\ndescriptors:\n${rule.repeat(60)}`);
      using flooded = new WatchedRules({ root: tree.base });
      const lines = (await flooded.next()).split('\n');
      expect(lines).toHaveLength(51);
      expect(lines.at(-1)).toMatch(/^and \d+ more errors: weir-check shows them all$/);
    });
  });

  describe('while somebody is still at work', () => {
    it('do not count when a file is empty for a moment', async () => {
      const { next, quietly } = bound(await watch('a=1', LONG_HOLD));
      truncateSync(tree.at('config/a.yaml'));
      await wait(250);
      tree.write('config/a.yaml', rules('a', 2));
      expect(await next()).toBe('a=2');
      expect(await quietly()).toEqual([]);
    });

    it('do not count when a file is written in parts, each of which can be read as rules', async () => {
      const { next, quietly } = bound(await watch('a=1', LONG_HOLD));
      const text = 'domain: a\ndescriptors:\n  - key: one\n  - key: two\n  - key: three\n  - key: four\n';
      const file = await open(tree.at('config/a.yaml'), 'w');
      for (const part of text.match(/[^]{1,27}/g) ?? []) {
        await file.write(part);
        await wait(60);
      }
      await file.close();
      expect(await next()).toBe('a=undefined');
      expect(watched?.events.at(-1)).toHaveProperty('kind', 'loaded');
      expect(await quietly()).toEqual([]);
    });

    it('do not count when a file is new and the rest of it is still to come', async () => {
      const { next, quietly } = bound(await watch('a=1', LONG_HOLD));
      const [domain = '', ...descriptors] = rules('b', 1).split('\n');
      tree.write('config/b.yaml', `${domain}\n`);
      await wait(200);
      await appendFile(tree.at('config/b.yaml'), descriptors.join('\n'));
      expect(await next()).toBe('a=1 b=1');
      expect(await quietly()).toEqual([]);
    });

    it('do not count when files are removed and others put in their place', async () => {
      tree.write('config/b.yaml', rules('b', 1));
      const { next, quietly } = bound(await watch('a=1 b=1', LONG_HOLD));
      tree.remove('config/a.yaml');
      tree.remove('config/b.yaml');
      await wait(200);
      tree.write('config/a.yaml', rules('a', 2));
      tree.write('config/b.yaml', rules('b', 2));
      expect(await next()).toBe('a=2 b=2');
      expect(await quietly()).toEqual([]);
    });

    it('do not count as rejected when what is half written cannot be read as rules', async () => {
      const { next, quietly } = bound(await watch('a=1', LONG_HOLD));
      tree.write('config/a.yaml', 'domain: a\ndescriptors: [');
      await wait(200);
      tree.write('config/a.yaml', rules('a', 2));
      expect(await next()).toBe('a=2');
      expect(await quietly()).toEqual([]);
    });

    it('count in the end when they stay so', async () => {
      tree.write('config/b.yaml', rules('b', 1));
      const { next, quietly } = bound(await watch('a=1 b=1'));
      truncateSync(tree.at('config/a.yaml'));
      expect(await next()).toBe('b=1');
      tree.write('config/b.yaml', 'domain: b');
      expect(await next()).toBe('b=undefined');
      expect(await quietly()).toEqual([]);
    });
  });

  it('are told by a look without a hint when the file system told nothing', async () => {
    // A change through another name of the same file gives no event in the folder that is watched.
    linkSync(tree.at('config/a.yaml'), tree.at('same.yaml'));
    const { next } = bound(await watch('a=1', { ...HINTS_ALONE, pollInterval: 100 }));
    tree.write('same.yaml', rules('a', 2));
    expect(await next()).toBe('a=2');
    tree.write('config/a.yaml', rules('a', 3));
    expect(await next()).toBe('a=3');
  });

  it('are read through a relative root', async () => {
    const before = process.cwd();
    process.chdir(tree.base);
    try {
      using here = new WatchedRules({ root: '.', subdirectory: 'config', appDirectory: '' });
      expect(await here.next()).toBe('a=1');
    } finally {
      process.chdir(before);
    }
  });

  it('are told to each subscriber from the start', async () => {
    const one = bound(await watch());
    using two = new WatchedRules({ root: tree.base });
    expect(await two.next()).toBe('a=1');
    tree.write('config/a.yaml', rules('a', 2));
    expect(await one.next()).toBe('a=2');
    expect(await two.next()).toBe('a=2');
  });
});

/** The members of a subscription that tests call by their bare names. */
function bound(watched: WatchedRules) {
  return {
    next: () => watched.next(),
    nextEvent: () => watched.nextEvent(),
    quietly: () => watched.quietly(),
    events: watched.events,
    rulesets: () => watched.rulesets,
  };
}
