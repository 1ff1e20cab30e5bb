import type { Observable } from 'rxjs';
import type { Count, CounterOperation } from '../../limiter/counter-operation';

/**
 * A counter store. The operations of a batch take effect in order; operations on the same key as if they were sent one by one.
 */
export interface Counters {
  /**
   * Emits once, the count after each operation, in the order of the batch, and completes; or fails as a whole with a
   * `DecisionError`. A failed batch may have been counted once, never twice: implementations do not retry what the store
   * may have applied. Unsubscribing does not undo what was sent.
   */
  apply(batch: readonly CounterOperation[]): Observable<readonly Count[]>;
  /** Whether a connection to the store is alive: the present state on subscribing, then every change. */
  readonly connected$: Observable<boolean>;
  /** Waits for batches in flight, then releases connections and timers. */
  close(): Promise<void>;
}
