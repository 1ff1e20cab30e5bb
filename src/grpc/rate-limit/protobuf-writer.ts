import { wholeNumber } from '../../text/plain-number';

const INITIAL_CAPACITY = 1024;
/** Length in bytes of the longest varint of a number below 2^53. */
const MAX_VARINT_BYTES = 8;
/** Views of fewer bytes are kept. */
const VIEWS = 256;
const FEW_BYTES = 64;

/**
 * Writes protobuf into its own buffer, which grows and is reused. Tags are below 128, that is field numbers up to 15.
 */
export class ProtobufWriter {
  #bytes = Buffer.allocUnsafe(INITIAL_CAPACITY);
  #length = 0;
  /** The views of the buffer by their length: creating one takes as long as copying a hundred bytes. */
  #views: (Uint8Array | undefined)[] = [];

  reset(): void {
    this.#length = 0;
  }

  /** The bytes written since {@link reset}: a view of the buffer, valid until the next write. */
  written(): Uint8Array {
    const length = this.#length;
    if (length >= VIEWS) return this.#bytes.subarray(0, length);
    return (this.#views[length] ??= this.#bytes.subarray(0, length));
  }

  /** @param value an integer from 0 to 2^53 - 1; another one is written as {@link wholeNumber} */
  varintField(tag: number, value: number): void {
    this.#begin(tag, wholeNumber(value), 0);
  }

  bytesField(tag: number, bytes: Uint8Array): void {
    this.#begin(tag, bytes.length, bytes.length);
    const start = this.#length;
    // For a few bytes a loop is faster than the call.
    if (bytes.length > FEW_BYTES) this.#bytes.set(bytes, start);
    else for (let at = 0; at < bytes.length; at += 1) this.#bytes[start + at] = bytes[at] as number;
    this.#length += bytes.length;
  }

  textField(tag: number, text: string): void {
    const length = Buffer.byteLength(text);
    this.#begin(tag, length, length);
    this.#bytes.write(text, this.#length);
    this.#length += length;
  }

  /** Begins a nested message. Pass the returned offset to {@link close} at its end. */
  open(tag: number): number {
    this.#reserve(2);
    this.#bytes[this.#length] = tag;
    // Reserves one byte for the length: enough for almost every message here.
    this.#length += 2;
    return this.#length;
  }

  close(start: number): void {
    const length = this.#length - start;
    if (length < 0x80) {
      this.#bytes[start - 1] = length;
      return;
    }
    const extra = varintLength(length) - 1;
    this.#reserve(extra);
    this.#bytes.copyWithin(start + extra, start, this.#length);
    const end = this.#length + extra;
    this.#length = start - 1;
    this.#varint(length);
    this.#length = end;
  }

  /** Writes a tag and a number, and reserves space for what follows. */
  #begin(tag: number, value: number, following: number): void {
    this.#reserve(1 + MAX_VARINT_BYTES + following);
    this.#bytes[this.#length] = tag;
    this.#length += 1;
    this.#varint(value);
  }

  #varint(value: number): void {
    let rest = value;
    while (rest > 0x7f) {
      this.#bytes[this.#length] = (rest % 0x80) | 0x80;
      this.#length += 1;
      rest = Math.floor(rest / 0x80);
    }
    this.#bytes[this.#length] = rest;
    this.#length += 1;
  }

  #reserve(length: number): void {
    const needed = this.#length + length;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
    this.#views = [];
  }
}

function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) length += 1;
  return length;
}
