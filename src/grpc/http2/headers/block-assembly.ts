import { copyToKeep, roomToKeep } from '../frames/copy-buffer';

/** A header block that HEADERS began and CONTINUATION has to end (RFC 9113, section 4.3). */
export class BlockAssembly {
  #kept: Buffer;
  #length = 0;
  continuations = 0;

  constructor(
    readonly stream: number,
    readonly endStream: boolean,
    /** Whether HEADERS made its stream depend on itself. */
    readonly dependsOnItself: boolean,
    source: Buffer,
    start: number,
    end: number,
  ) {
    this.#kept = copyToKeep(source, start, end);
    this.#length = end - start;
  }

  get bytes(): number {
    return this.#length;
  }

  add(source: Buffer, start: number, end: number): void {
    const needed = this.#length + end - start;
    if (needed > this.#kept.length) {
      const grown = roomToKeep(Math.max(needed, this.#kept.length * 2));
      this.#kept.copy(grown, 0, 0, this.#length);
      this.#kept = grown;
    }
    source.copy(this.#kept, this.#length, start, end);
    this.#length = needed;
  }

  /** The whole block lies in `[0, bytes)`. */
  get block(): Buffer {
    return this.#kept;
  }
}
