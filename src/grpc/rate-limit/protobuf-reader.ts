import { DecisionError } from '../../counting/decision-error';
import { MAX_TEXT } from '../../limiter/request';

/** Bytes of the longest text for which {@link shortAscii} is the fastest way. */
const SHORT_TEXT = 24;

/** Reads a short text faster than a call of the decoder; undefined when it is not all ASCII. */
function shortAscii(bytes: Uint8Array, start: number, end: number): string | undefined {
  let text = '';
  for (let index = start; index < end; index += 1) {
    const byte = bytes[index] as number;
    if (byte > 0x7f) return undefined;
    text += String.fromCharCode(byte);
  }
  return text;
}

const SLOTS = 512;

/**
 * Reads short texts that are the same in most messages, domains and keys. A name that occurs again takes no memory and,
 * as the same string, keeps its hash: looking it up in a map is cheaper, too. The bytes select one of a fixed number of
 * slots, and all of them are compared. Not for values: with many different ones, replacing the names costs more than is
 * gained.
 */
class NameMemo {
  readonly #slots: (string | undefined)[] = Array.from({ length: SLOTS });

  /** Reads `bytes[start, end)`, as {@link shortAscii}. */
  find(bytes: Uint8Array, start: number, end: number): string | undefined {
    let hash = 0;
    for (let at = start; at < end; at += 1) hash = (Math.imul(hash, 31) + (bytes[at] as number)) | 0;
    const slot = (hash ^ (hash >>> 9)) & (SLOTS - 1);
    const known = this.#slots[slot];
    if (known !== undefined && isText(known, bytes, start, end)) return known;
    const text = shortAscii(bytes, start, end);
    if (text !== undefined) this.#slots[slot] = text;
    return text;
  }
}

function isText(text: string, bytes: Uint8Array, start: number, end: number): boolean {
  if (text.length !== end - start) return false;
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) !== bytes[start + at]) return false;
  return true;
}

/** Bytes that are not valid protobuf. The message states the problem and its byte offset. */
export class ProtobufError extends Error {
  override readonly name = 'ProtobufError';
}

/** Protobuf wire types. */
export const WireType = { VARINT: 0, I64: 1, LEN: 2, GROUP_START: 3, GROUP_END: 4, I32: 5 } as const;

/**
 * Fields of a message, those of nested messages and unknown ones included. It bounds the time that a message can take;
 * a request with as many descriptors and entries as are accepted has fewer than 40,000.
 */
const MAX_FIELDS = 65_536;
/**
 * Bytes of the texts of a message that are too long to be read character by character. No request with the permitted
 * number of UTF-16 code units has more, as each takes at most three bytes, unless texts occur again.
 */
const MAX_TEXT_BYTES = 3 * MAX_TEXT;
/** As C++; Go accepts 10,000. */
const MAX_GROUP_DEPTH = 100;
/** The lowest tag, with field number 1. */
const FIRST_TAG = 1 << 3;
/** The highest tag, with field number 2^29 - 1. */
const MAX_TAG = 2 ** 32 - 1;
/** Inside unknown groups, Go accepts field numbers up to 2^31 - 1. */
const MAX_TAG_IN_GROUP = 2 ** 34 - 1;
/** A varint whose first byte is lower has one byte. */
const LONG_VARINT = 0x80;
const MAX_VARINT_BYTES = 10;
const names = new NameMemo();
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Reads protobuf in place, without copying, as strictly as Go's library (bench/conformance/README.md). One reader is
 * used for a message and everything nested in it: {@link enter} and {@link leave} move its end.
 */
