import type { Observable } from 'rxjs';
import type { CounterOperation } from '../../../../limiter/counter-operation';
import type { CounterLane } from '../../../../streams/ports/counters';

/** Sends one command. Resolves with its reply, which may be an error; rejects when the connection is lost. */
export type SendCommand = (name: string, ...args: readonly string[]) => Promise<unknown>;

/** One instance of the store: a single server, a master that sentinels monitor, or a cluster. */
export interface Store {
  /** The lane of the server that holds the key of an operation. An operation that may have been counted is not sent again. */
  laneOf(operation: CounterOperation): CounterLane;
  /**
   * Runs commands on one key, on the server that holds it. They are run again from the first one when the key has moved; an error
   * reply that they throw is the error of this call alone.
   *
   * Rejects with a DecisionError.
   */
  run<T>(key: string, commands: (send: SendCommand) => Promise<T>): Promise<T>;
  /** Whether a connection is alive: the present state, then every change. */
  readonly connected$: Observable<boolean>;
  /** Connections that could not be made or were lost. */
  readonly failures$: Observable<Error>;
  close(): void;
}
