import type { WorkBudget } from './work-budget';
import { type CompiledWildcards, NO_RANK, TEXT_END, TEXT_START } from './compile-wildcards';
import { SequenceSearch } from './sequence-search';
import { childOf } from './trie';

/** Code units below this number that can begin a part are looked up in an array. */
const DIRECT_UNITS = 256;

/** An index with more nodes than this does not fit into the processor's caches: a character then takes as long as several steps. */
const CACHED_NODES = 64 * 1024;
const STEPS_PER_CHARACTER = 8;

/**
 * Finds the first of many wildcards that matches a value, by one pass over the value: the time does not depend on the number of
 * patterns. Every position costs a constant amortized time, and a further step for each part of a pattern of several parts that
 * ends there and each match of the parts before it. A {@link WorkBudget} limits these steps, and the length of what is searched in a
 * very large index.
 *
 * Values and patterns are compared by UTF-16 code unit. In UTF-16 no character begins with a code unit that can be in the middle of
 * another one, so for well-formed text this is the same as comparing characters; rule files contain no other text.
 */
export class WildcardIndex {
  readonly #compiled: CompiledWildcards;
  readonly #sequences: SequenceSearch | undefined;
  /** By code unit, the node of the parts that begin with it. */
  readonly #starts = new Int32Array(DIRECT_UNITS);

  constructor(compiled: CompiledWildcards) {
    this.#compiled = compiled;
    this.#sequences = compiled.sequences && new SequenceSearch(compiled.sequences);
    for (let unit = 0; unit < DIRECT_UNITS; unit += 1) this.#starts[unit] = childOf(compiled.parts, 0, unit);
  }

  get compiled(): CompiledWildcards {
    return this.#compiled;
  }

  /**
   * The rank of the first pattern that matches; -1 if none does.
   * @throws TooMuchWork when the budget is exceeded
   */
  find(value: string, budget: WorkBudget): number {
    const { parts, singles, lastAtStart, hasFloatingParts, longestAtEnd, lowestBeyondStart, matchesAll } =
      this.#compiled;
    const sequences = this.#sequences?.begin(budget);
    const { length } = value;
    let best = matchesAll;
    let state = childOf(parts, 0, TEXT_START);
    let index = 0;
    // The position of a code unit is its index + 2, because the start of the value is the first position.
    for (; index < length && state !== 0 && state <= lastAtStart; index += 1) {
      state = this.#next(state, value.charCodeAt(index));
      if ((singles[state] as number) < best) best = singles[state] as number;
      if (sequences !== undefined) best = sequences.advance(state, index + 2, best);
    }
    if (best <= lowestBeyondStart) return best === NO_RANK ? -1 : best;
    if (!hasFloatingParts && index < length - longestAtEnd) {
      index = length - longestAtEnd;
      state = 0;
    }
    if (singles.length > CACHED_NODES) budget.spend((length - index) * STEPS_PER_CHARACTER);
    for (; index < length; index += 1) {
      state = this.#next(state, value.charCodeAt(index));
      if ((singles[state] as number) < best) best = singles[state] as number;
      if (sequences !== undefined) best = sequences.advance(state, index + 2, best);
    }
    state = this.#next(state, TEXT_END);
    if ((singles[state] as number) < best) best = singles[state] as number;
    if (sequences !== undefined) best = sequences.advance(state, length + 2, best);
    return best === NO_RANK ? -1 : best;
  }

  /** The node of the longest part's beginning that the text up to and including this label ends with. */
  #next(state: number, label: number): number {
    const { parts, failures } = this.#compiled;
    for (let suffix = state; suffix !== 0; suffix = failures[suffix] as number) {
      const next = childOf(parts, suffix, label);
      if (next !== 0) return next;
    }
    return label < DIRECT_UNITS ? (this.#starts[label] as number) : childOf(parts, 0, label);
  }
}
