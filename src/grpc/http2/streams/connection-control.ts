import type { ErrorCode } from '../frames/protocol';
import type { Refusal } from '../limits/refusals';

/** What the parts of a connection know of the whole. */
export interface ConnectionControl {
  /** The server's clock at the beginning of this turn: milliseconds, monotonic. */
  readonly now: number;
  /** GOAWAY with an error was sent, or the wire is gone: nothing is read any more. */
  readonly isOver: boolean;
  /** Has the deadlines looked at when this time has come. */
  wakeAt(time: number): void;
  /** An answer to a control frame, or a refund, is about to be written: where it may not, this has ended the connection. */
  mayControl(): boolean;
  /** Ends the connection, if it is not over already. `message` is for the peer's log. */
  fail(code: ErrorCode, refusal: Refusal, message: string): void;
}

/** What carries a connection: the part of a socket that the connection needs. */
export interface Transport {
  /** Bytes given to {@link write} that have not left. */
  readonly writableLength: number;
  /** The bytes are the wire's from here on. */
  write(bytes: Uint8Array): unknown;
  pause(): unknown;
  resume(): unknown;
  /** Sends what was written, then the end. */
  end(): unknown;
  destroy(): unknown;
}