export class ProtobufReader {
  readonly #bytes: Uint8Array;
  #fields = 0;
  #textBytes = 0;
  position = 0;
  end: number;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.end = bytes.length;
  }

  get hasMore(): boolean {
    return this.position < this.end;
  }

  /** Reads a field's tag, `fieldNumber << 3 | wireType`, if {@link hasMore}. */
  tag(): number {
    this.#countField();
    const first = this.#bytes[this.position] as number;
    if (first < LONG_VARINT && first >= FIRST_TAG) {
      this.position += 1;
      return first;
    }
    return this.#longTag(MAX_TAG);
  }

  #countField(): void {
    this.#fields += 1;
    if (this.#fields > MAX_FIELDS) {
      throw new DecisionError('too_much_work', `a message may have at most ${MAX_FIELDS} fields`);
    }
  }

  #longTag(max: number): number {
    const tag = this.uint64();
    if (tag < FIRST_TAG) throw this.#error('field number 0');
    if (tag > max) throw this.#error('field number too large');
    return tag;
  }

  /** Reads a varint and keeps its low 32 bits, as protobuf does for uint32 fields and enums. */
  uint32(): number {
    const first = this.#byte();
    return first < LONG_VARINT ? first : this.#longVarint(first, 2 ** 32);
  }

  /** Reads a varint. Values from 2^53 on are rounded, never to less than 2^53. */
  uint64(): number {
    const first = this.#byte();
    return first < LONG_VARINT ? first : this.#longVarint(first, Infinity);
  }

  /** Reads on after the first byte. Bits from the value `end` on are dropped. */
  #longVarint(first: number, end: number): number {
    let value = first & 0x7f;
    let factor = 128;
    for (let bytes = 2; bytes <= MAX_VARINT_BYTES; bytes += 1) {
      const byte = this.#byte();
      if (factor < end) value += (byte & 0x7f) * factor;
      if (byte < LONG_VARINT) {
        // The tenth byte has the highest of 64 bits.
        if (bytes === MAX_VARINT_BYTES && byte > 1) throw this.#error('varint exceeds 64 bits');
        return end === Infinity ? value : value % end;
      }
      factor *= 128;
    }
    throw this.#error('varint longer than 10 bytes');
  }

  bool(): boolean {
    return this.uint64() !== 0;
  }

  /** Enters a length-delimited field. Returns the outer end, which {@link leave} restores. */
  enter(): number {
    const length = this.uint64();
    const outerEnd = this.end;
    if (length > outerEnd - this.position) throw this.#error('length beyond the end of the message');
    this.end = this.position + length;
    return outerEnd;
  }

  leave(outerEnd: number): void {
    this.position = this.end;
    this.end = outerEnd;
  }

  /** Reads a string. Invalid UTF-8 is rejected, as proto3 requires. */
  text(): string {
    const outerEnd = this.enter();
    const { position, end } = this;
    this.leave(outerEnd);
    return (
      (end - position <= SHORT_TEXT ? shortAscii(this.#bytes, position, end) : undefined) ?? this.#utf8(position, end)
    );
  }

  /** Reads a string that is the same in many messages: a short one is mostly found in memory. */
  name(): string {
    const outerEnd = this.enter();
    const { position, end } = this;
    this.leave(outerEnd);
    return (
      (end - position <= SHORT_TEXT ? names.find(this.#bytes, position, end) : undefined) ?? this.#utf8(position, end)
    );
  }

  /** Skips the value of an unknown field. */
  skip(tag: number): void {
    this.#skip(tag, 0);
  }

  #skip(tag: number, depth: number): void {
    switch (tag & 7) {
      case WireType.VARINT:
        this.uint64();
        return;
      case WireType.I64:
        this.#advance(8);
        return;
      case WireType.LEN:
        this.leave(this.enter());
        return;
      case WireType.GROUP_START:
        this.#skipGroup(tag, depth);
        return;
      case WireType.I32:
        this.#advance(4);
        return;
      default:
        throw this.#error(`invalid wire type ${tag & 7}`);
    }
  }

  #skipGroup(start: number, depth: number): void {
    if (depth >= MAX_GROUP_DEPTH) throw this.#error('groups nested too deeply');
    for (;;) {
      const tag = this.#tagInGroup();
      if ((tag & 7) === WireType.GROUP_END) {
        // Not the tags: they may exceed 32 bits, and differ in the wire type.
        if (Math.floor(tag / 8) !== Math.floor(start / 8)) throw this.#error('mismatched end of a group');
        return;
      }
      this.#skip(tag, depth + 1);
    }
  }

  #tagInGroup(): number {
    this.#countField();
    return this.#longTag(MAX_TAG_IN_GROUP);
  }

  #advance(length: number): void {
    if (length > this.end - this.position) throw this.#error('truncated field');
    this.position += length;
  }

  #byte(): number {
    if (this.position >= this.end) throw this.#error('truncated field');
    const byte = this.#bytes[this.position] as number;
    this.position += 1;
    return byte;
  }

  #utf8(start: number, end: number): string {
    this.#textBytes += end - start;
    if (this.#textBytes > MAX_TEXT_BYTES) {
      throw new DecisionError('too_much_work', `the texts of a message may have at most ${MAX_TEXT_BYTES} bytes`);
    }
    try {
      return strictUtf8.decode(this.#bytes.subarray(start, end));
    } catch {
      throw new ProtobufError(`invalid UTF-8 at byte ${start}`);
    }
  }

  #error(problem: string): ProtobufError {
    return new ProtobufError(`${problem} at byte ${this.position}`);
  }
}
