import { copyToKeep, roomToKeep } from './protocol';

/** A header block that is split over HEADERS and CONTINUATION frames (RFC 9113, section 4.3), and incomplete. */
export class BlockAssembly {
  #buffer: Buffer;
  #length: number;
  /** How many CONTINUATION frames it consists of so far. */
  continuations = 0;

  /** Begins with the fragment of the HEADERS frame. */
  constructor(source: Buffer, start: number, end: number) {
    this.#buffer = copyToKeep(source, start, end);
    this.#length = end - start;
  }

  get bytes(): number {
    return this.#length;
  }

  /** The block, in `[0, bytes)`. */
  get block(): Buffer {
    return this.#buffer;
  }

  /** Adds the fragment of a CONTINUATION frame. */
  add(source: Buffer, start: number, end: number): void {
    const needed = this.#length + end - start;
    if (needed > this.#buffer.length) {
      const grown = roomToKeep(Math.max(needed, this.#buffer.length * 2));
      this.#buffer.copy(grown, 0, 0, this.#length);
      this.#buffer = grown;
    }
    source.copy(this.#buffer, this.#length, start, end);
    this.#length = needed;
    this.continuations += 1;
  }
}
