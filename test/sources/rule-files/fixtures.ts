import type { RuleFileTiming } from '../../../src/sources/rule-files/rule-file-source';
import { RuleTree, rules } from '../../support/data/rule-tree';
import { HINTS_ONLY, WatchedRules } from './watched-rules';

/** What a test of changes in place works with. */
export interface RuleTreeFixture {
  readonly tree: RuleTree;
  /** Watches the folder `config` of the tree, and expects `first` as the summary of the first event. */
  readonly watch: (first?: string, timing?: RuleFileTiming) => Promise<WatchedRules>;
}

/** Gives each test of the describe block a tree with the rule file `config/a.yaml` (`a=1`), and disposes of everything. */
export function useRuleTree(onFixture: (fixture: RuleTreeFixture) => void): void {
  let resources: Disposable[] = [];
  beforeEach(() => {
    const tree = new RuleTree();
    resources = [tree];
    tree.write('config/a.yaml', rules('a', 1));
    async function watch(first = 'a=1', timing: RuleFileTiming = HINTS_ONLY) {
      const watched = new WatchedRules({ root: tree.base, timing });
      resources.unshift(watched);
      expect(await watched.next()).toEqual(first);
      return watched;
    }
    onFixture({ tree, watch });
  });
  afterEach(() => {
    for (const resource of resources) resource[Symbol.dispose]();
  });
}

/** The modes of RUNTIME_WATCH_ROOT. */
export const MODES = [
  { watchRoot: true, mode: 'RUNTIME_WATCH_ROOT=true' },
  { watchRoot: false, mode: 'RUNTIME_WATCH_ROOT=false' },
];

/** What a test of switched links and folders works with. */
export class SwitchFixture implements Disposable {
  readonly tree = new RuleTree();
  readonly #watchRoot: boolean;
  #watched: WatchedRules | undefined;

  constructor(watchRoot: boolean) {
    this.#watchRoot = watchRoot;
  }

  /** Watches the rules below this path of the tree. */
  watch(root: string, timing: RuleFileTiming = HINTS_ONLY): WatchedRules {
    this.#watched?.[Symbol.dispose]();
    this.#watched = new WatchedRules({ root: this.tree.at(root), watchRoot: this.#watchRoot, timing });
    return this.#watched;
  }

  /** Expects that the new path is watched after a switch, which a change in place shows in the mode that detects it. */
  async expectEditsToBeSeen(path: string): Promise<void> {
    const watched = this.#watched;
    if (watched === undefined) throw new Error('nothing is watched');
    if (!this.#watchRoot) {
      this.tree.write(path, rules('a', 99));
      expect(await watched.next()).toBe('a=99');
    }
    expect(await watched.rest()).toEqual([]);
  }

  [Symbol.dispose](): void {
    this.#watched?.[Symbol.dispose]();
    this.tree[Symbol.dispose]();
  }
}

/** Gives each test of the describe block a fixture of its own, and disposes of it. */
export function useSwitchFixture(watchRoot: boolean, onFixture: (fixture: SwitchFixture) => void): void {
  let fixture: SwitchFixture;
  beforeEach(() => {
    fixture = new SwitchFixture(watchRoot);
    onFixture(fixture);
  });
  afterEach(() => fixture[Symbol.dispose]());
}
