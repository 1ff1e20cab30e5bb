import { DEFAULT_HEADER_TABLE_BYTES } from '../protocol';
import { FIELD_OVERHEAD, type Field } from './fields';

/** The maximum number of entries, as each costs at least the overhead. A power of two, for the ring buffer. */
const MAX_ENTRIES = DEFAULT_HEADER_TABLE_BYTES / FIELD_OVERHEAD;

/**
 * The dynamic table of the peer's encoder (RFC 7541, section 2.3.2) as a ring buffer: insertion and eviction take
 * constant time.
 */
export class DynamicTable {
  /** Incremented by every change: while it is the same, every index refers to the same field. */
  generation = 0;
  #ring: (Field | undefined)[] | undefined;
  #newest = 0;
  #count = 0;
  #size = 0;
  #maxSize = DEFAULT_HEADER_TABLE_BYTES;

  /** Whether a field of this size fits into the table. */
  fits(cost: number): boolean {
    return cost <= this.#maxSize;
  }

  /** The entry at `position`, where 0 is the newest; undefined past the end. */
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

  /** Empties the table, which is the effect of inserting a field that does not fit (section 4.4). */
  clear(): void {
    this.#evictDownTo(0);
  }

  /** A dynamic table size update (section 6.3). `bytes` is at most SETTINGS_HEADER_TABLE_SIZE. */
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
