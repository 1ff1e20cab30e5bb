/** A power of two. With a million keys, a part has 16,000, and grows in a few milliseconds. */
export const PARTS = 64;
const PART_BITS = Math.log2(PARTS);
/** The end of a cache key, the start of its window, which many keys share. */
const WINDOW_CHARACTERS = 11;
/** How far from there characters are read: all of the last ones, then fewer and fewer. */
const REACH = 64;

/**
 * A table of texts that may have millions of entries: as `Map`, in parts that grow one at a time. A `Map` stops the
 * process while it grows, and also when it removes the gaps of deleted entries: with a million entries, for 40 to 150
 * ms (bench/memory).
 *
 * It depends on the ends of the keys how even the parts are. In the worst case one part has all keys and is as slow to
 * grow as a `Map`.
 */
export class WideMap<V> {
  readonly #parts = new Array<Map<string, V> | undefined>(PARTS).fill(undefined);
  /** The keys of each part from the oldest on, where {@link removeOldest} has begun to remove them. */
  readonly #oldest: (IterableIterator<string> | undefined)[] = [];
  /** The part that lost its oldest key last. */
  #turn = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: string): V | undefined {
    return this.#parts[partOf(key)]?.get(key);
  }

  /** The part in which a key is, or would be, to read its value and to replace it with one search for the part. */
  part(key: string): Pick<Map<string, V>, 'get' | 'set'> | undefined {
    return this.#parts[partOf(key)];
  }

  /** Adds a key, or replaces its value. */
  set(key: string, value: V): void {
    const part = (this.#parts[partOf(key)] ??= new Map());
    const before = part.size;
    part.set(key, value);
    this.#size += part.size - before;
  }

  /** Removes a key. Returns whether there was one. */
  delete(key: string): boolean {
    const isRemoved = this.#parts[partOf(key)]?.delete(key) ?? false;
    if (isRemoved) this.#size -= 1;
    return isRemoved;
  }

  /**
   * Removes the oldest key of a part, of each part in turn, and returns it; undefined if there are no keys. A part with
   * fewer keys than the average is passed over: keys are not added to all parts alike, and such a part would soon have
   * new keys only.
   */
  removeOldest(): string | undefined {
    while (this.#size > 0) {
      this.#turn = (this.#turn + 1) % PARTS;
      const part = this.#parts[this.#turn];
      if (part === undefined || part.size * PARTS < this.#size) continue;
      // An iterator continues where it was; a new one would pass over all the gaps that the keys before have left. It
      // never ends here: every key before it was removed.
      const key = (this.#oldest[this.#turn] ??= part.keys()).next().value as string;
      this.delete(key);
      return key;
    }
    return undefined;
  }
}

/**
 * A table of texts that may have millions of entries and differ anywhere: `WideMap` assumes cache keys. Small as long
 * as it is empty.
 */
export class WideTable<V> {
  readonly #parts: (Map<string, V> | undefined)[] = [];

  get(key: string): V | undefined {
    return this.#parts[textPartOf(key)]?.get(key);
  }

  set(key: string, value: V): void {
    (this.#parts[textPartOf(key)] ??= new Map()).set(key, value);
  }
}

/** All characters count. */
function textPartOf(key: string): number {
  let hash = 0;
  for (let at = 0; at < key.length; at += 1) hash = Math.imul(hash ^ key.charCodeAt(at), 0x9e3779b1);
  return hash >>> (32 - PART_BITS);
}

/** The number of the part that has a key, from 0. */
export function partOf(key: string): number {
  return hashOf(key) >>> (32 - PART_BITS);
}

/**
 * A multiplicative hash of 32 bits. Its upper bits depend on all characters that are read: up to the last 64 before the
 * window.
 */
export function hashOf(key: string): number {
  const last = key.length - WINDOW_CHARACTERS - 1;
  let hash = 0;
  for (let back = 0; back <= last && back < REACH; back += 1 + (back >> 2)) {
    hash = Math.imul(hash ^ key.charCodeAt(last - back), 0x9e3779b1);
  }
  return hash;
}
