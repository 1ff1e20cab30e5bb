import type { Statistics } from '../statistics/statistics';
import { ownText, tableKey, textBytes } from '../text/table-key';
import { WideMap, hashOf } from '../text/wide-map';

/** The estimated memory of an entry in addition to its key: the map's slot, the object and its numbers. */
const ENTRY_OVERHEAD_BYTES = 120;

interface OverLimit {
  /** The {@link tableKey} of the cache key. */
  readonly key: string;
  /** The limit that the count was over. */
  readonly limit: number;
  /** Until when it is over its limit, in Unix seconds. */
  readonly closedUntil: number;
  /** When it is forgotten, in Unix seconds: not later. */
  readonly expiresAt: number;
  /** Unix seconds of the last hit, or of the creation. */
  accessedAt: number;
  /** The neighbours in order of addition. */
  older: OverLimit | undefined;
  newer: OverLimit | undefined;
}

/**
 * Keys that are over their limit until their window ends, so that the store is not called for them again. Limited by
 * their estimated size in bytes; the oldest keys are evicted first.
 */
export class OverLimitCache {
  readonly #maxBytes: number;
  readonly #maxAge: number;
  readonly #removals = new KeyRemovals();
  #entries = new WideMap<OverLimit>();
  // The order is not left to the map: after removals, finding its first entry takes time in proportion to their number.
  #oldest: OverLimit | undefined;
  #newest: OverLimit | undefined;
  #bytes = 0;
  #accessTimes = 0;
  /** The time of the latest look-up, in Unix seconds. */
  #now = Number.NaN;
  hits = 0;
  misses = 0;
  expired = 0;
  evicted = 0;
  overwritten = 0;

