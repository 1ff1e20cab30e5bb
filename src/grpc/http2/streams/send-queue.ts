import type { AbuseLimits } from '../limits/abuse-limits';
import { FrameWriter } from '../frames/frame-writer';
import type { Limits } from '../limits/limits';
import type { PeerSettings } from '../frames/peer-settings';
import { DEFAULT_WINDOW_BYTES, MAX_31_BITS, MAX_FRAME_BYTES } from '../frames/protocol';
import { NO_TRAILERS, type Stream } from './stream';
import type { Transport } from './connection-control';

/** Output beyond this leaves at once, so that a long turn keeps the peer busy. */
const FLUSH_BYTES = 64 * 1_024;
/** A DATA frame waits until the window takes this much, or all there is, or all that it ever will; or for a tick. */
const WORTHWHILE_BYTES = 1_024;
/** A table size update to 0 (RFC 7541, section 6.3): our encoder keeps no table, and says so where a peer asks for a small one. */
const TABLE_SIZE_0 = 0x20;
const NO_PREFIX = -1;
const NOTHING = new Uint8Array(0);

export interface SendQueueOwner<S> {
  readonly now: number;
  wakeAt(time: number): void;
  /** The first byte of a turn was written: somebody has to call {@link SendQueue.flush}. */
  outputBegan(): void;
  /** Trailers, or a bare end, have been written. */
  responseEnded(stream: Stream<S>): void;
  outputDrained(stream: Stream<S>): void;
  /** A limit of {@link Limits} is passed: the connection cannot be kept. */
  outputOverflowed(): void;
}

/** The sending half of a connection: what waits for the peer's windows, what waits for the socket. */
export class SendQueue<S> {
  readonly #owner: SendQueueOwner<S>;
  readonly #peer: PeerSettings;
  readonly #allowances: AbuseLimits;
  readonly #wire: Transport;
  readonly #limits: Limits;
  readonly writer: FrameWriter;
  #window = DEFAULT_WINDOW_BYTES;
  #waitingBytes = 0;
  readonly #waiting = new Set<Stream<S>>();
  #prefix = NO_PREFIX;
  #owedSizeUpdate = true;
  #controlFrames = 0;
  #pumpDue = false;
  #isClosed = false;

  constructor(owner: SendQueueOwner<S>, peer: PeerSettings, allowances: AbuseLimits, wire: Transport, limits: Limits) {
    this.#owner = owner;
    this.#peer = peer;
    this.#allowances = allowances;
    this.#wire = wire;
    this.#limits = limits;
    this.writer = new FrameWriter(() => owner.outputBegan());
  }

  /** Bytes that the socket has not taken. */
  get unsent(): number {
    return this.writer.pending + this.#wire.writableLength;
  }

  get isOverSoftLimit(): boolean {
    return this.unsent > this.#limits.softOutputBytes;
  }

