import type { Entry } from './request';

/** Keeps something for each combination of the values that a descriptor's entries have at certain levels. */
export class ByValues<T extends object> {
  readonly #levels: readonly number[];
  /** A map by the value of the first level of maps by that of the next, and so on; without levels the one thing itself. */
  #root: unknown;

  /** @param levels indexes of entries; empty where one thing belongs to every descriptor */
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

  set(entries: readonly Entry[], kept: T): void {
    const last = this.#levels.length - 1;
    let node = this.#root as Map<string, unknown>;
    this.#levels.forEach((level, depth) => {
      const { value } = entries[level] as Entry;
      if (depth === last) node.set(value, kept);
      else node = mapIn(node, value);
    });
    if (last < 0) this.#root = kept;
  }
}

function mapIn(parent: Map<string, unknown>, value: string): Map<string, unknown> {
  let map = parent.get(value) as Map<string, unknown> | undefined;
  if (map === undefined) parent.set(value, (map = new Map()));
  return map;
}