  /**
   * @param maxBytes 0 disables the cache (LocalCacheSizeInBytes)
   * @param maxAge whole seconds after which the store is asked again, so that a counter which another process has
   * cleared is noticed
   */
  constructor(maxBytes: number, maxAge = Infinity) {
    this.#maxBytes = maxBytes;
    this.#maxAge = maxAge;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The mean of the entries' last accesses, in Unix seconds; 0 if there are none. */
  get averageAccessTime(): number {
    return this.size === 0 ? 0 : Math.floor(this.#accessTimes / this.size);
  }

  /**
   * Whether the key is over this limit; false if the limit has been raised since, so that the store is called again.
   */
  isOver(cacheKey: string, limit: number, nowSeconds: number): boolean {
    if (this.#maxBytes === 0) return false;
    this.#follow(nowSeconds);
    const key = tableKey(cacheKey);
    const entry = this.#entries.get(key);
    if (entry !== undefined && entry.expiresAt <= nowSeconds) {
      this.#remove(key);
      this.expired += 1;
    } else if (entry !== undefined && limit <= entry.limit) {
      this.hits += 1;
      this.#accessTimes += nowSeconds - entry.accessedAt;
      entry.accessedAt = nowSeconds;
      return true;
    }
    this.misses += 1;
    return false;
  }

  /** As {@link isOver}, but changes and counts nothing. */
  holds(cacheKey: string, limit: number, nowSeconds: number): boolean {
    // A clock that has gone back empties the cache.
    if (this.size === 0 || nowSeconds < this.#now) return false;
    const entry = this.#entries.get(tableKey(cacheKey));
    return entry !== undefined && entry.expiresAt > nowSeconds && limit <= entry.limit;
  }

  /** For how long a key is still over its limit. */
  secondsLeft(cacheKey: string, nowSeconds: number): number | undefined {
    const closedUntil = this.#entries.get(tableKey(cacheKey))?.closedUntil;
    return closedUntil === undefined ? undefined : Math.max(1, closedUntil - nowSeconds);
  }

  /**
   * Adds a key that is over its limit until its window ends.
   *
   * @param nowSeconds the time of its look-up. The store may have taken seconds since; if the clock has gone back in
   *   the meantime, the key is not added.
   */
  add(cacheKey: string, limit: number, closedUntil: number, nowSeconds: number): void {
    if (this.#maxBytes === 0 || nowSeconds > this.#now) return;
    const key = ownText(tableKey(cacheKey));
    if (costOf(key) > this.#maxBytes) return;
    if (this.#remove(key)) this.overwritten += 1;
    const expiresAt = Math.min(closedUntil, nowSeconds + this.#maxAge);
    const accessedAt = nowSeconds;
    this.#append({ key, limit, closedUntil, expiresAt, accessedAt, older: this.#newest, newer: undefined });
    while (this.#bytes > this.#maxBytes && this.#oldest !== undefined) {
      // The key of an ended window is not looked up again, so its expiry is detected here.
      if (this.#oldest.expiresAt <= nowSeconds) this.expired += 1;
      else this.evicted += 1;
      this.#remove(this.#oldest.key);
    }
  }

  /** Removes a key whose count was reduced. */
  remove(cacheKey: string): void {
    if (this.#maxBytes === 0) return;
    const key = tableKey(cacheKey);
    this.#removals.add(key);
    this.#remove(key);
  }

  /** How many removals there were: the mark for {@link wasRemovedSince}. */
  get removals(): number {
    return this.#removals.count;
  }

  /**
   * Whether a key was removed after the mark was taken: a count that the store has returned meanwhile may be out of
   * date.
   */
  wasRemovedSince(mark: number, cacheKey: string): boolean {
    return this.#removals.count > mark && this.#removals.hasSince(tableKey(cacheKey), mark);
  }

  /**
   * When the clock has gone back, windows may come again that were over their limit before, and whose counters the
   * store has removed since. So the cache starts again, and the store decides.
   */
  #follow(nowSeconds: number): void {
    if (nowSeconds < this.#now) {
      this.expired += this.size;
      this.clear();
    }
    this.#now = nowSeconds;
  }

  /** Removes all keys. */
  clear(): void {
    this.#entries = new WideMap();
    this.#oldest = undefined;
    this.#newest = undefined;
    this.#bytes = 0;
    this.#accessTimes = 0;
  }

  /** Makes the numbers of the cache statistics. */
  publish(statistics: Statistics): void {
    const gauges = {
      entryCount: () => this.size,
      hitCount: () => this.hits,
      missCount: () => this.misses,
      lookupCount: () => this.hits + this.misses,
      expiredCount: () => this.expired,
      evacuateCount: () => this.evicted,
      overwriteCount: () => this.overwritten,
      averageAccessTime: () => this.averageAccessTime,
    };
    for (const [name, read] of Object.entries(gauges)) statistics.gauge(`ratelimit.localcache.${name}`, read);
  }

  #append(entry: OverLimit): void {
    this.#entries.set(entry.key, entry);
    if (entry.older === undefined) this.#oldest = entry;
    else entry.older.newer = entry;
    this.#newest = entry;
    this.#accessTimes += entry.accessedAt;
    this.#bytes += costOf(entry.key);
  }

  #remove(key: string): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#entries.delete(key);
    if (entry.older === undefined) this.#oldest = entry.newer;
    else entry.older.newer = entry.newer;
    if (entry.newer === undefined) this.#newest = entry.older;
    else entry.newer.older = entry.older;
    this.#accessTimes -= entry.accessedAt;
    this.#bytes -= costOf(key);
    return true;
  }
}

/** The cache of a decision that is only tried: it reads another cache, and changes nothing in it. */
export class TrialCache extends OverLimitCache {
  readonly #cache: OverLimitCache;
  readonly #removed = new Set<string>();

  constructor(cache: OverLimitCache) {
    super(0);
    this.#cache = cache;
  }

  override isOver(cacheKey: string, limit: number, nowSeconds: number): boolean {
    return !this.#removed.has(cacheKey) && this.#cache.holds(cacheKey, limit, nowSeconds);
  }

  override secondsLeft(cacheKey: string, nowSeconds: number): number | undefined {
    return this.#cache.secondsLeft(cacheKey, nowSeconds);
  }

  override remove(cacheKey: string): void {
    this.#removed.add(cacheKey);
  }
}

function costOf(key: string): number {
  return ENTRY_OVERHEAD_BYTES + textBytes(key);
}

const GROUP_BITS = 10;

/**
 * When keys were removed, in a bounded amount of memory: the last removal of each of 1,024 groups of keys. Of a key
 * that was not removed it may say so because of another one of its group.
 */
class KeyRemovals {
  /** The number of the last removal of each group; 0 if there was none. */
  readonly #last = new Float64Array(2 ** GROUP_BITS);
  /** How many there were. */
  count = 0;

  add(key: string): void {
    this.count += 1;
    this.#last[groupOf(key)] = this.count;
  }

  /** Whether a key was removed after the first `count` removals. */
  hasSince(key: string, count: number): boolean {
    return (this.#last[groupOf(key)] as number) > count;
  }
}

function groupOf(key: string): number {
  return hashOf(key) >>> (32 - GROUP_BITS);
}
