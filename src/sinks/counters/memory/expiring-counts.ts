import { Queue } from './queue';

interface StoredCount {
  readonly key: string;
  count: number;
  /** Unix time in milliseconds. */
  readonly expiresAt: number;
}

/**
 * Counts by key, each with an expiry that is set when the key is created. Times are in milliseconds; `now` is Unix time.
 *
 * Keys with the same lifetime expire in the order in which they were created, so one queue for each lifetime (there are as
 * many as units) yields the next key to expire without a search.
 */
export class ExpiringCounts {
  readonly #maxKeys: number;
  readonly #stored = new Map<string, StoredCount>();
  readonly #queues = new Map<number, Queue<StoredCount>>();
  /** Keys that were removed before their expiry. */
  evictions = 0;

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys;
  }

  get size(): number {
    return this.#stored.size;
  }

  /** The key's count; 0 for a key that is absent or has expired. */
  get(key: string, now: number): number {
    return this.#live(key, now)?.count ?? 0;
  }

  /**
   * Adds to a key, and creates it when it is absent.
   *
   * @param lifetime of a key that is created
   * @returns the count after the addition; undefined when it would exceed 2^53 − 1, and nothing was added
   */
  // oxlint-disable-next-line max-params -- the decision path: an options object would be an allocation per hit
  add(key: string, amount: number, now: number, lifetime: number): number | undefined {
    const entry = this.#live(key, now) ?? this.#create(key, now, lifetime);
    if (entry.count + amount > Number.MAX_SAFE_INTEGER) return undefined;
    entry.count += amount;
    return entry.count;
  }

  /** Subtracts from a key, down to 0; an absent key stays absent. Returns the count after it. */
  subtract(key: string, amount: number, now: number): number {
    const entry = this.#live(key, now);
    if (entry === undefined) return 0;
    entry.count = Math.max(0, entry.count - amount);
    return entry.count;
  }

  /** Removes expired keys, at most `limit` of them. */
  expire(now: number, limit: number): void {
    let left = limit;
    for (const queue of this.#queues.values()) {
      for (let next = queue.peek(); next !== undefined && next.expiresAt <= now && left > 0; next = queue.peek()) {
        this.#drop(queue);
        left -= 1;
      }
    }
  }

  #live(key: string, now: number): StoredCount | undefined {
    const entry = this.#stored.get(key);
    return entry !== undefined && entry.expiresAt > now ? entry : undefined;
  }

  #create(key: string, now: number, lifetime: number): StoredCount {
    // Up to two expired keys leave for each new one, so that expired keys do not pile up under a flood of new ones.
    this.expire(now, 2);
    while (this.#stored.size >= this.#maxKeys && this.#evict());
    const entry = { key, count: 0, expiresAt: now + lifetime };
    this.#stored.set(key, entry);
    let queue = this.#queues.get(lifetime);
    if (queue === undefined) this.#queues.set(lifetime, (queue = new Queue()));
    queue.push(entry);
    return entry;
  }

  /** Removes the key that would expire first, so that a flood of short-lived keys displaces only keys of the same kind. */
  #evict(): boolean {
    let soonest: Queue<StoredCount> | undefined;
    for (const queue of this.#queues.values()) {
      const entry = queue.peek();
      if (entry !== undefined && entry.expiresAt < (soonest?.peek()?.expiresAt ?? Infinity)) soonest = queue;
    }
    if (soonest === undefined) return false;
    this.#drop(soonest);
    this.evictions += 1;
    return true;
  }

  #drop(queue: Queue<StoredCount>): void {
    const entry = queue.shift();
    // A key that expired and was created again has a newer entry in the map, which stays.
    if (entry !== undefined && this.#stored.get(entry.key) === entry) this.#stored.delete(entry.key);
  }
}
