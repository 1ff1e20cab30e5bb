import { setTimeout as wait } from 'node:timers/promises';
import { MODES, type SwitchFixture, useSwitchFixture } from './fixtures';
import { ConfigMapMount, type RuleTree, rules } from '../../support/data/rule-tree';

/** In milliseconds. */
const LATE = 400;

describe.each(MODES)('the rule file source, $mode,', ({ watchRoot }) => {
  let fixture: SwitchFixture;
  let tree: RuleTree;
  useSwitchFixture(watchRoot, (made) => {
    fixture = made;
    ({ tree } = made);
  });

  describe.each([
    { fate: 'removed', keepsOldFolders: false },
    { fate: 'kept', keepsOldFolders: true },
  ])('in a ConfigMap mount whose old dated folder is $fate', ({ keepsOldFolders }) => {
    it('reads the rules again at the first, second and third swap', async () => {
      const mount = new ConfigMapMount(tree, 'root/config', keepsOldFolders);
      mount.publish({ 'a.yaml': rules('a', 1), 'b.yaml': rules('b', 1) });
      const watched = fixture.watch('root');
      expect(await watched.next()).toBe('a=1 b=1');
      for (const swap of [2, 3, 4]) {
        mount.publish({ 'a.yaml': rules('a', swap), 'b.yaml': rules('b', swap) });
        expect(await watched.next()).toBe(`a=${swap} b=${swap}`);
      }
      expect(await watched.rest()).toEqual([]);
    });

    it('reads the rules again at each swap when the rule folder is a link that `items` with a path creates', async () => {
      const mount = new ConfigMapMount(tree, 'root', keepsOldFolders);
      mount.publish({ 'config/a.yaml': rules('a', 1) });
      const watched = fixture.watch('root');
      expect(await watched.next()).toBe('a=1');
      for (const swap of [2, 3]) {
        mount.publish({ 'config/a.yaml': rules('a', swap) });
        expect(await watched.next()).toBe(`a=${swap}`);
      }
      expect(await watched.rest()).toEqual([]);
    });
  });

  it('reads the rules again when a ConfigMap mount in a subfolder is swapped', async () => {
    const one = new ConfigMapMount(tree, 'root/config/one');
    const two = new ConfigMapMount(tree, 'root/config/two');
    one.publish({ 'a.yaml': rules('a', 1) });
    two.publish({ 'b.yaml': rules('b', 1) });
    const watched = fixture.watch('root');
    expect(await watched.next()).toBe('a=1 b=1');
    two.publish({ 'b.yaml': rules('b', 2) });
    expect(await watched.next()).toBe('a=1 b=2');
    one.publish({ 'a.yaml': rules('a', 2) });
    expect(await watched.next()).toBe('a=2 b=2');
  });

  it('reads the rules again when the link to an added file is created long after the swap, and when it is removed', async () => {
    const mount = new ConfigMapMount(tree, 'root/config');
    mount.publish({ 'a.yaml': rules('a', 1) });
    const watched = fixture.watch('root');
    expect(await watched.next()).toBe('a=1');
    mount.publish({ 'a.yaml': rules('a', 2), 'b.yaml': rules('b', 2) });
    expect(await watched.next()).toBe('a=2');
    // Longer than the scan after the swap takes, also when it is confirmed by another one.
    await wait(LATE);
    tree.link('root/config/b.yaml', '..data/b.yaml');
    expect(await watched.next()).toBe('a=2 b=2');
    tree.remove('root/config/b.yaml');
    expect(await watched.next()).toBe('a=2');
    expect(await watched.rest()).toEqual([]);
  });
});
