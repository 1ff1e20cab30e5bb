import type { ServerContext } from '../streams/connection-control';
import type { TurnTask } from './turn-queue';

/** What a connection uses of its server. */
export interface ConnectionContext<M, S> extends ServerContext<M, S> {
  /** Milliseconds, monotonic. */
  now(): number;
  /** Reports an internal error. The connection on which it occurred is ended. */
  internalError(error: unknown): void;
  /** Requests a call of {@link TurnTask.flush} at the end of this turn. */
  flushLater(connection: TurnTask): void;
  /** Requests a call of {@link TurnTask.runScheduled} in the next turn. */
  runLater(connection: TurnTask): void;
}
