import { FrameWriter } from '../frames/frame-writer';
import type { PeerSettings } from '../protocol';
import { DEFAULT_WINDOW_BYTES, MAX_31_BITS, MAX_FRAME_BYTES } from '../protocol';
import type { AbuseLimits } from '../limits/abuse-limits';
import type { Limits } from '../limits/limits';
import type { Clock, ConnectionControl, Transport } from './connection-control';
import { NO_TRAILERS, type Stream } from './stream';

/** Output above this size is written during the turn, so that the peer can work on it while a long turn continues. */
const FLUSH_BYTES = 64 * 1_024;
/**
 * A DATA frame smaller than this waits for a larger window, unless it is all that is waiting, or all that the peer's initial
 * window permits, or a tick comes.
 */
const WORTHWHILE_BYTES = 1_024;
/** A dynamic table size update to 0 (RFC 7541, section 6.3). The server encodes without a table, and signals it to peers that reduce theirs. */
const TABLE_SIZE_0 = 0x20;
const NO_PREFIX = -1;
const EMPTY = new Uint8Array(0);

export interface SendQueueControl<S> extends Pick<ConnectionControl, 'now' | 'wakeAt'> {
  /** The first frame since the last flush was written: {@link SendQueue.flush} must be called at the end of the turn. */
  outputBegan(): void;
  /** The trailers, or END_STREAM without trailers, have been written. */
  responseEnded(stream: Stream<S>): void;
  /** All output of a stream that waited for a window has been written. */
  outputDrained(stream: Stream<S>): void;
  /** {@link Limits.hardOutputBytes} is exceeded: the connection must be destroyed. */
  outputOverflowed(): void;
}

export interface SendQueueParts<S> {
  readonly control: SendQueueControl<S>;
  readonly limits: Limits;
  readonly abuseLimits: AbuseLimits;
  readonly peerSettings: PeerSettings;
  readonly transport: Transport;
  readonly clock: Clock;
}

/** The output of a connection: frames that wait for the end of the turn, and DATA that waits for a flow-control window. */
export class SendQueue<S> {
  readonly writer: FrameWriter;
  readonly #control: SendQueueControl<S>;
  readonly #limits: Limits;
  readonly #abuseLimits: AbuseLimits;
  readonly #peerSettings: PeerSettings;
  readonly #transport: Transport;
  /** For output that follows long after the last input. */
  readonly #clock: Clock;
  /** The flow-control window of the connection. */
  #window = DEFAULT_WINDOW_BYTES;
  #waitingBytes = 0;
  readonly #waiting = new Set<Stream<S>>();
  /** The byte to write before the next header block. */
  #prefix = NO_PREFIX;
  #maySendSizeUpdate = true;
  /** Control frames since {@link #countedFrom}. */
  #controlFrames = 0;
  /** What {@link #written} was when the count of control frames began. */
  #countedFrom = 0;
  /** Bytes that the transport was given. */
  #written = 0;
  /** A window has grown since the last pump. */
  #isPumpDue = false;
  #isClosed = false;

  constructor({ control, limits, abuseLimits, peerSettings, transport, clock }: SendQueueParts<S>) {
    this.#control = control;
    this.#limits = limits;
    this.#abuseLimits = abuseLimits;
    this.#peerSettings = peerSettings;
    this.#transport = transport;
    this.#clock = clock;
    this.writer = new FrameWriter(() => control.outputBegan());
  }

  /** Bytes that the socket has not accepted. */
  get unsent(): number {
    return this.writer.pending + this.#transport.writableLength;
  }

  /** Bytes that the socket has accepted. It accepts what was written together at once, when the last byte is sent. */
  get accepted(): number {
    return this.#written - this.#transport.writableLength;
  }

  get exceedsSoftLimit(): boolean {
    return this.unsent > this.#limits.softOutputBytes;
  }

