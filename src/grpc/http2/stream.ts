import { DEFAULT_WINDOW_BYTES } from './protocol';

/**
 * Why the server stops a call: its memory is needed for other requests, the server stops and waits for the call, or the
 * time that calls have after a shutdown began is over.
 */
export type StopReason = 'memory' | 'drain' | 'grace';

/** A call as its connection drives it: the events of its stream. No method may throw. */
export interface Call {
  /**
   * More of the body has been received, in `source[start, end)`. The bytes never change, but a view of them keeps a
   * whole chunk of input in memory: copy what is kept beyond the turn. `isEnded`: the request is complete.
   */
  data(source: Buffer, start: number, end: number, isEnded: boolean): void;
  /** Called after {@link Streams.schedule}, once all input that had arrived has been read. */
  run(): void;
  /**
   * The call is scheduled, but may have to wait for seconds, as the process has more work than time, or the peer does
   * not read its output: what it keeps is to be accounted for. Called at least once before it runs late.
   */
  waits(): void;
  /** The stream was closed before the response was complete: reset by either side, or its connection has ended. */
  cancel(): void;
  /** The time set by {@link Streams.expireAt} has come. */
  expire(): void;
  /** All output that waited for a flow-control window has been sent. */
  drained(): void;
  /** The call must end now, by {@link Streams.stop}. */
  stop(reason: StopReason): void;
}

/** Output of a stream that waits for the window of the stream or of the connection. */
export interface WaitingOutput {
  readonly pieces: Uint8Array[];
  /** Bytes of the first piece that have been sent. */
  sent: number;
  /** Bytes that have not been sent. */
  bytes: number;
  /** The header block that follows the last byte; undefined while the response is not complete. */
  trailers: Uint8Array | undefined;
  /** When the window must have accepted the first piece or, once the response is complete, all of it. */
  deadline: number;
}

/** The state of one request and its response. What can be done with it is in {@link Streams}. */
export class Stream {
  /** Undefined if the request was rejected by its headers. */
  call: Call | undefined;
  /** Nothing more is received or sent. The stream still takes a slot while {@link isRunning}. */
  isClosed = false;
  /** The peer sent END_STREAM. */
  isRemoteEnded = false;
  /** The application works on it: from {@link Call.run} to {@link Streams.release}. */
  isRunning = false;
  /** See {@link Streams.keepOpen}. */
  staysOpen = false;
  /** {@link WorkPacing} counts it. */
  isCounted = false;
  /** {@link Call.run} has been called. */
  hasRun = false;
  /** Bytes that the peer may still send. */
  receiveWindow = DEFAULT_WINDOW_BYTES;
  /** Bytes consumed that no WINDOW_UPDATE has returned to the peer. */
  unrefunded = 0;
  /** Bytes of the body that have been received. */
  bodyBytes = 0;
  /** Bytes of the request that are kept: see {@link Streams.hold}. */
  held = 0;
  /** See {@link Streams.requestCompleted}. */
  isRequestComplete = false;
  /** When the request last made progress, and the bytes kept since then; for {@link HeldBytes}. */
  progressAt = 0;
  progressBytes = 0;
  /** The charge for small DATA frames of an incomplete message. */
  smallDataCharged = 0;
  /** Output that waits for a window; undefined if there is none. */
  waiting: WaitingOutput | undefined;
  expiresAt = Infinity;
  /** The next stream in the same slot of {@link StreamTable}. */
  next: Stream | undefined;

  constructor(
    readonly id: number,
    /** Bytes that may still be sent to the peer; negative after the peer has reduced its initial window. */
    public sendWindow: number,
    /** Bytes of the body that must follow according to content-length; -1 without a content-length. */
    public contentLeft: number,
  ) {}
}
