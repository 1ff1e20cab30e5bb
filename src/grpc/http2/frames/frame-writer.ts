import { type ErrorCode, FRAME_HEADER_BYTES, Flag, FrameType } from './protocol';

const FIRST_CAPACITY = 256;
const EMPTY = Buffer.alloc(0);
const { END_STREAM, END_HEADERS, ACK } = Flag;

/**
 * Gathers the frames of one turn of the event loop, so that they leave in one write. The buffer grows with what is
 * written and is handed over whole: nothing is kept for a connection that says nothing.
 */
export class FrameWriter {
  readonly #filled: () => void;
  #buffer = EMPTY;
  #length = 0;
  #capacity = FIRST_CAPACITY;

  /** `filled` is called at the first byte after each {@link take}. */
  constructor(filled: () => void) {
    this.#filled = filled;
  }

  get pending(): number {
    return this.#length;
  }

  /** What was written, which is the caller's from now on. */
  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.#length);
    // The next turn will most likely need about as much.
    this.#capacity = Math.max(FIRST_CAPACITY, 2 ** Math.ceil(Math.log2(this.#length)));
    this.#buffer = EMPTY;
    this.#length = 0;
    return taken;
  }

  /** `prefix` is a byte to put before the block, or -1. */
  headers(stream: number, prefix: number, block: Uint8Array, endStream: boolean): void {
    const prefixLength = prefix < 0 ? 0 : 1;
    let at = this.#frame(
      prefixLength + block.length,
      FrameType.HEADERS,
      endStream ? END_HEADERS | END_STREAM : END_HEADERS,
      stream,
    );
    const buffer = this.#buffer;
    if (prefix >= 0) buffer[at++] = prefix;
    for (let from = 0; from < block.length; from += 1) buffer[at++] = block[from]!;
  }

  /** One DATA frame without END_STREAM, its payload given in two pieces. */
  data(stream: number, first: Uint8Array, second: Uint8Array): void {
    let at = this.#frame(first.length + second.length, FrameType.DATA, 0, stream);
    const buffer = this.#buffer;
    for (let from = 0; from < first.length; from += 1) buffer[at++] = first[from]!;
    if (second.length > 64) buffer.set(second, at);
    else for (let from = 0; from < second.length; from += 1) buffer[at++] = second[from]!;
  }

  /** An empty DATA frame that ends the stream. */
  endOfData(stream: number): void {
    this.#frame(0, FrameType.DATA, END_STREAM, stream);
  }

  reset(stream: number, code: ErrorCode): void {
    this.#uint32(this.#frame(4, FrameType.RST_STREAM, 0, stream), code);
  }

  windowUpdate(stream: number, increment: number): void {
    this.#uint32(this.#frame(4, FrameType.WINDOW_UPDATE, 0, stream), increment);
  }

  settings(values: readonly (readonly [setting: number, value: number])[]): void {
    let at = this.#frame(values.length * 6, FrameType.SETTINGS, 0, 0);
    for (const [setting, value] of values) {
      this.#buffer[at] = setting >>> 8;
      this.#buffer[at + 1] = setting;
      this.#uint32(at + 2, value);
      at += 6;
    }
  }

  settingsAck(): void {
    this.#frame(0, FrameType.SETTINGS, ACK, 0);
  }

  ping(isAck: boolean, opaque: Uint8Array): void {
    const at = this.#frame(opaque.length, FrameType.PING, isAck ? ACK : 0, 0);
    this.#buffer.set(opaque, at);
  }

  goaway(lastStream: number, code: ErrorCode, debug: string): void {
    const bytes = Buffer.from(debug, 'latin1');
    const at = this.#frame(8 + bytes.length, FrameType.GOAWAY, 0, 0);
    this.#uint32(at, lastStream);
    this.#uint32(at + 4, code);
    this.#buffer.set(bytes, at + 8);
  }

  /** Writes a frame's header and makes room for its payload; returns where the payload goes. */
  #frame(payload: number, type: number, flags: number, stream: number): number {
    let at = this.#length;
    if (at === 0) this.#filled();
    const needed = at + FRAME_HEADER_BYTES + payload;
    if (needed > this.#buffer.length) this.#grow(needed);
    this.#length = needed;
    const buffer = this.#buffer;
    buffer[at++] = payload >>> 16;
    buffer[at++] = payload >>> 8;
    buffer[at++] = payload;
    buffer[at++] = type;
    buffer[at++] = flags;
    buffer[at++] = stream >>> 24;
    buffer[at++] = stream >>> 16;
    buffer[at++] = stream >>> 8;
    buffer[at++] = stream;
    return at;
  }

  #grow(needed: number): void {
    while (this.#capacity < needed) this.#capacity *= 2;
    const grown = Buffer.allocUnsafe(this.#capacity);
    grown.set(this.#length === this.#buffer.length ? this.#buffer : this.#buffer.subarray(0, this.#length));
    this.#buffer = grown;
  }

  #uint32(at: number, value: number): void {
    const buffer = this.#buffer;
    buffer[at] = value >>> 24;
    buffer[at + 1] = value >>> 16;
    buffer[at + 2] = value >>> 8;
    buffer[at + 3] = value;
  }
}
