import { LIMITS } from './limits';
import {
  ConnectionError,
  ErrorCode,
  FRAME_HEADER_BYTES,
  Flag,
  FrameType,
  GatheredBytes,
  MAX_31_BITS,
  MAX_FRAME_BYTES,
  PREFACE,
  protocolError,
} from './protocol';

const { DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION } = FrameType;
/** Whether a frame must be on a stream (true) or must not be on one (false), by its type. */
const ON_A_STREAM = [true, true, true, true, false, undefined, false, false, undefined, true];
const FIRST_PARTIAL_BYTES = 64;
const PRIORITY_BYTES = 5;
const EMPTY = Buffer.alloc(0);

/**
 * The input of a connection. {@link next} goes from one complete frame to the next: in place if a frame lies within one
 * chunk, otherwise in a copy. The frame is in the fields of this object, so that it allocates nothing. All that can be
 * wrong with a frame regardless of its stream is checked here, its place among the others included; then {@link next}
 * throws a {@link ConnectionError}, and nothing more may be read. A header block in several frames is one frame of type
 * HEADERS.
 */
export class Input {
  type = 0;
  flags = 0;
  stream = 0;
  /** Bytes of the payload as sent, padding included. */
  length = 0;
  /** The payload, without padding and priority fields, is `source[start, end)`. The bytes never change. */
  source: Buffer = EMPTY;
  start = 0;
  end = 0;
  /** Whether the frame is HEADERS whose stream depends on itself. */
  dependsOnItself = false;
  /** When the header block that is incomplete must be complete; Infinity if there is none. */
  blockDeadline = Infinity;

  #now = 0;
  #chunk: Buffer = EMPTY;
  /** The next byte of the chunk. */
  #at = 0;
  #prefaceSeen = 0;
  #hasSettings = false;
  /**
   * The incomplete frame at the end of the last chunk. Grows with the bytes received, not with the length announced.
   */
  #partial: GatheredBytes | undefined;
  #isValidated = false;

  /** The incomplete header block, the stream and flags of its HEADERS frame, and its CONTINUATION frames. */
  #block: GatheredBytes | undefined;
  #blockStream = 0;
  #blockFlags = 0;
  #continuations = 0;

