import { roomToKeep } from './copy-buffer';
import { ConnectionError } from './errors';
import { ErrorCode, FRAME_HEADER_BYTES, PREFACE } from './protocol';

/** Who reads frames. Either method may throw a {@link ConnectionError}, which ends the reading for good. */
export interface FrameConsumer {
  /** The connection is over: whatever follows, in the same chunk too, is not read. */
  readonly isOver: boolean;
  /** A frame's first nine bytes are there: is it one that may come, and be so long? */
  admit(type: number, flags: number, stream: number, length: number): void;
  /** A whole frame, its payload in `source[start, end)`. The bytes stay as they are for as long as anybody looks. */
  frame(type: number, flags: number, stream: number, source: Buffer, start: number, end: number): void;
}

const FIRST_PARTIAL_BYTES = 64;

/** Cuts what a connection receives into frames: in place where a frame lies whole in a chunk, gathered where it does not. */
export class FrameReader {
  readonly #consumer: FrameConsumer;
  #prefaceSeen = 0;
  /** The frame that the last chunk broke off in. Grows with what has come, not with what was announced. */
  #partial: Buffer | undefined;
  #gathered = 0;
  #isAdmitted = false;

  constructor(consumer: FrameConsumer) {
    this.#consumer = consumer;
  }

  read(chunk: Buffer): void {
    let at = this.#prefaceSeen < PREFACE.length ? this.#readPreface(chunk) : 0;
    if (this.#partial !== undefined) at = this.#continuePartial(chunk, at);
    const consumer = this.#consumer;
    const { length } = chunk;
    while (at < length && !consumer.isOver) {
      if (length - at < FRAME_HEADER_BYTES) return this.#keep(chunk, at, false);
      const payload = (chunk[at]! << 16) | (chunk[at + 1]! << 8) | chunk[at + 2]!;
      const type = chunk[at + 3]!;
      const flags = chunk[at + 4]!;
      const stream = streamAt(chunk, at);
      consumer.admit(type, flags, stream, payload);
      const start = at + FRAME_HEADER_BYTES;
      if (length - start < payload) return this.#keep(chunk, at, true);
      at = start + payload;
      consumer.frame(type, flags, stream, chunk, start, at);
    }
  }

  /** Section 3.4. Returns how many bytes of the chunk belong to the preface. */
  #readPreface(chunk: Buffer): number {
    let at = 0;
    while (at < chunk.length && this.#prefaceSeen < PREFACE.length) {
      if (chunk[at++] !== PREFACE[this.#prefaceSeen++]) {
        throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'not an HTTP/2 connection preface');
      }
    }
    return at;
  }

  #keep(chunk: Buffer, at: number, isAdmitted: boolean): void {
    const rest = chunk.length - at;
    this.#partial = roomToKeep(Math.max(FIRST_PARTIAL_BYTES, rest));
    chunk.copy(this.#partial, 0, at);
    this.#gathered = rest;
    this.#isAdmitted = isAdmitted;
  }

  #continuePartial(chunk: Buffer, from: number): number {
    const consumer = this.#consumer;
    let at = from;
    if (this.#gathered < FRAME_HEADER_BYTES) {
      at = this.#gather(chunk, at, FRAME_HEADER_BYTES);
      if (this.#gathered < FRAME_HEADER_BYTES) return at;
    }
    const head = this.#partial!;
    const payload = (head[0]! << 16) | (head[1]! << 8) | head[2]!;
    const type = head[3]!;
    const flags = head[4]!;
    const stream = streamAt(head, 0);
    if (!this.#isAdmitted) {
      this.#isAdmitted = true;
      consumer.admit(type, flags, stream, payload);
    }
    const end = FRAME_HEADER_BYTES + payload;
    at = this.#gather(chunk, at, end);
    if (this.#gathered < end) return at;
    const whole = this.#partial!;
    // Given away: the consumer may still look at it when the next chunk is read.
    this.#partial = undefined;
    consumer.frame(type, flags, stream, whole, FRAME_HEADER_BYTES, end);
    return at;
  }

  /** Adds bytes of the chunk until `wanted` are gathered or the chunk ends. */
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

/** The reserved top bit is ignored (section 4.1). */
function streamAt(source: Buffer, at: number): number {
  return ((source[at + 5]! & 0x7f) << 24) | (source[at + 6]! << 16) | (source[at + 7]! << 8) | source[at + 8]!;
}
