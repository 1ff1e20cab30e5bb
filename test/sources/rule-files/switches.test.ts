import { execFileSync } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { ConfigMapMount, RuleTree, rules } from './rule-tree';
import { LONG_HOLD, WatchedRules } from './watched-rules';

describe.each([
  { watchRoot: true, mode: 'watching the root alone' },
  { watchRoot: false, mode: 'watching the files too' },
])('rule files, $mode,', ({ watchRoot }) => {
  let tree: RuleTree;
  let watched: WatchedRules;

  beforeEach(() => {
    tree = new RuleTree();
  });
  afterEach(() => {
    watched[Symbol.dispose]();
    tree[Symbol.dispose]();
  });

  function watch(root: string, appDirectory = 'config') {
    watched = new WatchedRules({ root: tree.at(root), appDirectory, watchRoot });
  }
  /** After a switch the new place must be watched, which a further change shows in the mode that looks at files. */
  async function expectEditsToCount(path: string) {
    if (!watchRoot) {
      tree.write(path, rules('a', 99));
      expect(await watched.next()).toBe('a=99');
    }
    expect(await watched.quietly()).toEqual([]);
  }

  describe('below a link that is switched', () => {
    beforeEach(async () => {
      tree.write('releases/1/config/a.yaml', rules('a', 1));
      tree.write('releases/2/config/a.yaml', rules('a', 2));
      tree.write('releases/3/config/a.yaml', rules('a', 3));
      tree.link('current', 'releases/1');
      watch('current');
      await watched.next();
    });

    it('are read again after `ln -sfn`, each time', async () => {
      execFileSync('ln', ['-sfn', 'releases/2', tree.at('current')]);
      expect(await watched.next()).toBe('a=2');
      execFileSync('ln', ['-sfn', tree.at('releases/3'), tree.at('current')]);
      expect(await watched.next()).toBe('a=3');
      await expectEditsToCount('releases/3/config/a.yaml');
    });

    it('are read again after `mv -T`, and the old tree matters no more', async () => {
      tree.link('next', 'releases/2');
      execFileSync('mv', ['-T', tree.at('next'), tree.at('current')]);
      expect(await watched.next()).toBe('a=2');
      tree.write('releases/1/config/a.yaml', rules('a', 77));
      tree.remove('releases/1');
      expect(await watched.quietly()).toEqual([]);
      await expectEditsToCount('releases/2/config/a.yaml');
    });

    it('are told again with the same ruleset when the new tree holds the same, because they come from elsewhere', async () => {
      tree.write('releases/2/config/a.yaml', rules('a', 1));
      tree.switchLink('current', 'releases/2');
      const event = await watched.nextEvent();
      expect(event).toMatchObject({ kind: 'loaded', origin: { source: `files in ${tree.at('current/config')}` } });
      expect(event).toMatchObject({ origin: { version: expect.stringContaining('/releases/2/config@') } });
      expect(event).toHaveProperty('ruleset', watched.rulesets[0]);
    });

    it('are told once when the link is switched back and forth in a burst', async () => {
      for (const release of ['2', '3', '1', '3', '2']) tree.switchLink('current', `releases/${release}`);
      expect(await watched.next()).toBe('a=2');
      expect(await watched.quietly()).toEqual([]);
    });

    it('are read when the link goes away and comes back, its absence being told once', async () => {
      tree.remove('current');
      expect(await watched.next()).toBe(
        `rejected: the rule folder ${tree.at('current/config')} does not exist: there is no ${tree.at('current')}`,
      );
      tree.link('current', 'releases/2');
      expect(await watched.next()).toBe('a=2');
      await expectEditsToCount('releases/2/config/a.yaml');
    });
  });

  it('are read again when any link on the way is switched, also one that another link leads through', async () => {
    tree.write('disk/1/app/config/a.yaml', rules('a', 1));
    tree.write('disk/2/app/config/a.yaml', rules('a', 2));
    tree.write('disk/2/other/config/a.yaml', rules('a', 3));
    tree.link('disk/now', '1');
    tree.link('mnt/rules', '../disk/now/app');
    tree.link('srv/current', `${tree.base}/mnt/rules`);
    watch('srv/current');
    expect(await watched.next()).toBe('a=1');
    tree.switchLink('disk/now', '2');
    expect(await watched.next()).toBe('a=2');
    tree.switchLink('mnt/rules', '../disk/now/other');
    expect(await watched.next()).toBe('a=3');
    await expectEditsToCount('disk/2/other/config/a.yaml');
  });

  describe('in a folder', () => {
    beforeEach(async () => {
      tree.write('root/config/a.yaml', rules('a', 1));
      watch('root');
      await watched.next();
    });

    it('are read again when the folder is removed and made again at once, with the same inode number or not', async () => {
      for (let i = 2; i < 6; i += 1) {
        tree.remove('root/config');
        tree.write('root/config/a.yaml', rules('a', i));
        expect(await watched.next()).toBe(`a=${i}`);
      }
      await expectEditsToCount('root/config/a.yaml');
    });

    it('are not taken for complete while the folder is made again and filled, nor told more than once', async () => {
      watched[Symbol.dispose]();
      watched = new WatchedRules({ root: tree.at('root'), watchRoot, timing: LONG_HOLD });
      await watched.next();
      tree.remove('root/config');
      tree.write('root/config/a.yaml', rules('a', 2));
      for (const name of ['b', 'c', 'd']) {
        await wait(150);
        tree.write(`root/config/${name}.yaml`, rules(name, 2));
      }
      expect(await watched.next()).toBe('a=2 b=2 c=2 d=2');
      expect(await watched.quietly()).toEqual([]);
    });

    it('are kept when the folder vanishes, and read when it returns', async () => {
      tree.remove('root/config');
      expect(await watched.next()).toBe(`rejected: the rule folder ${tree.at('root/config')} does not exist`);
      tree.write('root/config/a.yaml', rules('a', 2));
      expect(await watched.next()).toBe('a=2');
      await expectEditsToCount('root/config/a.yaml');
    });

    it('are told again when the folder returns as it was, so that the rejection ends', async () => {
      tree.move('root/config', 'root/aside');
      expect(await watched.next()).toMatch(/^rejected: /);
      tree.move('root/aside', 'root/config');
      expect(await watched.nextEvent()).toHaveProperty('ruleset', watched.rulesets[0]);
      await expectEditsToCount('root/config/a.yaml');
    });

    it('are read again when the folder, or one above it, is moved away and another moved in', async () => {
      tree.write('root/next/a.yaml', rules('a', 2));
      tree.move('root/config', 'root/old');
      tree.move('root/next', 'root/config');
      expect(await watched.next()).toBe('a=2');
      tree.write('other/config/a.yaml', rules('a', 3));
      tree.move('root', 'before');
      tree.move('other', 'root');
      expect(await watched.next()).toBe('a=3');
      tree.write('before/config/a.yaml', rules('a', 66));
      await expectEditsToCount('root/config/a.yaml');
    });
  });

  it('are waited for when their folder does not exist', async () => {
    tree.folder('root');
    watch('root');
    expect(await watched.next()).toBe(`rejected: the rule folder ${tree.at('root/config')} does not exist`);
    tree.write('root/config/a.yaml', rules('a', 1));
    expect(await watched.next()).toBe('a=1');
    await expectEditsToCount('root/config/a.yaml');
  });

  it('are waited for when two levels of folders do not exist', async () => {
    watch('root');
    expect(await watched.next()).toContain(`there is no ${tree.at('root')}`);
    tree.folder('root');
    expect(await watched.next()).toBe(`rejected: the rule folder ${tree.at('root/config')} does not exist`);
    tree.folder('root/config');
    expect(await watched.next()).toBe('no rules');
    tree.remove('root/config');
    expect(await watched.next()).toMatch(/^rejected: /);
    tree.write('root/config/a.yaml', rules('a', 1));
    expect(await watched.next()).toBe('a=1');
    await expectEditsToCount('root/config/a.yaml');
  });

  it('are waited for when a file is in the way', async () => {
    tree.write('root/config', 'not a folder');
    watch('root');
    expect(await watched.next()).toBe(`rejected: the rule folder ${tree.at('root/config')} is not a folder`);
    tree.remove('root/config');
    tree.write('root/config/a.yaml', rules('a', 1));
    expect(await watched.next()).toBe('a=1');
  });

  it('are not found at the end of links that lead in a circle, until these are set right', async () => {
    tree.link('root/config', 'config');
    watch('root');
    expect(await watched.next()).toMatch(/cannot be reached: its symbolic links form a loop \(ELOOP\)/);
    tree.write('good/a.yaml', rules('a', 1));
    tree.switchLink('root/config', '../good');
    expect(await watched.next()).toBe('a=1');
  });

  describe.each([
    { fate: 'removed', keepsOldFolders: false },
    { fate: 'kept', keepsOldFolders: true },
  ])('in a ConfigMap mount whose old dated folder is $fate', ({ keepsOldFolders }) => {
    it('are read again at the first, second and third swap', async () => {
      const mount = new ConfigMapMount(tree, 'root/config', keepsOldFolders);
      mount.publish({ 'a.yaml': rules('a', 1), 'b.yaml': rules('b', 1) });
      watch('root');
      expect(await watched.next()).toBe('a=1 b=1');
      for (const swap of [2, 3, 4]) {
        mount.publish({ 'a.yaml': rules('a', swap), 'b.yaml': rules('b', swap) });
        expect(await watched.next()).toBe(`a=${swap} b=${swap}`);
      }
      expect(await watched.quietly()).toEqual([]);
    });

    it('are read again at each swap when the rule folder is a link that `items` with a path makes', async () => {
      const mount = new ConfigMapMount(tree, 'root', keepsOldFolders);
      mount.publish({ 'config/a.yaml': rules('a', 1) });
      watch('root');
      expect(await watched.next()).toBe('a=1');
      for (const swap of [2, 3]) {
        mount.publish({ 'config/a.yaml': rules('a', swap) });
        expect(await watched.next()).toBe(`a=${swap}`);
      }
      expect(await watched.quietly()).toEqual([]);
    });
  });

  it('are read again when a ConfigMap mount in a subfolder is swapped', async () => {
    const one = new ConfigMapMount(tree, 'root/config/one');
    const two = new ConfigMapMount(tree, 'root/config/two');
    one.publish({ 'a.yaml': rules('a', 1) });
    two.publish({ 'b.yaml': rules('b', 1) });
    watch('root');
    expect(await watched.next()).toBe('a=1 b=1');
    two.publish({ 'b.yaml': rules('b', 2) });
    expect(await watched.next()).toBe('a=1 b=2');
    one.publish({ 'a.yaml': rules('a', 2) });
    expect(await watched.next()).toBe('a=2 b=2');
  });

  it('that were switched to bad ones are told when they are switched to good ones, the same as before too', async () => {
    tree.write('1/config/a.yaml', rules('a', 1));
    tree.write('bad/config/a.yaml', 'domain: a\ndescriptor: []\n');
    tree.link('current', '1');
    watch('current');
    expect(await watched.next()).toBe('a=1');
    tree.switchLink('current', 'bad');
    expect(await watched.next()).toMatch(/^rejected: a\.yaml:2:1: config error, unknown key 'descriptor'/);
    tree.switchLink('current', '1');
    expect(await watched.nextEvent()).toHaveProperty('ruleset', watched.rulesets[0]);
    expect(await watched.quietly()).toEqual([]);
  });
});

