import { execFileSync } from 'node:child_process';
import { MODES, type SwitchFixture, useSwitchFixture } from './fixtures';
import { RuleTree, rules } from '../../support/data/rule-tree';
import { WatchedRules } from './watched-rules';

describe.each(MODES)('the rule file source, $mode,', ({ watchRoot }) => {
  let fixture: SwitchFixture;
  let tree: RuleTree;
  useSwitchFixture(watchRoot, (made) => {
    fixture = made;
    ({ tree } = made);
  });

  describe('below a link that is switched', () => {
    let watched: WatchedRules;

    beforeEach(async () => {
      tree.write('releases/1/config/a.yaml', rules('a', 1));
      tree.write('releases/2/config/a.yaml', rules('a', 2));
      tree.write('releases/3/config/a.yaml', rules('a', 3));
      tree.link('current', 'releases/1');
      watched = fixture.watch('current');
      await watched.next();
    });

    it('reads the rules again after each `ln -sfn`', async () => {
      execFileSync('ln', ['-sfn', 'releases/2', tree.at('current')]);
      expect(await watched.next()).toBe('a=2');
      execFileSync('ln', ['-sfn', tree.at('releases/3'), tree.at('current')]);
      expect(await watched.next()).toBe('a=3');
      await fixture.expectEditsToBeSeen('releases/3/config/a.yaml');
    });

    it('reads the rules again after `mv -T`, and ignores later changes of the old tree', async () => {
      tree.link('next', 'releases/2');
      execFileSync('mv', ['-T', tree.at('next'), tree.at('current')]);
      expect(await watched.next()).toBe('a=2');
      tree.write('releases/1/config/a.yaml', rules('a', 77));
      tree.remove('releases/1');
      expect(await watched.rest()).toEqual([]);
      await fixture.expectEditsToBeSeen('releases/2/config/a.yaml');
    });

    it('emits the same ruleset again when the new tree has the same contents, because its origin is different', async () => {
      tree.write('releases/2/config/a.yaml', rules('a', 1));
      tree.switchLink('current', 'releases/2');
      const event = await watched.nextEvent();
      expect(event).toMatchObject({ kind: 'loaded', origin: { source: `files in ${tree.at('current/config')}` } });
      expect(event).toMatchObject({ origin: { version: expect.stringContaining('/releases/2/config@') } });
      expect(event).toHaveProperty('ruleset', watched.rulesets[0]);
    });

    it('emits once when the link is switched back and forth in a burst', async () => {
      for (const release of ['2', '3', '1', '3', '2']) tree.switchLink('current', `releases/${release}`);
      expect(await watched.next()).toBe('a=2');
      expect(await watched.rest()).toEqual([]);
    });

    it('rejects the rules once when the link is removed, and reads them when it is back', async () => {
      tree.remove('current');
      expect(await watched.next()).toBe(
        `rejected: the rule folder ${tree.at('current/config')} does not exist: there is no ${tree.at('current')}`,
      );
      tree.link('current', 'releases/2');
      expect(await watched.next()).toBe('a=2');
      await fixture.expectEditsToBeSeen('releases/2/config/a.yaml');
    });
  });

  it('reads the rules again when any link on the path is switched, including one that another link leads through', async () => {
    tree.write('disk/1/app/config/a.yaml', rules('a', 1));
    tree.write('disk/2/app/config/a.yaml', rules('a', 2));
    tree.write('disk/2/other/config/a.yaml', rules('a', 3));
    tree.link('disk/now', '1');
    tree.link('mnt/rules', '../disk/now/app');
    tree.link('srv/current', `${tree.base}/mnt/rules`);
    const watched = fixture.watch('srv/current');
    expect(await watched.next()).toBe('a=1');
    tree.switchLink('disk/now', '2');
    expect(await watched.next()).toBe('a=2');
    tree.switchLink('mnt/rules', '../disk/now/other');
    expect(await watched.next()).toBe('a=3');
    await fixture.expectEditsToBeSeen('disk/2/other/config/a.yaml');
  });

  it('emits the valid rules again after a switch to invalid ones and back', async () => {
    tree.write('1/config/a.yaml', rules('a', 1));
    tree.write('invalid/config/a.yaml', 'domain: a\ndescriptor: []\n');
    tree.link('current', '1');
    const watched = fixture.watch('current');
    expect(await watched.next()).toBe('a=1');
    tree.switchLink('current', 'invalid');
    expect(await watched.next()).toMatch(/^rejected: a\.yaml:2:1: config error, unknown key 'descriptor'/);
    tree.switchLink('current', '1');
    expect(await watched.nextEvent()).toHaveProperty('ruleset', watched.rulesets[0]);
    expect(await watched.rest()).toEqual([]);
  });
});

describe('the rule file source, RUNTIME_WATCH_ROOT=true,', () => {
  it('ignores changes in place until something is switched', async () => {
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
    tree.write('1/config/invalid.yaml', 'no rules');
    tree.remove('1/config/b.yaml');
    expect(await watched.rest()).toEqual([]);
    tree.switchLink('current', '2');
    expect(await watched.next()).toBe('a=2');
  });

  it('says with a rejection when the rules are read again', async () => {
    using tree = new RuleTree();
    tree.write('config/a.yaml', 'domain: a\ndescriptor: []\n');
    using watched = new WatchedRules({ root: tree.base, watchRoot: true });
    expect(await watched.next()).toMatch(/read again when a link or folder on the path to them is switched/);
  });
});
