import type { Peer, Rejection } from '../limits/rejections';
import { DEFAULT_WINDOW_BYTES, type ErrorCode } from '../protocol';

const EMPTY = new Uint8Array(0);

/** The operations of a connection that its streams use. */
export interface StreamControl<S> {
  readonly peer: Peer;
  /** The server's clock at the beginning of this turn: milliseconds, monotonic. */
  readonly now: number;
  /** The peer's SETTINGS_INITIAL_WINDOW_SIZE. */
  readonly peerInitialWindow: number;
  /** The peer's SETTINGS_MAX_HEADER_LIST_SIZE, Infinity if it sent none. */
  readonly peerMaxHeaderListBytes: number;
  schedule(stream: Stream<S>): void;
  /** A stream that {@link Stream.isCounted} does not run any more. */
  workEnded(): void;
  releaseSlot(): void;
  expireStreamAt(stream: Stream<S>, time: number): void;
  /** See {@link Stream.hold}. */
  hold(stream: Stream<S>, bytes: number): boolean;
  releaseHeld(stream: Stream<S>, bytes: number): void;
  requestCompleted(stream: Stream<S>): void;
  displace(stream: Stream<S>): void;
  refund(stream: Stream<S>, bytes: number): void;
  refundSmallData(stream: Stream<S>): void;
  rejected(kind: Rejection): void;
  resetStream(stream: Stream<S>, code: ErrorCode): void;
  sendHeaders(stream: Stream<S>, block: Uint8Array): void;
  sendData(stream: Stream<S>, first: Uint8Array, second: Uint8Array): void;
  /** `trailers`: a header block, or {@link NO_TRAILERS}. */
  sendEnd(stream: Stream<S>, trailers: Uint8Array): void;
}

/** In place of trailers: the response ends with an empty DATA frame. */
export const NO_TRAILERS = new Uint8Array(0);

/** Output of a stream that waits for the window of the stream or of the connection. */
export interface WaitingOutput {
  readonly pieces: Uint8Array[];
  /** Bytes of the first piece that have been sent. */
  sent: number;
  /** Bytes that have not been sent. */
  bytes: number;
  /** The header block that follows the last byte, or {@link NO_TRAILERS}; undefined while the response is not complete. */
  trailers: Uint8Array | undefined;
  /** When the window must have accepted the first piece or, once the response is complete, all of it. */
  deadline: number;
}

/**
 * One request and its response. The application responds with {@link sendHeaders}, any number of {@link sendData}, and
 * {@link sendTrailers} or {@link end}. On a closed stream these methods do nothing.
 */
export class Stream<S> {
  /** The application's state for the stream. */
  state: S | undefined;

  /** Nothing more is received or sent. The stream still takes a slot while {@link isRunning}. */
  isClosed = false;
  /** The peer sent END_STREAM. */
  isRemoteEnded = false;
  /** The application works on it: from {@link Application.run} to {@link release}. */
  isRunning = false;
  /** Whether its work ends soon after it has begun, so that {@link WorkPacing} counts it while it runs. */
  isPaced = true;
  /** {@link WorkPacing} counts it. */
  isCounted = false;
  /** {@link Application.run} has been called. */
  hasRun = false;
  /** Bytes that the peer may still send. */
  receiveWindow = DEFAULT_WINDOW_BYTES;
  /** Bytes that may still be sent to the peer; negative after the peer has reduced its initial window. */
  sendWindow: number;
  /** Bytes of the body that must follow according to content-length; undefined without a content-length. */
  contentLeft: number | undefined;
  /** Bytes consumed that no WINDOW_UPDATE has returned to the peer. */
  unrefunded = 0;
  /** Bytes of the body that have been received. */
  bodyBytes = 0;
  /** Bytes of the request that are kept: see {@link hold}. */
  held = 0;
  /** See {@link requestCompleted}. */
  isRequestComplete = false;
  /** When the request last made progress, and the bytes kept since then; for {@link HeldBytes}. */
  progressAt = 0;
  progressBytes = 0;
  /** The charge for small DATA frames of an incomplete message. */
  smallDataCharged = 0;
  /** Output that waits for a window; undefined if there is none. */
  waiting: WaitingOutput | undefined;
  expiresAt = Infinity;

  constructor(
    readonly connection: StreamControl<S>,
    readonly id: number,
    sendWindow: number,
    contentLength: number,
  ) {
    this.sendWindow = sendWindow;
    this.contentLeft = contentLength < 0 ? undefined : contentLength;
  }

  /** Requests a call of {@link Application.run} once all input that has arrived is read. */
  schedule(): void {
    this.connection.schedule(this);
  }

  /** The work begun by {@link Application.run} has ended. Must be called once per run; a closed stream then frees its slot. */
  release(): void {
    this.stopCounting();
    this.isRunning = false;
    if (this.isClosed) this.connection.releaseSlot();
  }

  /** It does not run at present. */
  stopCounting(): void {
    if (!this.isCounted) return;
    this.isCounted = false;
    this.connection.workEnded();
  }

  /** Requests a call of {@link Application.expire} at this time of the server's clock, or up to one tick later. */
  expireAt(time: number): void {
    this.connection.expireStreamAt(this, time);
  }

  /** Reports that the application rejects the request; see {@link OnRejected}. */
  rejected(kind: Rejection): void {
    this.connection.rejected(kind);
  }

  /**
   * Accounts for bytes of the request that are kept beyond the turn, until {@link releaseHeld} or until the stream is closed.
   * Returns false if the connection or the server keeps too many; the bytes must then not be kept. Until
   * {@link requestCompleted}, {@link Application.displaced} may take the memory back.
   */
  hold(bytes: number): boolean {
    return this.isClosed || this.connection.hold(this, bytes);
  }

  /** Bytes accounted for by {@link hold} are no longer kept. */
  releaseHeld(bytes: number): void {
    if (!this.isClosed) this.connection.releaseHeld(this, bytes);
  }

  /** The whole request has been received, and its handling needs what it holds. */
  requestCompleted(): void {
    if (this.held > 0) this.connection.requestCompleted(this);
    this.isRequestComplete = true;
  }

  /** Bytes received have been processed: the peer may send as many more on this stream. */
  consumed(bytes: number): void {
    if (!this.isClosed && !this.isRemoteEnded) this.connection.refund(this, bytes);
  }

  /** A message of the request is complete: the charge for its small frames is refunded. */
  messageEnded(): void {
    if (this.smallDataCharged > 0) this.connection.refundSmallData(this);
  }

  sendHeaders(block: Uint8Array): void {
    if (!this.isClosed) this.connection.sendHeaders(this, block);
  }

  /** Sends `first` and then `second`, so that a prefix needs no concatenation. Both are copied before this returns. */
  sendData(first: Uint8Array, second: Uint8Array = EMPTY): void {
    if (!this.isClosed) this.connection.sendData(this, first, second);
  }

  /** Ends the response with a header block. If nothing was sent before, the block is the whole response. */
  sendTrailers(block: Uint8Array): void {
    if (!this.isClosed) this.connection.sendEnd(this, block);
  }

  /** Ends the response without trailers. */
  end(): void {
    if (!this.isClosed) this.connection.sendEnd(this, NO_TRAILERS);
  }

  /** Bytes of the response that wait for a window. */
  get waitingBytes(): number {
    return this.waiting?.bytes ?? 0;
  }

  /** Resets the stream; its response is incomplete. */
  reset(code: ErrorCode): void {
    if (!this.isClosed) this.connection.resetStream(this, code);
  }
}
