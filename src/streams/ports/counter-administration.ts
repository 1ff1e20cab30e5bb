/** A counter of a store. */
export interface CounterKey {
  /** The cache key, including the start of its window. */
  readonly key: string;
  /** The length of its window in seconds: per-second counters may have a store of their own. */
  readonly windowSeconds: number;
  /** Whether it is in the main store in any case. */
  readonly isInMainStore?: boolean | undefined;
}

/** A counter as a store has it. */
export interface StoredCounter {
  /** 0 for an absent key; at most 2^53 − 1. */
  readonly count: number;
  /** Whole seconds until the store removes the key; null when there is none, or the store cannot report it. */
  readonly timeToLive: number | null;
}

/**
 * Reads and changes single counters for operators, apart from the pipelines of decisions. Every method rejects with a `DecisionError`
 * when the store fails, and for a key that it does not allow; a change may have been applied then.
 */
export interface CounterAdministration {
  readCounter(counter: CounterKey): Promise<StoredCounter>;
  /**
   * Sets the count. A key keeps its expiry; a new one gets that of a counter that is hit for the first time.
   *
   * @param count from 0 to 2^53 − 1
   * @returns the counter before; hits that are counted meanwhile may be missing in it
   */
  setCounter(counter: CounterKey, count: number): Promise<StoredCounter>;
  /** Removes the key, so that the next hit is the first one. Returns the counter before, as {@link setCounter}. */
  clearCounter(counter: CounterKey): Promise<StoredCounter>;
}
