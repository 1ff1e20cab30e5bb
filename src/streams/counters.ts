import type { Observable } from 'rxjs';
import type { DecisionError } from '../limiter/decision-error';

/** One step on one counter. */
export interface CounterOperation {
  /** The cache key: `docs` in `limiter/cache-key.ts`. */
  readonly key: string;
  /**
   * Above 0: hits to add. 0: only read; an absent key counts 0 and is not created. Below 0: hits to take away, floored at 0,
   * keeping the key's expiry; an absent key stays absent and counts 0.
   */
  readonly hits: number;
  /** Length of the counter's window in seconds. A key that has no expiry gets this, plus the store's jitter. */
  readonly windowSeconds: number;
  /**
   * Operations that follow each other and share a guard are one step (STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT): when any of
   * them would go over its limit, each judged alone on the stored count, only those that are over or would go over are
   * added; the others are only read.
   */
  readonly guard: Guard | undefined;
  /** `requests_per_unit`, looked at only under a guard. */
  readonly limit: number;
}

/** Ties the operations of one request together; compared by identity. */
export interface Guard {
  readonly size: number;
}

/** A count after an operation, or the error of that operation alone. */
export type Count = number | DecisionError;

/**
 * Where counts live. One call is one pipeline: its operations take effect in order, operations on the same key as if sent
 * one by one.
 */
export interface Counters {
  /**
   * Emits once, the count after each operation, in the order of the batch, and completes; or fails as a whole with a
   * {@link DecisionError}. A failed batch may have been counted once, never twice: implementations do not retry what the
   * store may have applied. Unsubscribing does not take back what was sent.
   */
  apply(batch: readonly CounterOperation[]): Observable<readonly Count[]>;
  /** Whether a connection to the store is alive; the present state on subscribing, then every change. */
  readonly connected$: Observable<boolean>;
  /** Finishes what was begun, then lets go of connections and timers. */
  close(): Promise<void>;
}
