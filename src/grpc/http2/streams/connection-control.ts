import type { ErrorCode } from '../protocol';
import type { HeaderBlockReader } from '../header-reader';
import type { Limits } from '../limits/limits';
import type { OnRejected, Peer, Rejection } from '../limits/rejections';
import type { Application } from './application';
import type { HeldBytes } from './held-bytes';
import type { WorkPacing } from './work-pacing';

/** What the connections of a server share. */
export interface ServerContext<M, S> {
  readonly application: Application<M, S>;
  readonly limits: Limits;
  readonly headerBlocks: HeaderBlockReader<M>;
  readonly heldBytes: HeldBytes<S>;
  /** Streams that are open, or closed while the application still works on them, on all connections. */
  openStreams: number;
  readonly workPacing: WorkPacing;
  readonly rejected: OnRejected;
}

/** The state and the operations of a connection that its parts use. */
export interface ConnectionControl {
  readonly peer: Peer;
  /** The server's clock at the beginning of this turn: milliseconds, monotonic. */
  readonly now: number;
  /** The final GOAWAY has been sent, or the transport is closed: no more input is read. */
  readonly hasEnded: boolean;
  /** Checks the deadlines once this time has come. */
  wakeAt(time: number): void;
  /**
   * Must be called before an answer to a control frame, or a WINDOW_UPDATE, is written. Returns false if too many of them are
   * unsent; the connection has then been ended.
   */
  mayControl(): boolean;
  /** Reports a rejection; see {@link OnRejected}. */
  rejected(kind: Rejection, reason?: string): void;
  /** Ends the connection unless it has ended. `message` becomes the debug data of GOAWAY. */
  fail(code: ErrorCode, rejection: Rejection, message: string): void;
}

export interface Clock {
  /** Milliseconds, monotonic. */
  now(): number;
}

/** The operations of a socket that a connection uses. */
export interface Transport extends Peer {
  /** Bytes given to {@link write} that have not been sent. */
  readonly writableLength: number;
  /** The transport owns the bytes from then on. */
  write(bytes: Uint8Array): unknown;
  pause(): unknown;
  resume(): unknown;
  /** Sends what was written, and then ends this side. */
  end(): unknown;
  destroy(): unknown;
}
