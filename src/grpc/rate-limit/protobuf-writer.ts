const INITIAL_CAPACITY = 1024;
/** Length in bytes of the longest varint of a number below 2^53. */
const MAX_VARINT_BYTES = 8;

/** Writes protobuf into its own buffer, which grows and is reused. Tags are below 128, that is field numbers up to 15. */
export class ProtobufWriter {
  #bytes = Buffer.allocUnsafe(INITIAL_CAPACITY);
  #length = 0;

  reset(): void {
    this.#length = 0;
  }

  /** The bytes written since {@link reset}: a view of the buffer, valid until the next write. */
  written(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** @param value an integer from 0 to 2^53 - 1 */
  varintField(tag: number, value: number): void {
    this.#reserve(1 + MAX_VARINT_BYTES);
    this.#bytes[this.#length] = tag;
    this.#length += 1;
    this.#varint(value);
  }

  bytesField(tag: number, bytes: Uint8Array): void {
    this.#reserve(1 + MAX_VARINT_BYTES + bytes.length);
    this.#bytes[this.#length] = tag;
    this.#length += 1;
    this.#varint(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  textField(tag: number, text: string): void {
    const length = Buffer.byteLength(text);
    this.#reserve(1 + MAX_VARINT_BYTES + length);
    this.#bytes[this.#length] = tag;
    this.#length += 1;
    this.#varint(length);
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
  }
}

function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) length += 1;
  return length;
}
