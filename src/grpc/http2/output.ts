import { AbuseLimits } from './abuse-limits';
import { FrameWriter } from './frame-writer';
import { LIMITS, type Limits, type Peer } from './limits';
import { DEFAULT_WINDOW_BYTES, MAX_31_BITS, MAX_FRAME_BYTES, PeerSettings } from './protocol';
import type { Stream } from './stream';

/** Output above this size is written during the turn, so that the peer can work on it while a long turn continues. */
const FLUSH_BYTES = 64 * 1_024;
/**
 * A DATA frame smaller than this waits for a larger window, unless it is all that is waiting, or all that the peer's
 * initial window permits, or a tick comes.
 */
const WORTHWHILE_BYTES = 1_024;
/**
 * A dynamic table size update to 0 (RFC 7541, section 6.3). The server encodes without a table, and signals it to peers
 * that reduce theirs.
 */
const TABLE_SIZE_0 = 0x20;
const NO_PREFIX = -1;
const EMPTY = new Uint8Array(0);

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

/**
 * The output of a connection: frames that wait for the end of the turn, and DATA that waits for a flow-control window.
 */
export class Output {
  readonly writer: FrameWriter;
  readonly peerSettings = new PeerSettings();
  readonly abuse: AbuseLimits;
  /** The streams whose output waits for a window. */
  readonly waiting = new Set<Stream>();
  readonly #transport: Transport;
  /** The server's clock: output may follow long after the last input. */
  readonly #now: () => number;
  readonly #requestFlush: () => void;
  /** The flow-control window of the connection. */
  #window = DEFAULT_WINDOW_BYTES;
  #waitingBytes = 0;
  /** The byte to write before the next header block. */
  #prefix = NO_PREFIX;
  #maySendSizeUpdate = true;
  /** Control frames since {@link #countedFrom}. */
  #controlFrames = 0;
  /** What {@link #written} was when the count of control frames began. */
  #countedFrom = 0;
  /** Bytes that the transport was given. */
  #written = 0;
  /** What {@link #accepted} was when {@link hasProgressed} was last called, or reading was paused. */
  #acceptedBefore = 0;
  #isClosed = false;
  #hasOverflowed = false;
  /** A window has grown since the last pump. */
  isPumpDue = false;
  /** Too much output waits for the socket: nothing is read until it has been sent. */
  isPaused = false;

  /**
   * @param requestFlush called before the first frame after each flush: {@link flush} must be called at the end of the
   * turn
   */
  constructor(transport: Transport, limits: Limits, now: () => number, requestFlush: () => void) {
    this.#transport = transport;
    this.#now = now;
    this.abuse = new AbuseLimits(limits);
    this.#requestFlush = requestFlush;
    this.writer = new FrameWriter(requestFlush);
  }

  // ---------------------------------------------------------------- frames

