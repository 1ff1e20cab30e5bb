import type { Observable } from 'rxjs';
import type { CounterOperation } from '../../../../limiter/counter-operation';
import type { CounterLane } from '../../../../streams/ports/counters';

/** One instance of the store: a single server, a master that sentinels monitor, or a cluster. */
export interface Store {
  /** The lane of the server that holds the key of an operation. An operation that may have been counted is not sent again. */
  laneOf(operation: CounterOperation): CounterLane;
  /** Whether a connection is alive: the present state, then every change. */
  readonly connected$: Observable<boolean>;
  /** Connections that could not be made or were lost. */
  readonly failures$: Observable<Error>;
  close(): void;
}
