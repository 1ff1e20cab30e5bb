import { setTimeout as wait } from 'node:timers/promises';
import { MODES, type SwitchFixture, useSwitchFixture } from './fixtures';
import { type RuleTree, rules } from '../../support/data/rule-tree';
import { LONG_RECHECK, type WatchedRules } from './watched-rules';

describe.each(MODES)('the rule file source, $mode,', ({ watchRoot }) => {
  let fixture: SwitchFixture;
  let tree: RuleTree;
  useSwitchFixture(watchRoot, (made) => {
    fixture = made;
    ({ tree } = made);
  });

  describe('when the folder changes,', () => {
    let watched: WatchedRules;

    beforeEach(async () => {
      tree.write('root/config/a.yaml', rules('a', 1));
      watched = fixture.watch('root');
      await watched.next();
    });

    it('reads the rules again when the folder is removed and created again immediately, with the same inode number or another', async () => {
      for (let i = 2; i < 6; i += 1) {
        tree.remove('root/config');
        tree.write('root/config/a.yaml', rules('a', i));
        expect(await watched.next()).toBe(`a=${i}`);
      }
      await fixture.expectEditsToBeSeen('root/config/a.yaml');
    });

    it('emits once when the folder is removed, created again and filled step by step', async () => {
      watched = fixture.watch('root', LONG_RECHECK);
      expect(await watched.next()).toBe('a=1');
      tree.remove('root/config');
      tree.write('root/config/a.yaml', rules('a', 2));
      for (const name of ['b', 'c', 'd']) {
        await wait(150);
        tree.write(`root/config/${name}.yaml`, rules(name, 2));
      }
      expect(await watched.next()).toBe('a=2 b=2 c=2 d=2');
      expect(await watched.rest()).toEqual([]);
    });

    it('rejects the rules when the folder is removed, and reads them when it is back', async () => {
      tree.remove('root/config');
      expect(await watched.next()).toBe(`rejected: the rule folder ${tree.at('root/config')} does not exist`);
      tree.write('root/config/a.yaml', rules('a', 2));
      expect(await watched.next()).toBe('a=2');
      await fixture.expectEditsToBeSeen('root/config/a.yaml');
    });

    it('emits the same ruleset again when the folder is moved away and back', async () => {
      tree.move('root/config', 'root/aside');
      expect(await watched.next()).toMatch(/^rejected: /);
      tree.move('root/aside', 'root/config');
      expect(await watched.nextEvent()).toHaveProperty('ruleset', watched.rulesets[0]);
      await fixture.expectEditsToBeSeen('root/config/a.yaml');
    });

    it('reads the rules again when the folder, or one above it, is replaced by another one', async () => {
      tree.write('root/next/a.yaml', rules('a', 2));
      tree.move('root/config', 'root/old');
      tree.move('root/next', 'root/config');
      expect(await watched.next()).toBe('a=2');
      tree.write('other/config/a.yaml', rules('a', 3));
      tree.move('root', 'before');
      tree.move('other', 'root');
      expect(await watched.next()).toBe('a=3');
      tree.write('before/config/a.yaml', rules('a', 66));
      await fixture.expectEditsToBeSeen('root/config/a.yaml');
    });
  });

  it('waits for a folder that does not exist', async () => {
    tree.folder('root');
    const watched = fixture.watch('root');
    expect(await watched.next()).toBe(`rejected: the rule folder ${tree.at('root/config')} does not exist`);
    tree.write('root/config/a.yaml', rules('a', 1));
    expect(await watched.next()).toBe('a=1');
    await fixture.expectEditsToBeSeen('root/config/a.yaml');
  });

  it('waits for two levels of folders that do not exist', async () => {
    const watched = fixture.watch('root');
    expect(await watched.next()).toContain(`there is no ${tree.at('root')}`);
    tree.folder('root');
    expect(await watched.next()).toBe(`rejected: the rule folder ${tree.at('root/config')} does not exist`);
    tree.folder('root/config');
    expect(await watched.next()).toBe('no rules');
    tree.remove('root/config');
    expect(await watched.next()).toMatch(/^rejected: /);
    tree.write('root/config/a.yaml', rules('a', 1));
    expect(await watched.next()).toBe('a=1');
    await fixture.expectEditsToBeSeen('root/config/a.yaml');
  });

  it('waits for a folder where there is a file', async () => {
    tree.write('root/config', 'not a folder');
    const watched = fixture.watch('root');
    expect(await watched.next()).toBe(`rejected: the rule folder ${tree.at('root/config')} is not a folder`);
    tree.remove('root/config');
    tree.write('root/config/a.yaml', rules('a', 1));
    expect(await watched.next()).toBe('a=1');
  });

  it('rejects links that form a loop until they are corrected', async () => {
    tree.link('root/config', 'config');
    const watched = fixture.watch('root');
    expect(await watched.next()).toMatch(/cannot be reached: its symbolic links form a loop \(ELOOP\)/);
    tree.write('valid/a.yaml', rules('a', 1));
    tree.switchLink('root/config', '../valid');
    expect(await watched.next()).toBe('a=1');
  });
});
