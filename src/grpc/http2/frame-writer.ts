import { type ErrorCode, FRAME_HEADER_BYTES, Flag, FrameType } from './protocol';

const FIRST_CAPACITY = 256;
const EMPTY = Buffer.alloc(0);
const { END_STREAM, END_HEADERS, ACK } = Flag;

/**
 * Gathers the frames of one turn of the event loop, so that they are sent in one write. The buffer grows as needed and
 * is given away by {@link take}: a connection that sends nothing holds no memory.
 */
export class FrameWriter {
  readonly #onFirstByte: () => void;
  #buffer = EMPTY;
  #length = 0;
  #capacity = FIRST_CAPACITY;

  /** `onFirstByte` is called before the first frame after each {@link take}. */
  constructor(onFirstByte: () => void) {
    this.#onFirstByte = onFirstByte;
  }

  /** Bytes written since the last {@link take}. */
  get pending(): number {
    return this.#length;
  }

  /** Returns the bytes written, which belong to the caller from then on. */
  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.#length);
    // The next turn will probably need about as much.
    this.#capacity = Math.max(FIRST_CAPACITY, 2 ** Math.ceil(Math.log2(this.#length)));
    this.#buffer = EMPTY;
    this.#length = 0;
    return taken;
  }

  /** One HEADERS frame. `prefix` is a byte to put before the block, or -1 for none. */
  headers(stream: number, prefix: number, block: Uint8Array, endStream: boolean): void {
    const prefixLength = prefix < 0 ? 0 : 1;
    const at = this.#frame(
      prefixLength + block.length,
      FrameType.HEADERS,
      endStream ? END_HEADERS | END_STREAM : END_HEADERS,
      stream,
    );
    const buffer = this.#buffer;
    if (prefix >= 0) buffer[at] = prefix;
    const start = at + prefixLength;
    for (let from = 0; from < block.length; from += 1) buffer[start + from] = block[from]!;
  }

  /** One DATA frame without END_STREAM. Its payload is `first` and then `second`. */
  data(stream: number, first: Uint8Array, second: Uint8Array): void {
    const at = this.#frame(first.length + second.length, FrameType.DATA, 0, stream);
    const buffer = this.#buffer;
    for (let from = 0; from < first.length; from += 1) buffer[at + from] = first[from]!;
    const start = at + first.length;
    // For a few bytes a loop is faster than the call.
    if (second.length > 64) buffer.set(second, start);
    else for (let from = 0; from < second.length; from += 1) buffer[start + from] = second[from]!;
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

  /** Writes the header of a frame and makes room for its payload. Returns the position of the payload. */
  #frame(payload: number, type: number, flags: number, stream: number): number {
    const at = this.#length;
    if (at === 0) this.#onFirstByte();
    const end = at + FRAME_HEADER_BYTES + payload;
    if (end > this.#buffer.length) this.#grow(end);
    this.#length = end;
    const buffer = this.#buffer;
    buffer[at] = payload >>> 16;
    buffer[at + 1] = payload >>> 8;
    buffer[at + 2] = payload;
    buffer[at + 3] = type;
    buffer[at + 4] = flags;
    buffer[at + 5] = stream >>> 24;
    buffer[at + 6] = stream >>> 16;
    buffer[at + 7] = stream >>> 8;
    buffer[at + 8] = stream;
    return at + FRAME_HEADER_BYTES;
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
