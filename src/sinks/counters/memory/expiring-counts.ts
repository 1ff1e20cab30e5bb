import { windowStart } from '../../../limiter/cache-key';
import { LARGEST_COUNT } from '../../../limiter/counter-operation';
import { ownText, textBytes } from '../../../text/table-key';
import { type ClockWindow, ClockWindows, NONE } from './clock-windows';

/**
 * The memory of a key in addition to its characters. With 10,000 to 1,050,000 keys, 72 to 114 bytes were measured, most of them just
 * after the tables have grown.
 */
export const KEY_OVERHEAD_BYTES = 128;

const FIRST_SLOTS = 1024;
/** How many keys of past windows are removed for each new key, so that they do not pile up under a flood of new ones. */
const REMOVED_PER_KEY = 2;

export interface ExpiringCountsOptions {
  readonly maxKeys: number;
  /** The estimated memory of the keys and their counts. */
  readonly maxBytes: number;
}

/**
 * Counts by key. A key belongs to the window of the clock in which it is created, and keeps its count until {@link removePast}
 * removes the keys of that window, or until it is evicted. Times may go in both directions.
 *
 * Every key has a slot, a number, by which the arrays have its count and the next key of its window: objects would take more memory,
 * and more time of the garbage collector.
 */
export class ExpiringCounts {
  readonly #maxKeys: number;
  readonly #maxBytes: number;
  readonly #slots = new Map<string, number>();
  /** By slot. Empty for a free slot, so that nothing is kept alive. */
  readonly #keys: string[] = [];
  #counts = new Float64Array(FIRST_SLOTS);
  /** By slot: the next slot in the queue of the window, or in the list of free slots. */
  #next = new Int32Array(FIRST_SLOTS);
  #free = NONE;
  readonly #windows = new ClockWindows();
  /** Windows that end by #past, or that start after #future, are not needed any more. In Unix milliseconds. */
  #past = -Infinity;
  #future = Infinity;
  #bytes = 0;
  /** Keys that were removed for lack of room while their window lasted. */
  evictions = 0;

  constructor({ maxKeys, maxBytes }: ExpiringCountsOptions) {
    this.#maxKeys = maxKeys;
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#slots.size;
  }

  /** The estimated memory of the keys and their counts. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The key's count; 0 for an absent key. */
  get(key: string): number {
    const slot = this.#slots.get(key);
    return slot === undefined ? 0 : (this.#counts[slot] as number);
  }

  /** Sets the count of a key, which is created when it is absent, as {@link add} does. */
  // oxlint-disable-next-line max-params -- as add
  set(key: string, count: number, now: number, windowSeconds: number): void {
    const slot = this.#slots.get(key) ?? this.#create(key, now, windowSeconds);
    this.#counts[slot] = count;
  }

  /**
   * Adds to a key, and creates it when it is absent, in the current window of its length.
   *
   * @param now Unix time in milliseconds
   * @returns the count after the addition, at most 2^53 − 1, where a count saturates
   */
  // oxlint-disable-next-line max-params -- the decision path: an options object would be an allocation per hit
  add(key: string, amount: number, now: number, windowSeconds: number): number {
    const slot = this.#slots.get(key) ?? this.#create(key, now, windowSeconds);
    const count = Math.min(LARGEST_COUNT, (this.#counts[slot] as number) + amount);
    this.#counts[slot] = count;
    return count;
  }

  /** Subtracts from a key, down to 0; an absent key stays absent. Returns the count after it. */
  subtract(key: string, amount: number): number {
    const slot = this.#slots.get(key);
    if (slot === undefined) return 0;
    const count = Math.max(0, (this.#counts[slot] as number) - amount);
    this.#counts[slot] = count;
    return count;
  }

  /**
   * Removes keys of windows that end by `past` or start after `future`, in Unix milliseconds, at most `limit` of them. Until the next
   * call, the creation of keys removes some of the others.
   */
  removePast(past: number, future: number, limit: number): void {
    this.#past = past;
    this.#future = future;
    this.#remove(past, future, limit);
  }

  #remove(past: number, future: number, limit: number): void {
    for (let left = limit; left > 0; left -= 1) {
      const { endsFirst, startsLast } = this.#windows;
      if (endsFirst !== undefined && endsFirst.end * 1000 <= past) this.#drop(endsFirst);
      else if (startsLast !== undefined && startsLast.start * 1000 > future) this.#drop(startsLast);
      else return;
    }
  }

  #create(key: string, now: number, windowSeconds: number): number {
    this.#remove(Math.min(this.#past, now), Math.max(this.#future, now), REMOVED_PER_KEY);
    const own = ownText(key);
    const bytes = KEY_OVERHEAD_BYTES + textBytes(own);
    while (this.size > 0 && (this.size >= this.#maxKeys || this.#bytes + bytes > this.#maxBytes)) this.#evict(now);
    const slot = this.#takeSlot();
    this.#slots.set(own, slot);
    this.#keys[slot] = own;
    this.#counts[slot] = 0;
    this.#next[slot] = NONE;
    this.#bytes += bytes;
    const start = windowStart(Math.floor(now / 1000), windowSeconds);
    const window = this.#windows.at(start, start + windowSeconds);
    if (window.head === NONE) window.head = slot;
    else this.#next[window.tail] = slot;
    window.tail = slot;
    return slot;
  }

  /**
   * Removes a key of the window that ends first, so that a flood of short-lived keys displaces only keys of the same kind. A window
   * that has not begun has no calls: it goes before the windows that last.
   */
  #evict(now: number): void {
    const { endsFirst, startsLast } = this.#windows;
    if (endsFirst === undefined || startsLast === undefined) return;
    const isPast = endsFirst.end * 1000 <= now;
    const isFuture = startsLast.start * 1000 > now;
    this.#drop(isPast || !isFuture ? endsFirst : startsLast);
    if (!isPast && !isFuture) this.evictions += 1;
  }

  /** Removes the oldest key of a window. */
  #drop(window: ClockWindow): void {
    const slot = window.head;
    const key = this.#keys[slot] as string;
    window.head = this.#next[slot] as number;
    if (window.head === NONE) this.#windows.remove(window);
    this.#slots.delete(key);
    this.#bytes -= KEY_OVERHEAD_BYTES + textBytes(key);
    this.#keys[slot] = '';
    this.#next[slot] = this.#free;
    this.#free = slot;
  }

  #takeSlot(): number {
    const slot = this.#free;
    if (slot === NONE) return this.#addSlot();
    this.#free = this.#next[slot] as number;
    return slot;
  }

  #addSlot(): number {
    const slot = this.#keys.length;
    this.#keys.push('');
    if (slot < this.#counts.length) return slot;
    const { length } = this.#counts;
    const counts = new Float64Array(length * 2);
    const next = new Int32Array(length * 2);
    counts.set(this.#counts);
    next.set(this.#next);
    this.#counts = counts;
    this.#next = next;
    return slot;
  }
}
