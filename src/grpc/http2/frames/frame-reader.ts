import { roomToKeep } from '../protocol';
import { protocolError } from '../protocol';
import { FRAME_HEADER_BYTES, PREFACE } from '../protocol';

/** The header of a frame (RFC 9113, section 4.1). */
export interface FrameHeader {
  /** Bytes of payload. */
  readonly length: number;
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
}

/** Receives the frames. Either method may throw a {@link ConnectionError}, after which nothing more may be read. */
export interface FrameConsumer {
  /** The connection has ended: the rest of its input is ignored, in the current chunk too. */
  readonly hasEnded: boolean;
  /** Called once the header of a frame has been received. Throws if the frame is not permitted here or has a wrong length. */
  validate(header: FrameHeader): void;
  /**
   * Called for each complete frame, its payload in `source[start, end)`. The bytes never change; the header is valid only
   * during the call.
   */
  onFrame(header: FrameHeader, source: Buffer, start: number, end: number): void;
}

const FIRST_PARTIAL_BYTES = 64;

/** The one header object of a reader, overwritten by each frame: a frame allocates nothing. */
class ReusedHeader implements FrameHeader {
  length = 0;
  type = 0;
  flags = 0;
  stream = 0;

  read(source: Buffer, at: number): void {
    this.length = (source[at]! << 16) | (source[at + 1]! << 8) | source[at + 2]!;
    this.type = source[at + 3]!;
    this.flags = source[at + 4]!;
    // The reserved top bit is ignored (section 4.1).
    this.stream = ((source[at + 5]! & 0x7f) << 24) | (source[at + 6]! << 16) | (source[at + 7]! << 8) | source[at + 8]!;
  }
}

/** Splits the input of a connection into frames: in place if a frame lies within one chunk, otherwise in a copy. */
export class FrameReader {
  readonly #consumer: FrameConsumer;
  readonly #header = new ReusedHeader();
  #prefaceSeen = 0;
  /** The incomplete frame at the end of the last chunk. Grows with the bytes received, not with the length announced. */
  #partial: Buffer | undefined;
  #gathered = 0;
  #isValidated = false;

  constructor(consumer: FrameConsumer) {
    this.#consumer = consumer;
  }

  read(chunk: Buffer): void {
    let at = this.#prefaceSeen < PREFACE.length ? this.#readPreface(chunk) : 0;
    if (this.#partial !== undefined) at = this.#continuePartial(chunk, at);
    const consumer = this.#consumer;
    const header = this.#header;
    const { length } = chunk;
    while (at < length && !consumer.hasEnded) {
      if (length - at < FRAME_HEADER_BYTES) return this.#keep(chunk, at, false);
      header.read(chunk, at);
      consumer.validate(header);
      const start = at + FRAME_HEADER_BYTES;
      if (length - start < header.length) return this.#keep(chunk, at, true);
      at = start + header.length;
      consumer.onFrame(header, chunk, start, at);
    }
  }

  /** Section 3.4. Returns how many bytes of the chunk belong to the preface. */
  #readPreface(chunk: Buffer): number {
    let at = 0;
    while (at < chunk.length && this.#prefaceSeen < PREFACE.length) {
      if (chunk[at] !== PREFACE[this.#prefaceSeen]) protocolError('not an HTTP/2 connection preface');
      at += 1;
      this.#prefaceSeen += 1;
    }
    return at;
  }

  #keep(chunk: Buffer, at: number, isValidated: boolean): void {
    const rest = chunk.length - at;
    this.#partial = roomToKeep(Math.max(FIRST_PARTIAL_BYTES, rest));
    chunk.copy(this.#partial, 0, at);
    this.#gathered = rest;
    this.#isValidated = isValidated;
  }

  #continuePartial(chunk: Buffer, from: number): number {
    const consumer = this.#consumer;
    const header = this.#header;
    let at = from;
    if (this.#gathered < FRAME_HEADER_BYTES) {
      at = this.#gather(chunk, at, FRAME_HEADER_BYTES);
      if (this.#gathered < FRAME_HEADER_BYTES) return at;
    }
    header.read(this.#partial!, 0);
    if (!this.#isValidated) {
      this.#isValidated = true;
      consumer.validate(header);
    }
    const end = FRAME_HEADER_BYTES + header.length;
    at = this.#gather(chunk, at, end);
    if (this.#gathered < end) return at;
    const complete = this.#partial!;
    // The buffer is not reused: the consumer may keep views of it beyond the next chunk.
    this.#partial = undefined;
    consumer.onFrame(header, complete, FRAME_HEADER_BYTES, end);
    return at;
  }

  /** Copies bytes of the chunk until `wanted` are gathered or the chunk ends. */
  #gather(chunk: Buffer, at: number, wanted: number): number {
    const end = Math.min(chunk.length, at + wanted - this.#gathered);
    const needed = this.#gathered + end - at;
    if (needed > this.#partial!.length) {
      const grown = roomToKeep(Math.max(needed, Math.min(wanted, this.#partial!.length * 2)));
      this.#partial!.copy(grown, 0, 0, this.#gathered);
      this.#partial = grown;
    }
    chunk.copy(this.#partial!, this.#gathered, at, end);
    this.#gathered = needed;
    return end;
  }
}
