import type { DecisionError } from './decision-error';

/** One step on one counter. */
export interface CounterOperation {
  /** The cache key, with the start of its window: see {@link cacheKeyBody}. */
  readonly key: string;
  /**
   * Above 0: hits to add. 0: only read; an absent key counts 0 and is not created. Below 0: hits to take away, floored at
   * 0, keeping the key's expiry; an absent key stays absent and counts 0.
   */
  readonly hits: number;
  /** Length of the counter's window in seconds. A key without expiry is given this, plus the store's jitter. */
  readonly windowSeconds: number;
  /**
   * Operations that follow each other and share a guard are one step (STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT): when any of
   * them would go over its limit, each judged alone on the stored count, only those that are over or would go over are
   * added; the others are only read.
   */
  readonly guard: Guard | undefined;
  /** `requests_per_unit`; looked at only under a guard. */
  readonly limit: number;
}

/** Ties the operations of one request together; compared by identity. */
export interface Guard {
  readonly operations: number;
}

/** A count after an operation, or the error of that operation alone. */
export type Count = number | DecisionError;
