/** A message that is not protobuf; the message says what was wrong and at which byte. */
export class WireError extends Error {
  override readonly name = 'WireError';
}

/** Wire types of protobuf. */
export const Wire = { VARINT: 0, I64: 1, LEN: 2, GROUP_START: 3, GROUP_END: 4, I32: 5 } as const;

const MAX_GROUP_DEPTH = 100;
const SHORT_TEXT = 24;
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads protobuf in place, without copying. One reader serves a whole message: nested messages are read by moving the end.
 */
export class WireReader {
  readonly #bytes: Uint8Array;
  position = 0;
  end: number;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.end = bytes.length;
  }

  get hasMore(): boolean {
    return this.position < this.end;
  }

  /** A field's tag: `fieldNumber << 3 | wireType`. */
  tag(): number {
    const tag = this.uint32();
    if (tag >>> 3 === 0) throw this.#error('a field number of 0');
    return tag;
  }

  /** A varint's low 32 bits, as protobuf reads uint32, enums and tags from longer ones. */
  uint32(): number {
    const first = this.#byte();
    if (first < 0x80) return first;
    let value = first & 0x7f;
    for (let shift = 7; shift < 70; shift += 7) {
      const byte = this.#byte();
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw this.#error('a number of more than 10 bytes');
  }

  /** A varint as a number; from 2^53 on it is rounded, never below 2^53. */
  uint64(): number {
    let value = 0;
    let factor = 1;
    for (let length = 0; length < 10; length += 1) {
      const byte = this.#byte();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 128;
    }
    throw this.#error('a number of more than 10 bytes');
  }

  bool(): boolean {
    return this.uint64() !== 0;
  }

  /** Begins a length-delimited field; returns the end to restore with {@link leave}. */
  enter(): number {
    const length = this.uint32();
    const outerEnd = this.end;
    if (length > outerEnd - this.position) throw this.#error('a length that goes beyond the message');
    this.end = this.position + length;
    return outerEnd;
  }

  leave(outerEnd: number): void {
    this.position = this.end;
    this.end = outerEnd;
  }

  /** Text; what is not UTF-8 is refused, as proto3 asks. */
  text(): string {
    const outerEnd = this.enter();
    const { position, end } = this;
    const bytes = this.#bytes;
    this.leave(outerEnd);
    return (end - position <= SHORT_TEXT ? shortAscii(bytes, position, end) : undefined) ?? this.#utf8(position, end);
  }

  /** Passes over a field that is not known. */
  skip(tag: number): void {
    this.#skip(tag, 0);
  }

  #skip(tag: number, depth: number): void {
    switch (tag & 7) {
      case Wire.VARINT:
        this.uint64();
        return;
      case Wire.I64:
        this.#advance(8);
        return;
      case Wire.LEN:
        this.leave(this.enter());
        return;
      case Wire.GROUP_START:
        this.#skipGroup(tag, depth);
        return;
      case Wire.I32:
        this.#advance(4);
        return;
      default:
        throw this.#error(`wire type ${tag & 7}, which does not begin a field`);
    }
  }

  #skipGroup(start: number, depth: number): void {
    if (depth >= MAX_GROUP_DEPTH) throw this.#error('groups nested too deep');
    for (;;) {
      const tag = this.tag();
      if ((tag & 7) === Wire.GROUP_END) {
        if (tag >>> 3 !== start >>> 3) throw this.#error('the end of another group');
        return;
      }
      this.#skip(tag, depth + 1);
    }
  }

  #advance(length: number): void {
    if (length > this.end - this.position) throw this.#error('an end in the middle of a field');
    this.position += length;
  }

  #byte(): number {
    if (this.position >= this.end) throw this.#error('an end in the middle of a field');
    const byte = this.#bytes[this.position] as number;
    this.position += 1;
    return byte;
  }

  #utf8(start: number, end: number): string {
    try {
      return strictUtf8.decode(this.#bytes.subarray(start, end));
    } catch {
      throw new WireError(`text that is not UTF-8 at byte ${start}`);
    }
  }

  #error(what: string): WireError {
    return new WireError(`${what} at byte ${this.position}`);
  }
}

/** Text of some characters, read faster than a decoder is called; undefined when it is not all ASCII. */
function shortAscii(bytes: Uint8Array, start: number, end: number): string | undefined {
  let text = '';
  for (let index = start; index < end; index += 1) {
    const byte = bytes[index] as number;
    if (byte > 0x7f) return undefined;
    text += String.fromCharCode(byte);
  }
  return text;
}
