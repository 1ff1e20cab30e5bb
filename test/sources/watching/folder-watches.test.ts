import { firstValueFrom } from 'rxjs';
import { FolderWatches } from '../../../src/sources/watching/folder-watches';
import { RuleTree } from '../rule-files/rule-tree';

describe('watches of folders', () => {
  let tree: RuleTree;
  let watches: FolderWatches;

  beforeEach(() => {
    tree = new RuleTree();
    tree.folder('a');
    tree.folder('b');
    watches = new FolderWatches();
  });
  afterEach(() => {
    watches.close();
    tree[Symbol.dispose]();
  });

  function point(folder: string, names?: readonly string[]) {
    return [tree.at(folder), { identity: folder, names: names && new Set(names) }] as const;
  }

  it('are new once, until another folder is seen in the place', () => {
    expect(watches.arm(new Map([point('a')]))).toBe(true);
    expect(watches.arm(new Map([point('a')]))).toBe(false);
    expect(watches.arm(new Map([point('a'), point('b')]))).toBe(true);
    expect(watches.arm(new Map([[tree.at('a'), { identity: 'another', names: undefined }]]))).toBe(true);
  });

  it('tell of the names that matter', async () => {
    watches.arm(new Map([point('a', ['wanted'])]));
    const hints: number[] = [];
    watches.hints$.subscribe(() => hints.push(hints.length));
    tree.write('a/other', '');
    watches.arm(new Map([point('a', ['wanted']), point('b')]));
    const hint = firstValueFrom(watches.hints$);
    tree.write('b/any', '');
    await hint;
    expect(hints).toEqual([0]);
  });

  it('are new again for a folder that was removed and made again, even when it cannot be told from the old one', async () => {
    watches.arm(new Map([point('a')]));
    const hint = firstValueFrom(watches.hints$);
    tree.remove('a');
    tree.folder('a');
    await hint;
    expect(watches.arm(new Map([point('a')]))).toBe(true);
  });

  it('ask for another look when a folder has gone meanwhile', () => {
    expect(watches.arm(new Map([point('missing')]))).toBe(true);
    expect(watches.warnings).toEqual([]);
  });

  it('end with the hints, and are not armed any more', async () => {
    watches.arm(new Map([point('a')]));
    const end = new Promise<void>((resolve) => watches.hints$.subscribe({ complete: resolve }));
    watches.close();
    await end;
    expect(watches.arm(new Map([point('b')]))).toBe(false);
  });
});
