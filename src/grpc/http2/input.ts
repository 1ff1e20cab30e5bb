import { LIMITS } from './limits';
import {
  ConnectionError,
  ErrorCode,
  FRAME_HEADER_BYTES,
  Flag,
  FrameType,
  MAX_31_BITS,
  MAX_FRAME_BYTES,
  PREFACE,
  protocolError,
  roomToKeep,
} from './protocol';

const { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION } =
  FrameType;
const FIRST_PARTIAL_BYTES = 64;
const PRIORITY_BYTES = 5;
const EMPTY = Buffer.alloc(0);

/**
 * The input of a connection. {@link next} goes from one complete frame to the next: in place if a frame lies within one chunk,
 * otherwise in a copy. The frame is in the fields of this object, so that it allocates nothing. All that can be wrong with a frame
 * regardless of its stream is checked here, its place among the others included; then {@link next} throws a {@link ConnectionError},
 * and nothing more may be read. A header block in several frames is one frame of type HEADERS.
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
  /** Of HEADERS: it depends on its own stream. */
  dependsOnItself = false;
  /** When the header block that is incomplete must be complete; Infinity if there is none. */
  blockDeadline = Infinity;

  #now = 0;
  #chunk: Buffer = EMPTY;
  /** The next byte of the chunk. */
  #at = 0;
  #prefaceSeen = 0;
  #hasSettings = false;
  /** The incomplete frame at the end of the last chunk. Grows with the bytes received, not with the length announced. */
  #partial: Buffer | undefined;
  #gathered = 0;
  #isValidated = false;

  /** The incomplete header block, in `[0, #blockBytes)`, the stream and flags of its HEADERS frame, and its CONTINUATION frames. */
  #block: Buffer | undefined;
  #blockBytes = 0;
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

  /** Releases the chunk. */
  release(): void {
    this.#chunk = EMPTY;
    this.source = EMPTY;
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
    this.#partial = roomToKeep(Math.max(FIRST_PARTIAL_BYTES, rest));
    this.#chunk.copy(this.#partial, 0, this.#at);
    this.#at += rest;
    this.#gathered = rest;
    this.#isValidated = isValidated;
    return false;
  }

  #continuePartial(): boolean {
    if (!this.#gather(FRAME_HEADER_BYTES)) return false;
    this.#readHeader(this.#partial!, 0);
    if (!this.#isValidated) this.#validate();
    this.#isValidated = true;
    const end = FRAME_HEADER_BYTES + this.length;
    if (!this.#gather(end)) return false;
    // The buffer is not reused: views of it may be kept beyond the next chunk.
    this.source = this.#partial!;
    this.start = FRAME_HEADER_BYTES;
    this.end = end;
    this.#partial = undefined;
    return true;
  }

  /** Copies bytes of the chunk until `wanted` are gathered. Returns false if the chunk ends before. */
  #gather(wanted: number): boolean {
    if (this.#gathered >= wanted) return true;
    const end = Math.min(this.#chunk.length, this.#at + wanted - this.#gathered);
    const needed = this.#gathered + end - this.#at;
    if (needed > this.#partial!.length) {
      const grown = roomToKeep(Math.max(needed, Math.min(wanted, this.#partial!.length * 2)));
      this.#partial!.copy(grown, 0, 0, this.#gathered);
      this.#partial = grown;
    }
    this.#chunk.copy(this.#partial!, this.#gathered, this.#at, end);
    this.#at = end;
    this.#gathered = needed;
    return needed >= wanted;
  }

  // ---------------------------------------------------------------- checks

  /**
   * Checks what the header of a frame alone can violate (RFC 9113, sections 4.2 and 6): its place, an invalid length, a stream
   * identifier on a frame of the connection, or none on a frame of a stream. A PRIORITY frame of a wrong length is the exception: it
   * is a stream error, and checked where its stream is known.
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
    switch (type) {
      case DATA:
      case HEADERS:
        requireStream(stream);
        if ((flags & Flag.PADDED) !== 0 && length === 0) sizeError('frame too short for its pad length');
        if (type === HEADERS && (flags & Flag.PRIORITY) !== 0 && length < ((flags & Flag.PADDED) === 0 ? 5 : 6)) {
          sizeError('frame too short for its priority fields');
        }
        return;
      case PRIORITY:
      case CONTINUATION:
        return requireStream(stream);
      case RST_STREAM:
        if (length !== 4) sizeError('RST_STREAM must have 4 bytes');
        return requireStream(stream);
      case SETTINGS:
        if (stream !== 0) protocolError('SETTINGS on a stream');
        if ((flags & Flag.ACK) === 0 ? length % 6 !== 0 : length !== 0) sizeError('invalid length of SETTINGS');
        return;
      case PUSH_PROMISE:
        return protocolError('PUSH_PROMISE from a client');
      case PING:
        if (stream !== 0) protocolError('PING on a stream');
        if (length !== 8) sizeError('PING must have 8 bytes');
        return;
      case GOAWAY:
        if (stream !== 0) protocolError('GOAWAY on a stream');
        if (length < 8) sizeError('GOAWAY must have at least 8 bytes');
        return;
      case WINDOW_UPDATE:
        if (length !== 4) sizeError('WINDOW_UPDATE must have 4 bytes');
        return;
      default:
    }
  }

  // ---------------------------------------------------------------- payloads

  /** Removes padding and priority fields. Returns false if the frame is a part of a header block that is not complete. */
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
    this.#blockBytes = 0;
    this.#continuations = 0;
    this.#block = roomToKeep(this.end - this.start);
    this.#addFragment();
    this.blockDeadline = this.#now + LIMITS.headerBlockMs;
    return false;
  }

  #readContinuation(): boolean {
    const bytes = this.#blockBytes + this.end - this.start;
    if (this.#continuations >= LIMITS.maxContinuations || bytes > LIMITS.maxHeaderBlockBytes) {
      throw new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, 'header_block', 'header block too long');
    }
    this.#continuations += 1;
    this.#addFragment();
    if ((this.flags & Flag.END_HEADERS) === 0) return false;
    this.type = HEADERS;
    this.flags = this.#blockFlags;
    this.source = this.#block!;
    this.start = 0;
    this.end = this.#blockBytes;
    this.discardBlock();
    return true;
  }

  #addFragment(): void {
    const needed = this.#blockBytes + this.end - this.start;
    if (needed > this.#block!.length) {
      const grown = roomToKeep(Math.max(needed, this.#block!.length * 2));
      this.#block!.copy(grown, 0, 0, this.#blockBytes);
      this.#block = grown;
    }
    this.source.copy(this.#block!, this.#blockBytes, this.start, this.end);
    this.#blockBytes = needed;
  }
}

function sizeError(message: string): never {
  throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, 'protocol_error', message);
}

function requireStream(stream: number): void {
  if (stream === 0) protocolError('a frame that requires a stream is on stream 0');
}

/** The stream dependency at the beginning of the priority fields, without the exclusive bit. */
export function dependencyAt(source: Buffer, start: number): number {
  return source.readUInt32BE(start) & MAX_31_BITS;
}
