import type { Observable } from 'rxjs';
import type { Count, CounterOperation } from '../../limiter/counter-operation';

/**
 * Where counts live. One call is one pipeline: its operations take effect in order, operations on the same key as if sent
 * one by one.
 */
export interface Counters {
  /**
   * Emits once, the count after each operation, in the order of the batch, and completes; or fails as a whole with a
   * `DecisionError`. A failed batch may have been counted once, never twice: implementations do not retry what the store
   * may have applied. Unsubscribing does not take back what was sent.
   */
  apply(batch: readonly CounterOperation[]): Observable<readonly Count[]>;
  /** Whether a connection to the store is alive: the present state on subscribing, then every change. */
  readonly connected$: Observable<boolean>;
  /** Finishes what was begun, then lets go of connections and timers. */
  close(): Promise<void>;
}