  headers(stream: number, block: Uint8Array, endStream: boolean): void {
    this.writer.headers(stream, this.#prefix, block, endStream);
    this.#prefix = NO_PREFIX;
    this.abuse.headersSent();
  }

  /**
   * The peer has reduced its table: the next block begins with a size update. Once is enough, as 0 is valid for any
   * later size.
   */
  sendTableSizeUpdate(): void {
    if (this.#maySendSizeUpdate) this.#prefix = TABLE_SIZE_0;
    this.#maySendSizeUpdate = false;
  }

  /**
   * One piece of the response body, `first` and then `second`. It waits if a window is too small. Returns when it is
   * then overdue, or later; otherwise Infinity.
   */
  data(stream: Stream, first: Uint8Array, second: Uint8Array): number {
    const bytes = first.length + second.length;
    if (
      stream.waiting === undefined &&
      bytes <= MAX_FRAME_BYTES &&
      bytes <= this.#window &&
      bytes <= stream.sendWindow
    ) {
      this.#window -= bytes;
      stream.sendWindow -= bytes;
      this.writer.data(stream.id, first, second);
      this.abuse.dataSent();
      return Infinity;
    }
    if (this.isOverflowing) return this.#overflow();
    const piece = Buffer.concat([first, second]);
    const deadline = this.#now() + LIMITS.responsePieceMs;
    stream.waiting ??= { pieces: [], sent: 0, bytes: 0, trailers: undefined, deadline };
    stream.waiting.pieces.push(piece);
    stream.waiting.bytes += bytes;
    this.#waitingBytes += bytes;
    this.waiting.add(stream);
    return this.pump(stream, false) ? Infinity : deadline;
  }

  /** The connection is destroyed when this turn ends; until then, its output must not grow. */
  #overflow(): number {
    this.#hasOverflowed = true;
    this.#requestFlush();
    return Infinity;
  }

  /**
   * Ends the response with a header block once its output has been sent. Returns when that is overdue if it has to
   * wait, otherwise 0.
   */
  end(stream: Stream, trailers: Uint8Array): number {
    const { waiting } = stream;
    if (waiting === undefined) {
      this.headers(stream.id, trailers, true);
      return 0;
    }
    waiting.trailers = trailers;
    waiting.deadline = Math.min(waiting.deadline, this.#now() + LIMITS.responseMs);
    return waiting.deadline;
  }

  /**
   * Must be called before an answer to a control frame, or a WINDOW_UPDATE, is written. Returns false if too many of
   * them are unsent; the connection must then end.
   */
  mayControl(): boolean {
    this.#controlFrames += 1;
    if (this.#controlFrames <= LIMITS.maxUnsentControlFrames) return true;
    this.flush();
    // A socket with TLS has always accepted the last bytes in a later turn only, so an empty buffer cannot be expected
    // here.
    if (this.#accepted < this.#countedFrom) {
      return this.abuse.exceed('control_flood', 'answers to control frames are not read');
    }
    this.#controlFrames = 0;
    this.#countedFrom = this.#written;
    return true;
  }

  // ---------------------------------------------------------------- windows

  /** Enlarges the window of the connection. Returns false, and changes nothing, if it would exceed its maximum. */
  widen(increment: number): boolean {
    if (this.#window + increment > MAX_31_BITS) return false;
    this.#window += increment;
    this.isPumpDue = true;
    return true;
  }

  /** Enlarges the window of a stream in the same way. `increment` may be negative. */
  widenStream(stream: Stream, increment: number): boolean {
    if (stream.sendWindow + increment > MAX_31_BITS) return false;
    stream.sendWindow += increment;
    this.isPumpDue = true;
    return true;
  }

  /**
   * Sends waiting output of a stream as far as the windows permit. `isTick`: also in frames below
   * {@link WORTHWHILE_BYTES}. Returns whether all has been sent; its trailers, if it has any, are still to be sent by
   * {@link end}.
   */
  pump(stream: Stream, isTick: boolean): boolean {
    const waiting = stream.waiting!;
    while (waiting.bytes > 0) {
      const room = Math.min(this.#window, stream.sendWindow, MAX_FRAME_BYTES);
      const worthwhile = isTick ? 1 : Math.min(waiting.bytes, WORTHWHILE_BYTES, this.peerSettings.initialWindowBytes);
      if (room <= 0 || room < worthwhile) return false;
      const piece = waiting.pieces[0]!;
      const length = Math.min(room, piece.length - waiting.sent);
      this.writer.data(stream.id, piece.subarray(waiting.sent, waiting.sent + length), EMPTY);
      this.abuse.dataSent();
      this.#window -= length;
      stream.sendWindow -= length;
      this.#waitingBytes -= length;
      waiting.bytes -= length;
      waiting.sent += length;
      if (waiting.sent === piece.length) {
        waiting.pieces.shift();
        waiting.sent = 0;
        if (waiting.trailers === undefined) waiting.deadline = this.#now() + LIMITS.responsePieceMs;
      }
      this.flushIfLong();
    }
    this.discard(stream);
    return true;
  }

  /** Drops the waiting output of a stream. */
  discard(stream: Stream): void {
    if (stream.waiting === undefined) return;
    this.#waitingBytes -= stream.waiting.bytes;
    this.waiting.delete(stream);
    stream.waiting = undefined;
  }

  // ---------------------------------------------------------------- the socket

  /** Bytes that the socket has not accepted. */
  get #unsent(): number {
    return this.writer.pending + this.#transport.writableLength;
  }

  /** Bytes that the socket has accepted. It accepts what was written together at once, when the last byte is sent. */
  get #accepted(): number {
    return this.#written - this.#transport.writableLength;
  }

  get exceedsSoftLimit(): boolean {
    return this.#unsent > LIMITS.softOutputBytes;
  }

  /** The connection must be destroyed. */
  get isOverflowing(): boolean {
    return this.#hasOverflowed || this.#waitingBytes + this.#unsent > LIMITS.hardOutputBytes;
  }

  flushIfLong(): void {
    if (this.writer.pending >= FLUSH_BYTES) this.flush();
  }

  flush(): void {
    if (this.writer.pending === 0 || this.#isClosed) return;
    const bytes = this.writer.take();
    this.#written += bytes.length;
    this.#transport.write(bytes);
  }

  /** Sends the frames written so far; frames written later are dropped. */
  close(): void {
    this.flush();
    this.#isClosed = true;
  }

  pause(): void {
    this.isPaused = true;
    this.#transport.pause();
    this.#acceptedBefore = this.#accepted;
  }

  resume(): void {
    if (this.isPaused) this.#transport.resume();
    this.isPaused = false;
  }

  /** Whether the socket has accepted anything since this was last called, or since {@link pause}. */
  hasProgressed(): boolean {
    const before = this.#acceptedBefore;
    this.#acceptedBefore = this.#accepted;
    return this.#acceptedBefore !== before;
  }
}
