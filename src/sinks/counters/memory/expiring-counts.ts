import { windowStart } from '../../../limiter/cache-key';
import { LARGEST_COUNT } from '../../../limiter/counter-operation';
import { ownText, textBytes } from '../../../text/table-key';
import { WideMap } from '../../../text/wide-map';
import { type ClockWindow, ClockWindows, NONE } from './clock-windows';
import { Slots } from './slots';

/**
 * The memory of a key in addition to its characters. With 10,000 to 1,050,000 keys, 72 to 114 bytes were measured, most of them just
 * after the tables have grown.
 */
export const KEY_OVERHEAD_BYTES = 128;

/** How many keys of past windows are removed for each new key, so that they do not pile up under a flood of new ones. */
const REMOVED_PER_KEY = 2;
/** How many keys may go to a later window to make room for a new key; from then on, they are evicted, so that the time stays bounded. */
const MOVED_PER_KEY = 16;

export interface ExpiringCountsOptions {
  readonly maxKeys: number;
  /** The estimated memory of the keys and their counts. */
  readonly maxBytes: number;
}

/**
 * Counts by key. A key belongs to the window of the clock in which it is created, and keeps its count until {@link removePast}
 * removes the keys of that window, or until it is evicted. Limits of different units can have one key: it then belongs to the longest
 * window. Times may go in both directions.
 */
export class ExpiringCounts {
  readonly #maxKeys: number;
  readonly #maxBytes: number;
  /** The slot of each key. */
  readonly #slotOf = new WideMap<number>();
  readonly #slots: Slots;
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
    this.#slots = new Slots(maxKeys);
  }

  get size(): number {
    return this.#slotOf.size;
  }

  /** The estimated memory of the keys and their counts. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The key's count; 0 for an absent key. */
  get(key: string): number {
    const slot = this.#slotOf.get(key);
    return slot === undefined ? 0 : this.#slots.count(slot);
  }

  /** Sets the count of a key, which is created when it is absent, as {@link add} does. */
  // oxlint-disable-next-line max-params -- as add
  set(key: string, count: number, now: number, windowSeconds: number): void {
    this.#slots.setCount(this.#slotFor(key, now, windowSeconds), count);
  }

  /**
   * Adds to a key, and creates it when it is absent, in the current window of its length.
   *
   * @param now Unix time in milliseconds
   * @returns the count after the addition, at most 2^53 − 1, where a count saturates
   */
  // oxlint-disable-next-line max-params -- the decision path: an options object would be an allocation per hit
  add(key: string, amount: number, now: number, windowSeconds: number): number {
    const slot = this.#slotFor(key, now, windowSeconds);
    const count = Math.min(LARGEST_COUNT, this.#slots.count(slot) + amount);
    this.#slots.setCount(slot, count);
    return count;
  }

  /** Subtracts from a key, down to 0; an absent key stays absent. Returns the count after it. */
  subtract(key: string, amount: number): number {
    const slot = this.#slotOf.get(key);
    if (slot === undefined) return 0;
    const count = Math.max(0, this.#slots.count(slot) - amount);
    this.#slots.setCount(slot, count);
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

  #slotFor(key: string, now: number, windowSeconds: number): number {
    const slot = this.#slotOf.get(key);
    if (slot === undefined) return this.#create(key, now, windowSeconds);
    if (this.#slots.windowSeconds(slot) < windowSeconds) {
      this.#slots.setWindowSeconds(slot, windowSeconds);
      // It goes there when the window of its queue ends.
      this.#slots.setLaterStart(slot, windowStart(Math.floor(now / 1000), windowSeconds));
    }
    return slot;
  }

  #create(key: string, now: number, windowSeconds: number): number {
    this.#remove(Math.min(this.#past, now), Math.max(this.#future, now), REMOVED_PER_KEY);
    const own = ownText(key);
    const bytes = KEY_OVERHEAD_BYTES + textBytes(own);
    let moves = MOVED_PER_KEY;
    while (this.size > 0 && (this.size >= this.#maxKeys || this.#bytes + bytes > this.#maxBytes)) {
      const isRemoved = this.#evict(now, moves > 0);
      if (!isRemoved) moves -= 1;
    }
    const slot = this.#slots.take(own, windowSeconds);
    this.#slotOf.set(own, slot);
    this.#bytes += bytes;
    this.#enqueue(slot, windowStart(Math.floor(now / 1000), windowSeconds));
    return slot;
  }

  /** Makes a slot the last one of the window of its length that begins at `start`. */
  #enqueue(slot: number, start: number): void {
    const window = this.#windows.at(start, start + this.#slots.windowSeconds(slot));
    if (window.head === NONE) window.head = slot;
    else this.#slots.setNext(window.tail, slot);
    window.tail = slot;
  }

  /**
   * Removes a key of the window that ends first, so that a flood of short-lived keys displaces only keys of the same kind. A window
   * that has not begun has no calls: it goes before the windows that last. Returns false if the key only went to a later window.
   */
  #evict(now: number, mayMove: boolean): boolean {
    const { endsFirst, startsLast } = this.#windows;
    if (endsFirst === undefined || startsLast === undefined) return false;
    const isPast = endsFirst.end * 1000 <= now;
    const isFuture = startsLast.start * 1000 > now;
    const isRemoved = this.#drop(isPast || !isFuture ? endsFirst : startsLast, mayMove);
    if (isRemoved && !isPast && !isFuture) this.evictions += 1;
    return isRemoved;
  }

  /** Removes the oldest key of a window; returns false if it only goes to the later window to which it belongs. */
  #drop(window: ClockWindow, mayMove = true): boolean {
    const slot = window.head;
    window.head = this.#slots.next(slot);
    if (window.head === NONE) this.#windows.remove(window);
    const later = this.#slots.laterStart(slot);
    if (later !== undefined && mayMove) {
      this.#slots.setLaterStart(slot, undefined);
      this.#slots.setNext(slot, NONE);
      this.#enqueue(slot, later);
      return false;
    }
    const key = this.#slots.key(slot);
    this.#slotOf.delete(key);
    this.#slots.release(slot);
    this.#bytes -= KEY_OVERHEAD_BYTES + textBytes(key);
    return true;
  }
}
