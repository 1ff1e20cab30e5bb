import type { Observable } from 'rxjs';
import type { Count, CounterOperation } from '../../../../limiter/counter-operation';

/** One instance of the store: a single server, a master that sentinels monitor, or a cluster. */
export interface Store {
  /**
   * Applies the operations in order. Resolves with the count or the error of each; rejects with a `DecisionError` when all of
   * them failed for the same reason. An operation that may have been counted is not sent again.
   */
  apply(batch: readonly CounterOperation[]): Promise<readonly Count[]>;
  /** Whether a connection is alive: the present state, then every change. */
  readonly connected$: Observable<boolean>;
  /** Connections that could not be made or were lost. */
  readonly failures$: Observable<Error>;
  close(): void;
}
