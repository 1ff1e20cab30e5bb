import { ownText } from '../text/table-key';
import type { Entry } from './request';

/** A map whose key is the combination of the values of a descriptor's entries at certain levels. */
export class ByValues<T extends object> {
  readonly #levels: readonly number[];
  /** Nested maps, one per level, by the entry's value at that level; without levels, the only value itself. */
  #root: unknown;

  /** @param levels indices of entries; empty for a single value that applies to every descriptor */
  constructor(levels: readonly number[]) {
    this.#levels = levels;
    this.#root = levels.length === 0 ? undefined : new Map();
  }

  get(entries: readonly Entry[]): T | undefined {
    let node = this.#root;
    for (const level of this.#levels) {
      node = (node as Map<string, unknown>).get((entries[level] as Entry).value);
      if (node === undefined) return undefined;
    }
    return node as T | undefined;
  }

  set(entries: readonly Entry[], stored: T): void {
    const last = this.#levels.length - 1;
    let node = this.#root as Map<string, unknown>;
    this.#levels.forEach((level, depth) => {
      const value = ownText((entries[level] as Entry).value);
      if (depth === last) node.set(value, stored);
      else node = mapIn(node, value);
    });
    if (last < 0) this.#root = stored;
  }
}

function mapIn(parent: Map<string, unknown>, value: string): Map<string, unknown> {
  let map = parent.get(value) as Map<string, unknown> | undefined;
  if (map === undefined) parent.set(value, (map = new Map()));
  return map;
}