  get hasWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  headers(stream: number, block: Uint8Array, endStream = false): void {
    this.writer.headers(stream, this.#prefix, block, endStream);
    this.#prefix = NO_PREFIX;
    this.#allowances.sentHeaders();
  }

  /** The peer's table is smaller than the default. Once is enough: we stay at 0, which is no more than any later size. */
  oweTableSizeUpdate(): void {
    if (this.#owedSizeUpdate) this.#prefix = TABLE_SIZE_0;
    this.#owedSizeUpdate = false;
  }

  data(stream: Stream<S>, first: Uint8Array, second: Uint8Array): void {
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
      this.#allowances.sentData();
      return;
    }
    const piece = Buffer.concat([first, second]);
    if (stream.waiting === undefined) {
      const deadline = this.#owner.now + this.#limits.responsePieceMs;
      stream.waiting = { pieces: [piece], sent: 0, bytes, trailers: undefined, deadline };
      this.#waiting.add(stream);
      this.#owner.wakeAt(deadline);
    } else {
      stream.waiting.pieces.push(piece);
      stream.waiting.bytes += bytes;
    }
    this.#waitingBytes += bytes;
    this.#pumpStream(stream, false);
    if (this.#waitingBytes + this.unsent > this.#limits.hardOutputBytes) this.#owner.outputOverflowed();
  }

  /** `trailers`: a header block, or {@link NO_TRAILERS} for a bare end. */
  end(stream: Stream<S>, trailers: Uint8Array): void {
    const { waiting } = stream;
    if (waiting !== undefined) {
      waiting.trailers = trailers;
      waiting.deadline = Math.min(waiting.deadline, this.#owner.now + this.#limits.responseMs);
      this.#owner.wakeAt(waiting.deadline);
      return;
    }
    if (trailers === NO_TRAILERS) {
      this.writer.endOfData(stream.id);
      this.#allowances.sentData();
    } else this.headers(stream.id, trailers, true);
    this.#owner.responseEnded(stream);
  }

  /** An answer to a control frame, or a refund, is about to be written: false when too many wait for the socket already. */
  mayControl(): boolean {
    if (++this.#controlFrames <= this.#limits.maxUnsentControlFrames) return true;
    this.flush();
    if (this.#wire.writableLength > 0) return false;
    this.#controlFrames = 0;
    return true;
  }

  /** Whether the connection's window stays within its bounds. */
  widen(increment: number): boolean {
    if (this.#window + increment > MAX_31_BITS) return false;
    this.#window += increment;
    this.#pumpDue = true;
    return true;
  }

  /** The same for a stream's window; `increment` may be below 0. */
  widenStream(stream: Stream<S>, increment: number): boolean {
    if (stream.sendWindow + increment > MAX_31_BITS) return false;
    stream.sendWindow += increment;
    this.#pumpDue = true;
    return true;
  }

  /** Sends what windows take that have been widened since. */
  pumpIfWidened(): void {
    if (!this.#pumpDue) return;
    this.#pumpDue = false;
    this.pump(false);
  }

  /** Sends what the windows take. `isTick`: also pieces too small to be worth a frame. */
  pump(isTick: boolean): void {
    for (const stream of this.#waiting) {
      if (this.#window <= 0) return;
      this.#pumpStream(stream, isTick);
    }
  }

  /** Forgets what waits on a stream that is gone. */
  discard(stream: Stream<S>): void {
    if (stream.waiting === undefined) return;
    this.#waitingBytes -= stream.waiting.bytes;
    this.#waiting.delete(stream);
    stream.waiting = undefined;
  }

  /** Streams whose output the windows have not taken in time. */
  *overdue(now: number): Generator<Stream<S>> {
    for (const stream of this.#waiting) if (stream.waiting!.deadline <= now) yield stream;
  }

  /** The earliest time at which some output is overdue. */
  get earliestDeadline(): number {
    let earliest = Infinity;
    for (const stream of this.#waiting) earliest = Math.min(earliest, stream.waiting!.deadline);
    return earliest;
  }

  flushIfLong(): void {
    if (this.writer.pending >= FLUSH_BYTES) this.flush();
  }

  flush(): void {
    if (this.writer.pending > 0 && !this.#isClosed) this.#wire.write(this.writer.take());
  }

  /** Sends what there is, and nothing more: what is written from now on goes nowhere. */
  close(): void {
    this.flush();
    this.#isClosed = true;
  }

  #pumpStream(stream: Stream<S>, isTick: boolean): void {
    const { waiting } = stream;
    if (waiting === undefined) return;
    while (waiting.bytes > 0) {
      const room = Math.min(this.#window, stream.sendWindow, MAX_FRAME_BYTES);
      const worthwhile = isTick ? 1 : Math.min(waiting.bytes, WORTHWHILE_BYTES, this.#peer.initialWindowBytes);
      if (room <= 0 || room < worthwhile) return;
      const piece = waiting.pieces[0]!;
      const length = Math.min(room, piece.length - waiting.sent);
      this.writer.data(stream.id, piece.subarray(waiting.sent, waiting.sent + length), NOTHING);
      this.#allowances.sentData();
      this.#window -= length;
      stream.sendWindow -= length;
      this.#waitingBytes -= length;
      waiting.bytes -= length;
      waiting.sent += length;
      if (waiting.sent === piece.length) {
        waiting.pieces.shift();
        waiting.sent = 0;
        if (waiting.trailers === undefined) waiting.deadline = this.#owner.now + this.#limits.responsePieceMs;
      }
      this.flushIfLong();
    }
    this.discard(stream);
    const { trailers } = waiting;
    if (trailers === undefined) this.#owner.outputDrained(stream);
    else this.end(stream, trailers);
  }
}
