import { DEFAULT_HEADER_TABLE_BYTES } from '../../frames/protocol';
import { FIELD_OVERHEAD, type Field } from './field';

/** The most entries a table can hold, as each costs the overhead at least. A power of two, for the ring. */
const MAX_ENTRIES = DEFAULT_HEADER_TABLE_BYTES / FIELD_OVERHEAD;

/**
 * The peer's dynamic table (RFC 7541, section 2.3.2), a ring: an insertion and an eviction cost the same however full it
 * is.
 */
export class DynamicTable {
  /** Raised by every change: two equal numbers mean that every index means the same. */
  generation = 0;
  #ring: (Field | undefined)[] | undefined;
  #newest = 0;
  #count = 0;
  #size = 0;
  #maxSize = DEFAULT_HEADER_TABLE_BYTES;

  /** Whether a field of this cost would be kept. */
  holds(cost: number): boolean {
    return cost <= this.#maxSize;
  }

  /** The entry at `position`, 0 being the newest; undefined past the end. */
  at(position: number): Field | undefined {
    return position < this.#count ? this.#ring![(this.#newest - position) & (MAX_ENTRIES - 1)] : undefined;
  }

  insert(field: Field): void {
    this.#evictDownTo(this.#maxSize - field.cost);
    this.#newest = (this.#newest + 1) & (MAX_ENTRIES - 1);
    this.#ring ??= Array.from({ length: MAX_ENTRIES });
    this.#ring[this.#newest] = field;
    this.#count += 1;
    this.#size += field.cost;
    this.generation += 1;
  }

  /** What inserting a field too large for the table comes to (section 4.4). */
  clear(): void {
    this.#evictDownTo(0);
  }

  /** A size update (section 6.3); `bytes` is at most what SETTINGS allows. */
  resize(bytes: number): void {
    this.#maxSize = bytes;
    this.#evictDownTo(bytes);
    this.generation += 1;
  }

  #evictDownTo(size: number): void {
    while (this.#size > size) {
      this.#count -= 1;
      const oldest = (this.#newest - this.#count) & (MAX_ENTRIES - 1);
      this.#size -= this.#ring![oldest]!.cost;
      this.#ring![oldest] = undefined;
      this.generation += 1;
    }
  }
}
