import type { Counted } from '../../counting/operation';

/** A counter as a store has it. */
export interface StoredCounter {
  /** 0 for an absent key; at most 2^53 − 1. */
  readonly count: number;
  /** Whole seconds until the store removes the key; null when there is none, or the store cannot report it. */
  readonly timeToLive: number | null;
}

/**
 * Reads and changes single counters for operators, apart from the pipelines of decisions. Every method rejects with a
 * `DecisionError` when the store fails, and for a key that it does not allow; a change may have been applied then.
 */
export interface CounterAdministration {
  readCounter(counter: Counted): Promise<StoredCounter>;
  /**
   * Sets the count. A key keeps its expiry; a new one gets that of a counter that is hit for the first time.
   *
   * @param count from 0 to 2^53 − 1; null: the key is removed, so that the next hit is the first one
   * @returns the counter before; hits that are counted meanwhile may be missing in it
   */
  changeCounter(counter: Counted, count: number | null): Promise<StoredCounter>;
}
