import type { WorkBudget } from './work-budget';
import type { CompiledSequences } from './compile-wildcards';
import { childOf } from './trie';

const MAX_EPOCH = 0xffffffff;

/**
 * Finds patterns of several parts while the automaton of the parts passes over a value. Each beginning of a pattern, a node of the tree
 * of sequences, is reached at the leftmost position where its parts have occurred in order and without overlap: this leaves the most
 * room for the remaining parts, so no other position matters. A node is reached at most once per value.
 */
export class SequenceSearch {
  readonly #compiled: CompiledSequences;
  /** The nodes that have been reached and below which a pattern can still be found, in the order of the positions where their last parts end. */
  readonly #reached: Int32Array;
  readonly #ends: Int32Array;
  #reachedCount = 0;
  /** By node, the epoch in which it was last reached, and the position where its last part ended. An epoch is one value. */
  readonly #reachedIn: Uint32Array;
  readonly #endOf: Int32Array;
  /** By part, the epoch of the next array, and how many of the reached nodes its occurrences have been combined with. */
  readonly #combinedIn: Uint32Array;
  readonly #combined: Int32Array;
  #epoch = 0;
  #budget: WorkBudget | undefined;

  constructor(compiled: CompiledSequences) {
    this.#compiled = compiled;
    const nodes = compiled.ranks.length;
    const parts = compiled.counts.length;
    this.#reached = new Int32Array(nodes);
    this.#ends = new Int32Array(nodes);
    this.#reachedIn = new Uint32Array(nodes);
    this.#endOf = new Int32Array(nodes);
    this.#combinedIn = new Uint32Array(parts);
    this.#combined = new Int32Array(parts);
  }

  /** Starts with another value. */
  begin(budget: WorkBudget): this {
    if (this.#epoch === MAX_EPOCH) {
      this.#reachedIn.fill(0);
      this.#combinedIn.fill(0);
      this.#epoch = 0;
    }
    this.#epoch += 1;
    this.#budget = budget;
    this.#reachedIn[0] = this.#epoch;
    this.#endOf[0] = 0;
    this.#reachedCount = 0;
    this.#keep(0, 0);
    return this;
  }

  /**
   * Combines the parts that end at a position with the nodes that have been reached.
   *
   * @param state the node of the parts at this position
   * @param position the number of labels up to it, the start of the value included
   * @param best the lowest rank that has been found
   * @returns the lowest rank that has been found now
   * @throws TooMuchWork
   */
  advance(state: number, position: number, best: number): number {
    const { partOf, shorter, lowestOfPart, lengths } = this.#compiled;
    let lowest = best;
    for (let part = partOf[state] as number; part !== 0; part = shorter[part] as number) {
      if ((lowestOfPart[part] as number) >= lowest) break;
      this.#budget?.spend(1);
      const start = position - (lengths[part] as number);
      const from = this.#combinedIn[part] === this.#epoch ? (this.#combined[part] as number) : 0;
      if (from === this.#reachedCount || (this.#ends[from] as number) > start) continue;
      const to = this.#countUpTo(start, from);
      this.#combinedIn[part] = this.#epoch;
      this.#combined[part] = to;
      lowest = this.#combine(part, { from, to, start, position }, lowest);
    }
    return lowest;
  }

  /** Reaches the nodes that continue the given reached nodes by a part: by these nodes or by the part's, whichever are fewer. */
  #combine(part: number, { from, to, start, position }: Occurrence, best: number): number {
    const { tree, counts, firstOfPart, nextOfPart, labelOfPart } = this.#compiled;
    const count = counts[part] as number;
    let lowest = best;
    this.#budget?.spend(Math.min(to - from, count));
    if (to - from <= count) {
      const label = labelOfPart[part] as number;
      for (let index = from; index < to; index += 1) {
        const node = childOf(tree, this.#reached[index] as number, label);
        if (node !== 0) lowest = this.#reach(node, position, lowest);
      }
      return lowest;
    }
    for (let node = firstOfPart[part] as number; node !== 0; node = nextOfPart[node] as number) {
      const parent = tree.parents[node] as number;
      const isParentReached = this.#reachedIn[parent] === this.#epoch && (this.#endOf[parent] as number) <= start;
      if (isParentReached && this.#reachedIn[node] !== this.#epoch) lowest = this.#reach(node, position, lowest);
    }
    return lowest;
  }

  #reach(node: number, position: number, best: number): number {
    const { ranks, lowestBelow } = this.#compiled;
    const lowest = Math.min(best, ranks[node] as number);
    this.#reachedIn[node] = this.#epoch;
    this.#endOf[node] = position;
    if ((lowestBelow[node] as number) < lowest) this.#keep(node, position);
    return lowest;
  }

  /** Keeps a node below which a pattern can still be found. */
  #keep(node: number, position: number): void {
    this.#reached[this.#reachedCount] = node;
    this.#ends[this.#reachedCount] = position;
    this.#reachedCount += 1;
  }

  /** How many reached nodes end at or before a position: the first `from` of them do. */
  #countUpTo(position: number, from: number): number {
    let [low, high] = [from, this.#reachedCount];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#ends[middle] as number) <= position) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** An occurrence of a part, and the reached nodes that it is combined with. */
interface Occurrence {
  readonly from: number;
  readonly to: number;
  readonly start: number;
  readonly position: number;
}
