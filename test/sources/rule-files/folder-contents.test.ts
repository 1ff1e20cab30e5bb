import { chmodSync } from 'node:fs';
import { type RuleTreeFixture, useRuleTree } from './fixtures';
import { ConfigMapMount, rules } from '../../support/data/rule-tree';
import { WatchedRules } from './watched-rules';

let tree: RuleTreeFixture['tree'];
let watch: RuleTreeFixture['watch'];
useRuleTree((fixture) => ({ tree, watch } = fixture));

describe('the rule file source, on invalid rules,', () => {
  it('rejects them once per change, not once per scan, and marks a rejection of the same contents as repeated', async () => {
    const watched = await watch();
    tree.write('config/a.yaml', 'domain: a\ndescriptor: []\n');
    expect(await watched.next()).toMatch(/^rejected: a\.yaml:2:1: config error, unknown key 'descriptor'/);
    expect(await watched.rest()).toEqual([]);
    chmodSync(tree.at('config/a.yaml'), 0o600);
    expect(await watched.nextEvent()).toEqual({ ...watched.events[1], isRepeated: true });
    expect(await watched.rest()).toEqual([]);
    tree.write('config/a.yaml', 'domain: ""\n');
    expect(await watched.next()).toMatch(/^rejected: a\.yaml:1:\d+: config file cannot have empty domain/);
    expect(await watched.rest()).toEqual([]);
  });

  it('emits the next valid rules, even when they are the same as before the rejection', async () => {
    const watched = await watch();
    tree.write('config/a.yaml', '{');
    expect(await watched.next()).toMatch(/^rejected: a\.yaml:1:/);
    tree.write('config/a.yaml', rules('a', 1));
    expect(await watched.nextEvent()).toHaveProperty('ruleset', watched.rulesets[0]);
    tree.write('config/a.yaml', '{');
    expect(await watched.next()).toMatch(/^rejected: /);
    tree.write('config/a.yaml', rules('a', 2));
    expect(await watched.next()).toBe('a=2');
  });

  it('rejects them with at most 50 errors and the number of the others', async () => {
    const rule = '  - key: k\n    rate_limit: { unit: moment, requests_per_unit: 1 }\n';
    tree.write('config/a.yaml', `domain: a\ndescriptors:\n${rule.repeat(60)}`);
    using watched = new WatchedRules({ root: tree.base });
    const lines = (await watched.next()).split('\n');
    expect(lines).toHaveLength(51);
    expect(lines.at(-1)).toMatch(/^and \d+ more errors: weir-check shows them all$/);
  });

  it('rejects a broken link by its name until its target exists', async () => {
    tree.link('config/b.yaml', '../elsewhere/b.yaml');
    const watched = await watch(
      `rejected: the rule file b.yaml cannot be read: it does not exist (ENOENT) at ${tree.at('config/b.yaml')}`,
    );
    tree.write('elsewhere/b.yaml', rules('b', 1));
    expect(await watched.next()).toBe('a=1 b=1');
  });
});

describe('the rule file source, on suspicious contents,', () => {
  it('warns when the folder has no rule files, which are valid rules', async () => {
    tree.remove('config/a.yaml');
    const watched = await watch('no rules');
    expect(watched.events[0]).toHaveProperty('warnings', [
      `the rule folder ${tree.at('config')} has no rule files (*.yaml, *.yml): nothing is limited`,
    ]);
    tree.write('config/a.yaml', rules('a', 1));
    expect(await watched.next()).toBe('a=1');
  });

  it('warns once about all other files, once about all links to folders, and about the rules', async () => {
    tree.write('config/a.txt', '');
    tree.write('config/sub/b.json', '');
    tree.write('config/c.yaml', 'domain: c\ndescriptors:\n  - key: "*"\n');
    tree.link('config/linked', '..');
    const { events } = await watch('a=1 c=undefined');
    expect(events[0]).toHaveProperty('warnings', [
      `only *.yaml and *.yml are read in ${tree.at('config')}, not a.txt, sub/b.json`,
      `links to folders are not followed in ${tree.at('config')}: linked`,
      expect.stringContaining('c.yaml:3:10: '),
    ]);
  });

  it('warns about many other files with the first ten names and the number of the others', async () => {
    for (let i = 10; i < 40; i += 1) tree.write(`config/${i}.txt`, '');
    const { events } = await watch();
    expect(events[0]).toHaveProperty('warnings', [expect.stringMatching(/not 10\.txt, .* 19\.txt and 20 more$/)]);
  });
});

describe('the rule file source', () => {
  it('reads files whose name begins with a dot, unless ignoreDotFiles is set', async () => {
    tree.write('config/.b.yaml', rules('b', 1));
    const all = await watch('b=1 a=1');
    tree.write('config/.b.yaml', rules('b', 2));
    expect(await all.next()).toBe('b=2 a=1');
    using withoutDotFiles = new WatchedRules({ root: tree.base, ignoreDotFiles: true });
    expect(await withoutDotFiles.next()).toBe('a=1');
    tree.write('config/.b.yaml', rules('b', 3));
    expect(await all.next()).toBe('b=3 a=1');
    expect(await withoutDotFiles.rest()).toEqual([]);
  });

  it('reads one domain from several files when mergeDomainConfigs is set', async () => {
    tree.write('config/b.yaml', 'domain: a\ndescriptors:\n  - key: other\n');
    await watch(expect.stringMatching(/^rejected: b\.yaml:1:\d+: duplicate domain 'a' in config file/));
    using merging = new WatchedRules({ root: tree.base, mergeDomainConfigs: true });
    expect(await merging.next()).toBe('a=1');
  });

  it('reads the files of a ConfigMap mount once even when dot files are read', async () => {
    tree.remove('config');
    new ConfigMapMount(tree, 'config').publish({ 'a.yaml': rules('a', 1) });
    using all = new WatchedRules({ root: tree.base, ignoreDotFiles: false });
    expect(await all.next()).toBe('a=1');
  });

  it.each([
    ['a leading slash', '/sub', '/config'],
    ['a trailing slash', 'sub/', 'config/'],
    ['doubled slashes', '//sub//', '//config//'],
    ['several names', '', 'sub/config'],
    ['the folder above', 'other', '../sub/config'],
  ])('joins the directories of its settings below the root: %s', async (_, subdirectory, appDirectory) => {
    tree.write('root/sub/config/b.yaml', rules('b', 1));
    using below = new WatchedRules({ root: tree.at('root'), subdirectory, appDirectory });
    expect(await below.next()).toBe('b=1');
  });

  it('reads rules through a relative root', async () => {
    const before = process.cwd();
    process.chdir(tree.base);
    try {
      using relative = new WatchedRules({ root: '.', subdirectory: 'config', appDirectory: '' });
      expect(await relative.next()).toBe('a=1');
    } finally {
      process.chdir(before);
    }
  });
});
