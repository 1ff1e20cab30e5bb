import { ownText, tableKey, textBytes } from '../text/table-key';
import { WideMap } from '../text/wide-map';
import type { Algorithm, Block, BlockableState, CountedState, LimitState, WindowsState } from './algorithms/algorithm';
import { Blocking, blockLifetime } from './algorithms/blocking';
import { type Counted, LARGEST_COUNT, type Stored } from './operation';
import type { CounterTable } from './simulate';
import { type LimitWindow, windowStart } from './windows';

/**
 * The memory of a key in addition to its characters, at most. With 10,000 to 1,200,000 keys, 52 to 65 bytes were
 * measured.
 */
export const KEY_OVERHEAD_BYTES = 128;

export interface ExpiringCountsOptions {
  /** How many keys are held at most: MEMORY_MAX_KEYS. */
  readonly maxKeys: number;
  /** How much memory they take at most, estimated: MEMORY_MAX_BYTES; without it, only their number is limited. */
  readonly maxBytes?: number;
}

/** The memory of a state in addition to that of a count, at most: an object with four numbers. */
const STATE_BYTES = 96;

/** A window of the clock, in Unix milliseconds, and the counts of its keys. */
interface ClockWindow {
  readonly start: number;
  /** The first millisecond after it. */
  readonly end: number;
  readonly counts: WideMap<Stored | Block>;
  /** The bytes of each key in addition to those of a count. */
  readonly extraBytes: number;
  bytes: number;
}

/**
 * Counts by key, in a table for each window of the clock, which is removed as a whole when the window is over. A key
 * belongs to the window in which it is created. Limits of different units can have one key: it then belongs to the
 * window that ends last. While the clock runs evenly, there are a few windows for each unit, so they are searched one
 * after the other. Times may go in both directions.
 */
export class ExpiringCounts {
  readonly #maxKeys: number;
  readonly #maxBytes: number;
  /** The windows that have keys, the one that ends first in front. */
  #windows: readonly ClockWindow[] = [];
  #size = 0;
  #bytes = 0;
  /** Keys that were removed for lack of room while their window lasted. */
  evictions = 0;

  constructor({ maxKeys, maxBytes = Infinity }: ExpiringCountsOptions) {
    this.#maxKeys = maxKeys;
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#size;
  }

  /** The estimated memory of the keys and their counts. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The key's count; 0 for an absent key. */
  get(key: string): number {
    return (this.#windowOf(key)?.counts.get(key) as number | undefined) ?? 0;
  }

  /** What the algorithm of a limit has left in a key, a fixed window its count; undefined for an absent key. */
  state(key: string): LimitState | undefined {
    const stored = this.#windowOf(key)?.counts.get(key) as Stored | undefined;
    return typeof stored === 'number' ? { previous: 0, current: stored, now: 0 } : stored;
  }

  /** Sets it. It is removed when at least its lifetime in seconds has passed. */
  setState(key: string, state: LimitState | Block, now: number, lifetime: number): void {
    // Powers of two, as limits that are sent with requests can have any lifetime, and each needs windows of its own.
    const length = 2 ** Math.ceil(Math.log2(lifetime));
    const seconds = Math.floor(now / 1000);
    const start = (seconds - (seconds % length)) * 1000;
    const end = start + 2 * length * 1000;
    const known = this.#windowOf(key);
    if (known?.start === start && known.end === end) known.counts.set(key, state);
    else {
      this.remove(key);
      this.#create(key, now, { start, end, extraBytes: STATE_BYTES }).counts.set(key, state);
    }
  }

  /**
   * Adds to a key, and creates it when it is absent, in the current window of its length, or in one from the Unix epoch
   * to the end of its window of the calendar.
   *
   * @param now Unix time in milliseconds
   * @returns the count after the addition, at most 2^53 − 1, where a count saturates
   */
  add(key: string, amount: number, now: number, { lengthSeconds, endsAt }: LimitWindow): number {
    const start = endsAt === undefined ? windowStart(Math.floor(now / 1000), lengthSeconds) * 1000 : 0;
    const end = start + (endsAt ?? lengthSeconds) * 1000;
    const part = this.#windowAt(start, end, 0)?.counts.part(key);
    const before = part?.get(key) as number | undefined;
    if (part === undefined || before === undefined) return this.#addElsewhere(key, amount, { now, start, end });
    const count = Math.min(LARGEST_COUNT, before + amount);
    part.set(key, count);
    return count;
  }

  /** Adds to a key that is not in the window from `start` to `end`. */
  #addElsewhere(key: string, amount: number, { now, start, end }: { now: number; start: number; end: number }): number {
    let window = this.#windowOf(key);
    const count = Math.min(LARGEST_COUNT, ((window?.counts.get(key) as number | undefined) ?? 0) + amount);
    // A late hit leaves a key in its window, which has the same length.
    const endsSooner = window !== undefined && window.end < end && window.end - window.start !== end - start;
    if (endsSooner) this.remove(key);
    if (window === undefined || endsSooner) {
      window = this.#create(key, now, { start, end, extraBytes: 0 });
    }
    window.counts.set(key, count);
    return count;
  }

