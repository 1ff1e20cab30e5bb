import type { Observable } from 'rxjs';
import type { Count, CounterOperation } from '../../../../limiter/counter-operation';

/** One instance of the store: a server, a master that sentinels watch, or a cluster. */
export interface Store {
  /**
   * Takes the operations in order. Resolves with the count or the error of each; rejects with a `DecisionError` when all of
   * them failed alike. Nothing is tried twice that may have been counted.
   */
  run(batch: readonly CounterOperation[]): Promise<readonly Count[]>;
  /** Whether a connection is alive: the present state, then every change. */
  readonly connected$: Observable<boolean>;
  /** Attempts to connect that failed, and connections that were lost. */
  readonly failures$: Observable<Error>;
  close(): void;
}
