/** A key that a sketch counts. */
export interface Slot<Item> {
  readonly key: string;
  /** What the caller keeps with the key; set after {@link SpaceSaving.admit}. */
  item: Item | undefined;
  /** How often the key occurred, at least; at most `error` of it is of keys that had the slot before. */
  readonly count: number;
  readonly error: number;
}

/** The slots of one count: a range of the sorted slots, which ends at `last`. */
interface Bucket {
  count: number;
  last: number;
  size: number;
}

class SortedSlot<Item> implements Slot<Item> {
  key = '';
  item: Item | undefined = undefined;
  error = 0;

  constructor(
    /** The index in the sorted slots. */
    public at: number,
    public bucket: Bucket,
  ) {}

  get count(): number {
    return this.bucket.count;
  }
}

/**
 * The keys that occur most often in a stream of any length, in constant memory: the Space-Saving algorithm (Metwally, Agrawal,
 * El Abbadi, 2005). A key without a slot takes that of the rarest one and inherits its count as an error. After `n` occurrences,
 * every key with more than `n / capacity` of them has a slot, and no count is too high by more than that.
 *
 * The time of every operation is bounded by the weight, whatever the capacity: slots are sorted by count, and a slot whose count grows
 * passes the ranges of smaller counts in one step each.
 */
export class SpaceSaving<Item> {
  readonly #byKey = new Map<string, SortedSlot<Item>>();
  /** In ascending order of their counts; unused ones count 0. */
  readonly #sorted: SortedSlot<Item>[];

  constructor(capacity: number) {
    const unused: Bucket = { count: 0, last: capacity - 1, size: capacity };
    this.#sorted = Array.from({ length: capacity }, (_, at) => new SortedSlot(at, unused));
  }

  /** The slot of a key that has one. */
  find(key: string): Slot<Item> | undefined {
    return this.#byKey.get(key);
  }

  /** Counts `weight` occurrences of a key that has no slot, and gives it one. */
  admit(key: string, weight = 1): Slot<Item> {
    const slot = this.#sorted[0] as SortedSlot<Item>;
    if (slot.count > 0) this.#byKey.delete(slot.key);
    slot.key = key;
    slot.item = undefined;
    slot.error = slot.count;
    this.#byKey.set(key, slot);
    this.#raise(slot, weight);
    return slot;
  }

  /** Counts `weight` occurrences of the key of a slot that {@link find} has returned, before any other key is admitted. */
  increment(slot: Slot<Item>, weight = 1): void {
    // Only this class makes slots.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    this.#raise(slot as SortedSlot<Item>, weight);
  }

  /** How often a key without a slot may have occurred. */
  get floor(): number {
    return this.#sorted[0]?.count ?? 0;
  }

  /** The slots in use, those that occurred most often first. */
  slots(): readonly Slot<Item>[] {
    return this.#sorted.filter(({ count }) => count > 0).toReversed();
  }

  /** Moves a slot behind those of smaller counts, each time to the end of a range of equal counts. */
  #raise(slot: SortedSlot<Item>, weight: number): void {
    const { bucket } = slot;
    const count = bucket.count + weight;
    const sorted = this.#sorted;
    this.#swap(slot, bucket.last);
    let next = sorted[slot.at + 1]?.bucket;
    if (bucket.size === 1 && !(next !== undefined && next.count <= count)) {
      bucket.count = count;
      return;
    }
    bucket.last -= 1;
    bucket.size -= 1;
    while (next !== undefined && next.count < count) {
      this.#swap(slot, next.last);
      next.last -= 1;
      next = sorted[slot.at + 1]?.bucket;
    }
    if (next?.count === count) {
      next.size += 1;
      slot.bucket = next;
    } else {
      slot.bucket = { count, last: slot.at, size: 1 };
    }
  }

  #swap(slot: SortedSlot<Item>, to: number): void {
    const { at } = slot;
    if (at === to) return;
    const other = this.#sorted[to] as SortedSlot<Item>;
    other.at = at;
    this.#sorted[at] = other;
    slot.at = to;
    this.#sorted[to] = slot;
  }
}
