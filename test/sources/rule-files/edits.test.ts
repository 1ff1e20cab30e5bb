import { execFileSync } from 'node:child_process';
import { appendFileSync, chmodSync, linkSync, statSync, utimesSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { type RuleTreeFixture, useRuleTree } from './fixtures';
import { ConfigMapMount, rules } from '../../support/data/rule-tree';
import { HINTS_ONLY, WatchedRules } from './watched-rules';

/** For bursts: the quiet time is so long that a burst stays one even on a slow machine. */
const LONG_QUIET = { ...HINTS_ONLY, settle: { quiet: 300, maxWait: 10_000 } };

let tree: RuleTreeFixture['tree'];
let watch: RuleTreeFixture['watch'];
useRuleTree((fixture) => ({ tree, watch } = fixture));

describe('the rule file source, when files change in place,', () => {
  it('reads the rules again when a file is written in place', async () => {
    const watched = await watch();
    tree.write('config/a.yaml', rules('a', 2));
    expect(await watched.next()).toBe('a=2');
    tree.write('config/a.yaml', rules('a', 3));
    expect(await watched.next()).toBe('a=3');
    expect(await watched.rest()).toEqual([]);
  });

  it('reads the rules again when a file is appended to', async () => {
    const watched = await watch();
    appendFileSync(tree.at('config/a.yaml'), '  - key: other\n');
    expect(await watched.next()).toBe('a=1');
  });

  it('reads the rules again when a file is created, removed, or renamed', async () => {
    const watched = await watch();
    tree.write('config/b.yaml', rules('b', 1));
    expect(await watched.next()).toBe('a=1 b=1');
    tree.remove('config/a.yaml');
    expect(await watched.next()).toBe('b=1');
    tree.move('config/b.yaml', 'config/b.txt');
    expect(await watched.next()).toBe('no rules');
    tree.move('config/b.txt', 'config/b.yaml');
    expect(await watched.next()).toBe('b=1');
    expect(await watched.rest()).toEqual([]);
  });

  it('reads the rules again each time a file is replaced by another one, as `sed -i` does', async () => {
    const watched = await watch();
    for (const limit of [2, 3, 4]) {
      execFileSync('sed', ['-i', `s/requests_per_unit: [0-9]*/requests_per_unit: ${limit}/`, tree.at('config/a.yaml')]);
      expect(await watched.next()).toBe(`a=${limit}`);
    }
    tree.replace('config/a.yaml', rules('a', 5));
    expect(await watched.next()).toBe('a=5');
    expect(await watched.rest()).toEqual([]);
  });

  it('reads the rules again when contents change while size and modification time are restored', async () => {
    const { atime, mtime } = statSync(tree.at('config/a.yaml'));
    const watched = await watch();
    tree.write('config/a.yaml', rules('a', 2));
    utimesSync(tree.at('config/a.yaml'), atime, mtime);
    expect(await watched.next()).toBe('a=2');
  });

  it('reads the rules again when a file in a subfolder changes, including a new subfolder', async () => {
    tree.write('config/old/b.yaml', rules('b', 1));
    const watched = await watch('a=1 b=1');
    tree.write('config/old/b.yaml', rules('b', 2));
    expect(await watched.next()).toBe('a=1 b=2');
    tree.write('config/new/deep/c.yaml', rules('c', 1));
    expect(await watched.next()).toBe('a=1 c=1 b=2');
    tree.write('config/new/deep/c.yaml', rules('c', 2));
    expect(await watched.next()).toBe('a=1 c=2 b=2');
    tree.write('config/new/d.yaml', rules('d', 1));
    expect(await watched.next()).toBe('a=1 d=1 c=2 b=2');
    tree.move('config/old', 'config/older');
    expect(await watched.next()).toBe('a=1 d=1 c=2 b=2');
    tree.write('config/older/b.yaml', rules('b', 3));
    expect(await watched.next()).toBe('a=1 d=1 c=2 b=3');
    tree.remove('config/new');
    expect(await watched.next()).toBe('a=1 b=3');
    expect(await watched.rest()).toEqual([]);
  });

  it('reads the rules again when the target of a link to a file elsewhere is written, replaced, or switched on its path', async () => {
    tree.write('elsewhere/1/b.yaml', rules('b', 1));
    tree.write('elsewhere/2/b.yaml', rules('b', 5));
    tree.link('elsewhere/now', '1');
    tree.link('config/b.yaml', '../elsewhere/now/b.yaml');
    const watched = await watch('a=1 b=1');
    tree.write('elsewhere/1/b.yaml', rules('b', 2));
    expect(await watched.next()).toBe('a=1 b=2');
    tree.replace('elsewhere/1/b.yaml', rules('b', 3));
    expect(await watched.next()).toBe('a=1 b=3');
    tree.replace('elsewhere/1/b.yaml', rules('b', 4));
    expect(await watched.next()).toBe('a=1 b=4');
    tree.switchLink('elsewhere/now', '2');
    expect(await watched.next()).toBe('a=1 b=5');
    tree.write('elsewhere/2/b.yaml', rules('b', 6));
    expect(await watched.next()).toBe('a=1 b=6');
    expect(await watched.rest()).toEqual([]);
  });

  it('reads the rules again when a ConfigMap mount is swapped, and when a file in its dated folder is edited by hand', async () => {
    tree.remove('config');
    const mount = new ConfigMapMount(tree, 'config');
    mount.publish({ 'a.yaml': rules('a', 1) });
    const watched = await watch();
    mount.publish({ 'a.yaml': rules('a', 2) });
    expect(await watched.next()).toBe('a=2');
    tree.write('config/..data/a.yaml', rules('a', 3));
    expect(await watched.next()).toBe('a=3');
    expect(await watched.rest()).toEqual([]);
  });

  it('reads the rules again by polling when the file system gives no notification', async () => {
    // A change through another hard link of the same file gives no event in the watched folder.
    linkSync(tree.at('config/a.yaml'), tree.at('same.yaml'));
    const watched = await watch('a=1', { ...HINTS_ONLY, pollInterval: 100 });
    tree.write('same.yaml', rules('a', 2));
    expect(await watched.next()).toBe('a=2');
    tree.write('config/a.yaml', rules('a', 3));
    expect(await watched.next()).toBe('a=3');
  });
});

describe('the rule file source', () => {
  it.each([
    ['its permissions change', () => chmodSync(tree.at('config/a.yaml'), 0o600)],
    ['its times change', () => utimesSync(tree.at('config/a.yaml'), 1, 1)],
    ['the same contents are written to it', () => tree.write('config/a.yaml', rules('a', 1))],
    ['it is replaced by a file with the same contents', () => tree.replace('config/a.yaml', rules('a', 1))],
    [
      'it is removed and created again with the same contents',
      () => {
        tree.remove('config/a.yaml');
        tree.write('config/a.yaml', rules('a', 1));
      },
    ],
  ])('repeats the loaded event once, with the same ruleset, when a file stays the same but %s', async (_, change) => {
    const watched = await watch();
    change();
    const repeated = await watched.nextEvent();
    expect(repeated).toEqual({ ...watched.events[0], isRepeated: true });
    expect(repeated).toHaveProperty('ruleset', watched.rulesets[0]);
    expect(await watched.rest()).toEqual([]);
    tree.replace('config/a.yaml', rules('a', 2));
    expect(await watched.nextEvent()).not.toHaveProperty('isRepeated');
  });

  it('repeats the loaded event when permissions change where the file system gives no notification', async () => {
    linkSync(tree.at('config/a.yaml'), tree.at('same.yaml'));
    const watched = await watch('a=1', { ...HINTS_ONLY, pollInterval: 100 });
    chmodSync(tree.at('same.yaml'), 0o600);
    expect(await watched.nextEvent()).toHaveProperty('isRepeated', true);
    expect(await watched.rest()).toEqual([]);
  });

  it('emits nothing when something other than rule files changes in the folder', async () => {
    const watched = await watch();
    tree.write('config/notes.txt', 'not a rule');
    tree.folder('config/empty');
    chmodSync(tree.at('config'), 0o700);
    expect(await watched.rest()).toEqual([]);
  });

  it('emits nothing when permissions change or the same contents are written while only switches are watched', async () => {
    using watched = new WatchedRules({ root: tree.base, watchRoot: true });
    expect(await watched.next()).toBe('a=1');
    chmodSync(tree.at('config/a.yaml'), 0o600);
    tree.replace('config/a.yaml', rules('a', 1));
    expect(await watched.rest()).toEqual([]);
  });

  it('emits one event when 200 files are created', async () => {
    const watched = await watch('a=1', LONG_QUIET);
    await Promise.all(
      Array.from({ length: 200 }, (_, i) => writeFile(tree.at(`config/f${i}.yaml`), rules(`d${i}`, i))),
    );
    expect((await watched.next()).split(' ')).toHaveLength(201);
    expect(await watched.rest()).toEqual([]);
  });

  it('emits one event when a file is written 100 times in a row', async () => {
    const watched = await watch('a=1', LONG_QUIET);
    for (let i = 1; i <= 100; i += 1) await writeFile(tree.at('config/a.yaml'), rules('a', i));
    expect(await watched.next()).toBe('a=100');
    expect(await watched.rest()).toEqual([]);
  });

  it('emits events during a burst that lasts longer than the maximum wait', async () => {
    const watched = await watch('a=1', { ...HINTS_ONLY, settle: { quiet: 5000, maxWait: 200 } });
    const writing = new AbortController();
    const writer = (async () => {
      for (let i = 2; !writing.signal.aborted; i += 1) {
        tree.replace('config/a.yaml', rules('a', i));
        // Long enough to read the file in between on a busy machine, or it would be rejected for changing too fast.
        await wait(1_000);
      }
    })();
    try {
      expect(await watched.next()).toMatch(/^a=\d+$/);
      expect(await watched.next()).toMatch(/^a=\d+$/);
    } finally {
      writing.abort();
      await writer;
    }
  });

  it('emits the rules to each subscriber from the start', async () => {
    const one = await watch();
    using two = new WatchedRules({ root: tree.base });
    expect(await two.next()).toBe('a=1');
    tree.write('config/a.yaml', rules('a', 2));
    expect(await one.next()).toBe('a=2');
    expect(await two.next()).toBe('a=2');
  });
});