  /** Whether output of any stream waits for a window. */
  get hasWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  headers(stream: number, block: Uint8Array, endStream = false): void {
    this.writer.headers(stream, this.#prefix, block, endStream);
    this.#prefix = NO_PREFIX;
    this.#abuseLimits.headersSent();
  }

  /** The peer has reduced its table: the next block begins with a size update. Once is enough, as 0 is valid for any later size. */
  sendTableSizeUpdate(): void {
    if (this.#maySendSizeUpdate) this.#prefix = TABLE_SIZE_0;
    this.#maySendSizeUpdate = false;
  }

  /** One piece of the response body. It waits if a window is too small. */
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
      this.#abuseLimits.dataSent();
      return;
    }
    const piece = Buffer.concat([first, second]);
    if (stream.waiting === undefined) {
      const deadline = this.#clock.now() + this.#limits.responsePieceMs;
      stream.waiting = { pieces: [piece], sent: 0, bytes, trailers: undefined, deadline };
      this.#waiting.add(stream);
      // The next tick sends what is not worthwhile now.
      this.#control.wakeAt(0);
    } else {
      stream.waiting.pieces.push(piece);
      stream.waiting.bytes += bytes;
    }
    this.#waitingBytes += bytes;
    this.#pumpStream(stream, false);
    if (this.#waitingBytes + this.unsent > this.#limits.hardOutputBytes) this.#control.outputOverflowed();
  }

  /** Ends the response once its output has been sent. `trailers`: a header block, or {@link NO_TRAILERS}. */
  end(stream: Stream<S>, trailers: Uint8Array): void {
    const { waiting } = stream;
    if (waiting !== undefined) {
      waiting.trailers = trailers;
      waiting.deadline = Math.min(waiting.deadline, this.#clock.now() + this.#limits.responseMs);
      this.#control.wakeAt(waiting.deadline);
      return;
    }
    if (trailers === NO_TRAILERS) {
      this.writer.endOfData(stream.id);
      this.#abuseLimits.dataSent();
    } else this.headers(stream.id, trailers, true);
    this.#control.responseEnded(stream);
  }

  /** See {@link ConnectionControl.mayControl}. */
  mayControl(): boolean {
    this.#controlFrames += 1;
    if (this.#controlFrames <= this.#limits.maxUnsentControlFrames) return true;
    this.flush();
    // A socket with TLS has always accepted the last bytes in a later turn only, so an empty buffer cannot be expected here.
    if (this.accepted < this.#countedFrom) return false;
    this.#controlFrames = 0;
    this.#countedFrom = this.#written;
    return true;
  }

  /** Enlarges the window of the connection. Returns false, and changes nothing, if it would exceed its maximum. */
  widen(increment: number): boolean {
    if (this.#window + increment > MAX_31_BITS) return false;
    this.#window += increment;
    this.#isPumpDue = true;
    return true;
  }

  /** Enlarges the window of a stream in the same way. `increment` may be negative. */
  widenStream(stream: Stream<S>, increment: number): boolean {
    if (stream.sendWindow + increment > MAX_31_BITS) return false;
    stream.sendWindow += increment;
    this.#isPumpDue = true;
    return true;
  }

  /** Sends waiting output if a window has grown. */
  pumpIfWidened(): void {
    if (!this.#isPumpDue) return;
    this.#isPumpDue = false;
    this.pump(false);
  }

  /** Sends waiting output as far as the windows permit. `isTick`: also in frames below {@link WORTHWHILE_BYTES}. */
  pump(isTick: boolean): void {
    for (const stream of this.#waiting) {
      if (this.#window <= 0) return;
      this.#pumpStream(stream, isTick);
    }
  }

  /** Drops the waiting output of a stream that is closed. */
  discard(stream: Stream<S>): void {
    if (stream.waiting === undefined) return;
    this.#waitingBytes -= stream.waiting.bytes;
    this.#waiting.delete(stream);
    stream.waiting = undefined;
  }

  /** The streams whose output has waited for a window for too long. */
  *overdue(now: number): Generator<Stream<S>> {
    for (const stream of this.#waiting) if (stream.waiting!.deadline <= now) yield stream;
  }

  /** The earliest time at which a stream becomes overdue. */
  get earliestDeadline(): number {
    let earliest = Infinity;
    for (const stream of this.#waiting) earliest = Math.min(earliest, stream.waiting!.deadline);
    return earliest;
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

  #pumpStream(stream: Stream<S>, isTick: boolean): void {
    const { waiting } = stream;
    if (waiting === undefined) return;
    while (waiting.bytes > 0) {
      const room = Math.min(this.#window, stream.sendWindow, MAX_FRAME_BYTES);
      const worthwhile = isTick ? 1 : Math.min(waiting.bytes, WORTHWHILE_BYTES, this.#peerSettings.initialWindowBytes);
      if (room <= 0 || room < worthwhile) return;
      const piece = waiting.pieces[0]!;
      const length = Math.min(room, piece.length - waiting.sent);
      this.writer.data(stream.id, piece.subarray(waiting.sent, waiting.sent + length), EMPTY);
      this.#abuseLimits.dataSent();
      this.#window -= length;
      stream.sendWindow -= length;
      this.#waitingBytes -= length;
      waiting.bytes -= length;
      waiting.sent += length;
      if (waiting.sent === piece.length) {
        waiting.pieces.shift();
        waiting.sent = 0;
        if (waiting.trailers === undefined) waiting.deadline = this.#control.now + this.#limits.responsePieceMs;
      }
      this.flushIfLong();
    }
    this.discard(stream);
    const { trailers } = waiting;
    if (trailers === undefined) this.#control.outputDrained(stream);
    else this.end(stream, trailers);
  }
}