describe('rule files, watching the root alone,', () => {
  it('are left alone when they change in place, until something is switched', async () => {
    using tree = new RuleTree();
    tree.write('1/config/a.yaml', rules('a', 1));
    tree.write('2/config/a.yaml', rules('a', 2));
    tree.link('current', '1');
    using watched = new WatchedRules({ root: tree.at('current'), watchRoot: true });
    expect(await watched.next()).toBe('a=1');
    tree.write('1/config/a.yaml', rules('a', 11));
    tree.replace('1/config/a.yaml', rules('a', 12));
    tree.write('1/config/b.yaml', rules('b', 1));
    tree.write('1/config/deep/c.yaml', rules('c', 1));
    tree.write('1/config/bad.yaml', 'no rules');
    tree.remove('1/config/b.yaml');
    expect(await watched.quietly()).toEqual([]);
    tree.switchLink('current', '2');
    expect(await watched.next()).toBe('a=2');
  });

  it('that are rejected say what will make them be read again', async () => {
    using tree = new RuleTree();
    tree.write('config/a.yaml', 'domain: a\ndescriptor: []\n');
    using watched = new WatchedRules({ root: tree.base, watchRoot: true });
    expect(await watched.next()).toMatch(/read again when a link or folder on the path to them is switched/);
  });
});
