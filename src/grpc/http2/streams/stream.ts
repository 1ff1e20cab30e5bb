import { DEFAULT_WINDOW_BYTES, type ErrorCode } from '../frames/protocol';

const NOTHING = new Uint8Array(0);

/** What a stream asks of its connection. */
export interface StreamOwner<S> {
  /** The server's clock at the beginning of this turn: milliseconds, monotonic. */
  readonly now: number;
  /** The peer's SETTINGS_INITIAL_WINDOW_SIZE. */
  readonly peerInitialWindow: number;
  /** The peer's SETTINGS_MAX_HEADER_LIST_SIZE, Infinity where it set none. */
  readonly peerMaxHeaderListBytes: number;
  schedule(stream: Stream<S>): void;
  releasePlace(): void;
  expireStreamAt(stream: Stream<S>, time: number): void;
  /** Whether so many bytes more may be kept for the stream. */
  hold(stream: Stream<S>, bytes: number): boolean;
  letGo(stream: Stream<S>, bytes: number): void;
  refund(stream: Stream<S>, bytes: number): void;
  refundSmallData(stream: Stream<S>): void;
  resetStream(stream: Stream<S>, code: ErrorCode): void;
  sendHeaders(stream: Stream<S>, block: Uint8Array): void;
  sendData(stream: Stream<S>, first: Uint8Array, second: Uint8Array): void;
  /** `trailers`: a header block, or {@link NO_TRAILERS} for a bare end. */
  sendEnd(stream: Stream<S>, trailers: Uint8Array): void;
}

export const NO_TRAILERS = new Uint8Array(0);

/** Output of one stream that its window, or the connection's, does not take yet. */
export interface WaitingOutput {
  readonly pieces: Uint8Array[];
  /** Bytes of the first piece already sent. */
  sent: number;
  /** Bytes still to send. */
  bytes: number;
  /** What follows the last byte; {@link NO_TRAILERS} for a bare end, undefined while the response goes on. */
  trailers: Uint8Array | undefined;
  /** When the window must have taken the first piece or, once the response is whole, all of it. */
  deadline: number;
}

/**
 * One request and its response. The application answers through its methods: {@link sendHeaders}, any number of
 * {@link sendData}, and {@link sendTrailers} or {@link end}; on a stream that is closed they do nothing.
 */
export class Stream<S> {
  /** What the application keeps for it. */
  state: S | undefined;

  /** Nothing more is received or sent; the stream's place may still be taken by work that goes on. */
  isClosed = false;
  /** The peer sent END_STREAM. */
  isRemoteEnded = false;
  /** Work for it has begun and has not ended: see {@link release}. */
  isRunning = false;
  /** Work for it has begun at some time. */
  wasRun = false;
  /** What the peer may still send. */
  receiveWindow = DEFAULT_WINDOW_BYTES;
  /** What the peer's window takes; below 0 after it lowered its settings. */
  sendWindow: number;
  /** Bytes of body that content-length still promises; undefined where it promised nothing. */
  contentLeft: number | undefined;
  /** Consumed, and not yet told to the peer. */
  unrefunded = 0;
  /** Bytes kept of the request: see {@link hold}. */
  held = 0;
  /** Charged for small DATA frames of a message not yet whole. */
  smallDataCharged = 0;
  /** Output that waits for a window; undefined where none does. */
  waiting: WaitingOutput | undefined;
  expiresAt = Infinity;

  constructor(
    readonly connection: StreamOwner<S>,
    readonly id: number,
    sendWindow: number,
    contentLength: number,
  ) {
    this.sendWindow = sendWindow;
    this.contentLeft = contentLength < 0 ? undefined : contentLength;
  }

  /** Has {@link Application.run} called for this stream when all input at hand is read. */
  schedule(): void {
    this.connection.schedule(this);
  }

  /** The work begun by {@link Application.run} has ended: the stream's place is free once it is closed. Once per run. */
  release(): void {
    this.isRunning = false;
    if (this.isClosed) this.connection.releasePlace();
  }

  /** Has {@link Application.expire} called at this time of the server's clock, or within a tick of it. */
  expireAt(time: number): void {
    this.connection.expireStreamAt(this, time);
  }

  /**
   * Bytes of the request are kept beyond the turn: false when the connection, or the server, keeps too many already. They
   * count until {@link letGo}, or until the stream is closed.
   */
  hold(bytes: number): boolean {
    return this.isClosed || this.connection.hold(this, bytes);
  }

  letGo(bytes: number): void {
    if (!this.isClosed) this.connection.letGo(this, bytes);
  }

  /** Bytes received are dealt with: the peer may send as many more on this stream. */
  consumed(bytes: number): void {
    if (!this.isClosed && !this.isRemoteEnded) this.connection.refund(this, bytes);
  }

  /** A message of the request is whole: small frames are no longer held against it. */
  messageEnded(): void {
    if (this.smallDataCharged > 0) this.connection.refundSmallData(this);
  }

  sendHeaders(block: Uint8Array): void {
    if (!this.isClosed) this.connection.sendHeaders(this, block);
  }

  /** Two pieces of one DATA frame, so that a prefix costs no copy. Copied before this returns. */
  sendData(first: Uint8Array, second: Uint8Array = NOTHING): void {
    if (!this.isClosed) this.connection.sendData(this, first, second);
  }

  /** A header block that ends the response; where nothing was sent before, it is the whole response. */
  sendTrailers(block: Uint8Array): void {
    if (!this.isClosed) this.connection.sendEnd(this, block);
  }

  /** Ends the response without trailers. */
  end(): void {
    if (!this.isClosed) this.connection.sendEnd(this, NO_TRAILERS);
  }

  /** Bytes sent that wait for a window. */
  get waitingBytes(): number {
    return this.waiting?.bytes ?? 0;
  }

  /** Ends the stream without a whole response. */
  reset(code: ErrorCode): void {
    if (!this.isClosed) this.connection.resetStream(this, code);
  }
}