  /** Begins with a chunk, which belongs to the reader from then on. */
  receive(chunk: Buffer, now: number): void {
    this.#now = now;
    this.#chunk = chunk;
    this.#at = 0;
    if (this.#prefaceSeen < PREFACE.length) this.#readPreface();
  }

  /** Reads the next frame. Returns false if the chunk has no complete one any more. */
  next(): boolean {
    while (this.#nextFrame()) if (this.#readPayload()) return true;
    return false;
  }

  /** Releases the chunk. Returns what has not been read of it, with which a later chunk must begin. */
  release(): Buffer {
    const rest = this.#at < this.#chunk.length ? this.#chunk.subarray(this.#at) : EMPTY;
    this.#chunk = EMPTY;
    this.source = EMPTY;
    return rest;
  }

  /** Drops the incomplete header block. */
  discardBlock(): void {
    this.#block = undefined;
    this.blockDeadline = Infinity;
  }

  /** Section 3.4. */
  #readPreface(): void {
    const chunk = this.#chunk;
    while (this.#at < chunk.length && this.#prefaceSeen < PREFACE.length) {
      if (chunk[this.#at] !== PREFACE[this.#prefaceSeen]) protocolError('not an HTTP/2 connection preface');
      this.#at += 1;
      this.#prefaceSeen += 1;
    }
  }

  // ---------------------------------------------------------------- frames

  #nextFrame(): boolean {
    if (this.#partial !== undefined) return this.#continuePartial();
    const chunk = this.#chunk;
    const start = this.#at + FRAME_HEADER_BYTES;
    if (start > chunk.length) return this.#keep(false);
    this.#readHeader(chunk, this.#at);
    this.#validate();
    const end = start + this.length;
    if (end > chunk.length) return this.#keep(true);
    this.#at = end;
    this.source = chunk;
    this.start = start;
    this.end = end;
    return true;
  }

  #readHeader(source: Buffer, at: number): void {
    this.length = (source[at]! << 16) | (source[at + 1]! << 8) | source[at + 2]!;
    this.type = source[at + 3]!;
    this.flags = source[at + 4]!;
    // The reserved top bit is ignored (section 4.1).
    this.stream = ((source[at + 5]! & 0x7f) << 24) | (source[at + 6]! << 16) | (source[at + 7]! << 8) | source[at + 8]!;
  }

  /** Keeps the rest of the chunk, if there is any. */
  #keep(isValidated: boolean): false {
    const rest = this.#chunk.length - this.#at;
    if (rest === 0) return false;
    this.#partial = new GatheredBytes(Math.max(FIRST_PARTIAL_BYTES, rest));
    this.#partial.append(this.#chunk, this.#at, this.#chunk.length);
    this.#at += rest;
    this.#isValidated = isValidated;
    return false;
  }

  #continuePartial(): boolean {
    if (!this.#gather(FRAME_HEADER_BYTES)) return false;
    this.#readHeader(this.#partial!.bytes, 0);
    if (!this.#isValidated) this.#validate();
    this.#isValidated = true;
    const end = FRAME_HEADER_BYTES + this.length;
    if (!this.#gather(end)) return false;
    // The buffer is not reused: views of it may be kept beyond the next chunk.
    this.source = this.#partial!.bytes;
    this.start = FRAME_HEADER_BYTES;
    this.end = end;
    this.#partial = undefined;
    return true;
  }

  /** Copies bytes of the chunk until `wanted` are gathered. Returns false if the chunk ends before. */
  #gather(wanted: number): boolean {
    const partial = this.#partial!;
    if (partial.length >= wanted) return true;
    const end = Math.min(this.#chunk.length, this.#at + wanted - partial.length);
    partial.append(this.#chunk, this.#at, end, wanted);
    this.#at = end;
    return partial.length >= wanted;
  }

  // ---------------------------------------------------------------- checks

  /**
   * Checks what the header of a frame alone can violate (RFC 9113, sections 4.2 and 6): its place, an invalid length, a
   * stream identifier on a frame of the connection, or none on a frame of a stream. A PRIORITY frame of a wrong length
   * is the exception: it is a stream error, and checked where its stream is known.
   */
  #validate(): void {
    const { type, flags, stream, length } = this;
    if (!this.#hasSettings && (type !== SETTINGS || (flags & Flag.ACK) !== 0)) {
      protocolError('the first frame is not SETTINGS');
    }
    if (this.#block !== undefined) {
      if (type !== CONTINUATION || stream !== this.#blockStream) protocolError('a header block is interrupted');
    } else if (type === CONTINUATION) protocolError('CONTINUATION without a header block');
    if (length > MAX_FRAME_BYTES) sizeError('frame longer than SETTINGS_MAX_FRAME_SIZE');
    if (type === PUSH_PROMISE) protocolError('PUSH_PROMISE from a client');
    if (ON_A_STREAM[type] === (stream === 0)) protocolError('a frame with a wrong stream identifier');
    if (!hasValidLength(type, flags, length)) sizeError('a frame with a wrong length');
  }

  // ---------------------------------------------------------------- payloads

  /**
   * Removes padding and priority fields. Returns false if the frame is a part of a header block that is not complete.
   */
  #readPayload(): boolean {
    switch (this.type) {
      case DATA:
        this.#removePadding();
        return true;
      case HEADERS:
        return this.#readHeaders();
      case CONTINUATION:
        return this.#readContinuation();
      case SETTINGS:
        this.#hasSettings = true;
        return true;
      default:
        return true;
    }
  }

  #removePadding(): void {
    if ((this.flags & Flag.PADDED) === 0) return;
    this.end -= this.source[this.start]!;
    this.start += 1;
    if (this.end < this.start) protocolError('padding longer than the frame');
  }

  #readHeaders(): boolean {
    if ((this.stream & 1) === 0) protocolError('a client opens streams with odd identifiers only');
    this.dependsOnItself = false;
    if ((this.flags & (Flag.PADDED | Flag.PRIORITY)) !== 0) {
      this.#removePadding();
      if ((this.flags & Flag.PRIORITY) !== 0) {
        this.dependsOnItself = dependencyAt(this.source, this.start) === this.stream;
        this.start += PRIORITY_BYTES;
        if (this.end < this.start) protocolError('padding longer than the frame');
      }
    }
    if ((this.flags & Flag.END_HEADERS) !== 0) return true;
    this.#blockStream = this.stream;
    this.#blockFlags = this.flags;
    this.#continuations = 0;
    this.#block = new GatheredBytes(this.end - this.start);
    this.#block.append(this.source, this.start, this.end);
    this.blockDeadline = this.#now + LIMITS.headerBlockMs;
    return false;
  }

  #readContinuation(): boolean {
    const block = this.#block!;
    const bytes = block.length + this.end - this.start;
    if (this.#continuations >= LIMITS.maxContinuations || bytes > LIMITS.maxHeaderBlockBytes) {
      throw new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, 'header_block', 'header block too long');
    }
    this.#continuations += 1;
    block.append(this.source, this.start, this.end);
    if ((this.flags & Flag.END_HEADERS) === 0) return false;
    this.type = HEADERS;
    this.flags = this.#blockFlags;
    this.source = block.bytes;
    this.start = 0;
    this.end = block.length;
    this.discardBlock();
    return true;
  }
}

function sizeError(message: string): never {
  throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, 'protocol_error', message);
}

function hasValidLength(type: number, flags: number, length: number): boolean {
  switch (type) {
    case DATA:
      return length >= (flags & Flag.PADDED ? 1 : 0);
    case HEADERS:
      return length >= (flags & Flag.PADDED ? 1 : 0) + (flags & Flag.PRIORITY ? PRIORITY_BYTES : 0);
    case SETTINGS:
      return flags & Flag.ACK ? length === 0 : length % 6 === 0;
    case PING:
      return length === 8;
    case GOAWAY:
      return length >= 8;
    case RST_STREAM:
    case WINDOW_UPDATE:
      return length === 4;
    default:
      return true;
  }
}

/** The stream dependency at the beginning of the priority fields, without the exclusive bit. */
export function dependencyAt(source: Buffer, start: number): number {
  return source.readUInt32BE(start) & MAX_31_BITS;
}