  /** Subtracts from a key, down to 0; an absent key stays absent. Returns the count after it. */
  subtract(key: string, amount: number): number {
    const counts = this.#windowOf(key)?.counts;
    if (counts === undefined) return 0;
    const count = Math.max(0, (counts.get(key) as number) - amount);
    counts.set(key, count);
    return count;
  }

  /**
   * Adds hits as {@link add}, subtracts negative ones as {@link subtract}, and reads with 0. Returns the count after
   * it.
   */
  change(key: string, hits: number, now: number, window: LimitWindow): number {
    if (hits < 0) return this.subtract(key, -hits);
    return hits === 0 ? this.get(key) : this.add(key, hits, now, window);
  }

  /** Replaces the count of a key, which is created when it is absent, as by {@link add}; 0 creates none. */
  set(key: string, count: number, now: number, window: LimitWindow): void {
    this.subtract(key, LARGEST_COUNT);
    if (count > 0) this.add(key, count, now, window);
  }

  remove(key: string): void {
    const window = this.#windowOf(key);
    if (window === undefined) return;
    window.counts.delete(key);
    this.#removed(window, key);
  }

  /** Removes the windows that end by `past` or start after `future`, in Unix milliseconds. */
  removeOutside(past: number, future: number): void {
    const kept = this.#windows.filter(({ start, end }) => end > past && start <= future);
    this.#windows = kept;
    this.#size = kept.reduce((sum, { counts }) => sum + counts.size, 0);
    this.#bytes = kept.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  #windowAt(start: number, end: number, extraBytes: number): ClockWindow | undefined {
    for (const window of this.#windows) {
      if (window.start === start && window.end === end && window.extraBytes === extraBytes) return window;
    }
    return undefined;
  }

  /** The window that has a key. */
  #windowOf(key: string): ClockWindow | undefined {
    for (const window of this.#windows) if (window.counts.get(key) !== undefined) return window;
    return undefined;
  }

