import type { CancelCause } from '../../../streams/ports/decide';
import type { FailureBlocks } from '../responses';

/** A call as the server drives it: the events of its stream. */
export interface Call {
  /** More of the request body, in `source[start, end)`. */
  data(source: Buffer, start: number, end: number, isEnded: boolean): void;
  /** The call is scheduled to run: all input that had arrived has been read. */
  run(): void;
  /** It is scheduled, but may run only seconds later. Called at least once in this case. */
  waits(): void;
  /** The stream has been reset or its connection closed. */
  cancel(cause: CancelCause): void;
  /** The time set with `Stream.expireAt` has passed. */
  expire(): void;
  /** The memory of its incomplete request is needed for other connections: the call must end. */
  displaced(): void;
  /** Everything sent so far has left for the peer. */
  drained(): void;
  /** The connection is shutting down and waits for the call to end. */
  goingAway(): void;
}

/** What all calls of a server share. */
export interface CallContext {
  readonly failures: FailureBlocks;
  /** Milliseconds, monotonic. */
  now(): number;
  /** A handler threw: an internal error, to be logged. The caller receives no details. */
  handlerFailed(path: string, error: unknown): void;
}
