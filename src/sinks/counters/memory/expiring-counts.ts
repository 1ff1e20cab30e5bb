import { Queue } from './queue';

interface StoredCount {
  readonly key: string;
  count: number;
  /** Unix time in milliseconds. */
  readonly expiresAt: number;
}

/**
 * Counts by key, each with an expiry given when the key is made. Keys of one lifetime expire in the order in which they were
 * made, so a queue for each lifetime (there are as many as units) knows what expires next, without searching.
 */
export class ExpiringCounts {
  readonly #maxKeys: number;
  readonly #entries = new Map<string, StoredCount>();
  readonly #queues = new Map<number, Queue<StoredCount>>();
  evictions = 0;

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The key's count; 0 for one that is absent or has expired. */
  get(key: string, now: number): number {
    return this.#live(key, now)?.count ?? 0;
  }

  /**
   * Adds to a key, making it with this lifetime (milliseconds) when it is absent.
   *
   * @returns the count after; undefined when it would not be exact any more, and nothing was added
   */
  add(key: string, amount: number, now: number, lifetime: number): number | undefined {
    const entry = this.#live(key, now) ?? this.#make(key, now, lifetime);
    if (entry.count + amount > Number.MAX_SAFE_INTEGER) return undefined;
    entry.count += amount;
    return entry.count;
  }

  /** Takes away from a key, down to 0; an absent one stays absent. The count after. */
  subtract(key: string, amount: number, now: number): number {
    const entry = this.#live(key, now);
    if (entry === undefined) return 0;
    entry.count = Math.max(0, entry.count - amount);
    return entry.count;
  }

  /** Lets go of expired keys, `limit` of them at the most. */
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
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.expiresAt > now ? entry : undefined;
  }

  #make(key: string, now: number, lifetime: number): StoredCount {
    // Two leave for one that comes, so that a flood of new keys cannot outrun the expiry of old ones.
    this.expire(now, 2);
    while (this.#entries.size >= this.#maxKeys && this.#evict());
    const entry = { key, count: 0, expiresAt: now + lifetime };
    this.#entries.set(key, entry);
    let queue = this.#queues.get(lifetime);
    if (queue === undefined) this.#queues.set(lifetime, (queue = new Queue()));
    queue.push(entry);
    return entry;
  }

  /** Makes room: the key that would expire soonest goes, so that a flood of short-lived keys displaces only its like. */
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
    // A key that expired and was made again stands in the map as its new entry, which stays.
    if (entry !== undefined && this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key);
  }
}