  /** Makes room for a key, and adds it to a window with the count 0. */
  #create(
    key: string,
    now: number,
    { start, end, extraBytes }: Pick<ClockWindow, 'start' | 'end' | 'extraBytes'>,
  ): ClockWindow {
    const own = ownText(key);
    const bytes = KEY_OVERHEAD_BYTES + extraBytes + textBytes(own);
    while (this.#size > 0 && (this.#size >= this.#maxKeys || this.#bytes + bytes > this.#maxBytes)) this.#evict(now);
    let window = this.#windowAt(start, end, extraBytes);
    if (window === undefined) {
      window = { start, end, counts: new WideMap(), extraBytes, bytes: 0 };
      this.#windows = [...this.#windows, window].sort((one, other) => one.end - other.end || one.start - other.start);
    }
    window.counts.set(own, 0);
    window.bytes += bytes;
    this.#bytes += bytes;
    this.#size += 1;
    return window;
  }

  /**
   * Removes a key of the window that ends first, so that a flood of short-lived keys displaces only keys of the same
   * kind. A window that has not begun has no calls: it goes before the windows that last.
   */
  #evict(now: number): void {
    let window = this.#windows[0] as ClockWindow;
    for (const each of this.#windows) if (window.end > now && each.start > Math.max(now, window.start)) window = each;
    const key = window.counts.removeOldest() as string;
    if (window.start <= now && now < window.end) this.evictions += 1;
    this.#removed(window, key);
  }

  #removed(window: ClockWindow, key: string): void {
    const bytes = KEY_OVERHEAD_BYTES + window.extraBytes + textBytes(key);
    window.bytes -= bytes;
    this.#bytes -= bytes;
    this.#size -= 1;
    if (window.counts.size === 0) this.#windows = this.#windows.filter((each) => each !== window);
  }
}

/** For how many seconds a state may differ from an absent one: that of a bucket in debt for longer than a full one. */
export function lifetimeOf({ lifetime }: Algorithm, state: LimitState): number {
  return 'whole' in state ? Math.max(lifetime, Math.ceil((state.whole + 1) / 1_000_000)) : lifetime;
}

/** Counts by key as they are at a time, for what is simulated on them. */
export class TimedCounts implements CounterTable {
  /** The time of what follows, in Unix milliseconds. */
  now = 0;

  constructor(readonly counts: ExpiringCounts) {}

  countOf({ key }: Counted): number {
    return this.counts.get(tableKey(key));
  }

  add({ key, limit }: Counted, hits: number): number {
    return this.counts.change(tableKey(key), hits, this.now, limit);
  }

  stateOf({ key, limit, blockKey }: Counted): LimitState {
    const algorithm = limit.algorithm as Algorithm;
    const stored = this.counts.state(tableKey(key));
    if (algorithm instanceof Blocking)
      return algorithm.stateOf(stored as CountedState | undefined, this.#block(blockKey!), this.now * 1000);
    return stored === undefined ? algorithm.empty(this.now * 1000) : algorithm.at(stored, this.now * 1000);
  }

  #block(key: string): Block | undefined {
    return this.counts.state(tableKey(key)) as Block | undefined;
  }

  keep(counter: Counted, state: LimitState, before: LimitState): void {
    if (!('block' in state)) return this.#keep(counter, state, before);
    const { block, counted } = state;
    const { key, limit, blockKey = '' } = counter;
    const isNew = block !== this.#block(blockKey) && block.length > 0;
    if (isNew) {
      const lifetime = blockLifetime(block, limit.algorithm!.blockFor!, this.now * 1000);
      this.counts.setState(tableKey(blockKey), block, this.now, lifetime);
    } else if (block.length === 0) this.counts.remove(tableKey(blockKey));
    if (isNew) this.counts.remove(tableKey(key));
    else this.#keep(counter, counted, (before as BlockableState).counted);
  }

  #keep({ key: cacheKey, limit }: Counted, state: LimitState, before: LimitState): void {
    const key = tableKey(cacheKey);
    // What is given back to a key that is absent leaves it absent. A known one is set in any case: the clock may have
    // gone back.
    if (state === before && this.counts.state(key) === undefined) return;
    const algorithm = limit.algorithm as Algorithm;
    if (algorithm.name !== 'fixed_window') {
      this.counts.setState(key, state, this.now, lifetimeOf(algorithm, state));
      return;
    }
    // As hits of plain limits: reservations add to them.
    this.counts.subtract(key, LARGEST_COUNT);
    this.counts.add(key, (state as WindowsState).current, this.now, limit);
  }
}
