import { firstValueFrom } from 'rxjs';
import { FolderWatches } from '../../../src/sources/watching/folder-watches';
import { RuleTree } from '../../support/data/rule-tree';

describe('FolderWatches', () => {
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

  it('reports a watch as new once, until another folder takes the path', () => {
    expect(watches.arm(new Map([point('a')]))).toBe(true);
    expect(watches.arm(new Map([point('a')]))).toBe(false);
    expect(watches.arm(new Map([point('a'), point('b')]))).toBe(true);
    expect(watches.arm(new Map([[tree.at('a'), { identity: 'another', names: undefined }]]))).toBe(true);
  });

  it('gives hints only for the names that matter', async () => {
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

  it('reports a new watch for a folder that was removed and created again, even with the same identity', async () => {
    watches.arm(new Map([point('a')]));
    const hint = firstValueFrom(watches.hints$);
    tree.remove('a');
    tree.folder('a');
    await hint;
    expect(watches.arm(new Map([point('a')]))).toBe(true);
  });

  it('requests another scan when a folder no longer exists', () => {
    expect(watches.arm(new Map([point('missing')]))).toBe(true);
    expect(watches.warnings).toEqual([]);
  });

  it('completes the hints on close, and watches nothing afterwards', async () => {
    watches.arm(new Map([point('a')]));
    const end = new Promise<void>((resolve) => watches.hints$.subscribe({ complete: resolve }));
    watches.close();
    await end;
    expect(watches.arm(new Map([point('b')]))).toBe(false);
  });
});
