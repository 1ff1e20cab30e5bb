import fc from 'fast-check';
import { ExpiringCounts, KEY_OVERHEAD_BYTES } from '../../../src/sinks/counters/memory/expiring-counts';
import { SettledClock } from '../../../src/sinks/counters/memory/settled-clock';

interface Entry {
  readonly key: string;
  count: number;
  readonly start: number;
  readonly end: number;
  /** The length of the longest window in which the key counts. */
  seconds: number;
  /** That window, if it is not the one of `start` and `end`. */
  later?: { readonly start: number; readonly end: number } | undefined;
}

/** The same as ExpiringCounts, found by looking at every key. */
class Model {
  readonly #maxKeys: number;
  readonly #maxBytes: number;
  /** In order of creation. */
  entries: readonly Entry[] = [];
  #past = -Infinity;
  #future = Infinity;
  evictions = 0;

  constructor({ maxKeys, maxBytes }: { readonly maxKeys: number; readonly maxBytes: number }) {
    this.#maxKeys = maxKeys;
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.entries.reduce((sum, { key }) => sum + costOf(key), 0);
  }

  find(key: string): Entry | undefined {
    return this.entries.find((entry) => entry.key === key);
  }

  add(key: string, amount: number, { now, seconds }: { readonly now: number; readonly seconds: number }): number {
    let entry = this.find(key);
    if (entry === undefined) {
      this.#remove(Math.min(this.#past, now), Math.max(this.#future, now), 2);
      while (this.entries.length > 0 && this.#isFull(key)) this.#evict(now);
      entry = { key, count: 0, ...windowAt(now, seconds), seconds };
      this.entries = [...this.entries, entry];
    } else if (entry.seconds < seconds) {
      entry.seconds = seconds;
      entry.later = windowAt(now, seconds);
    }
    entry.count += amount;
    return entry.count;
  }

  removePast(past: number, future: number, limit: number): void {
    this.#past = past;
    this.#future = future;
    this.#remove(past, future, limit);
  }

  #isFull(key: string): boolean {
    return this.entries.length >= this.#maxKeys || this.bytes + costOf(key) > this.#maxBytes;
  }

  #remove(past: number, future: number, limit: number): void {
    for (let left = limit; left > 0; left -= 1) {
      const ended = this.#first(({ end }) => end * 1000 <= past, endsBefore);
      this.#drop(ended ?? this.#first(({ start }) => start * 1000 > future, startsAfter));
    }
  }

  #evict(now: number): void {
    const ended = this.#first(({ end }) => end * 1000 <= now, endsBefore);
    const other = ended ?? this.#first(({ start }) => start * 1000 > now, startsAfter);
    const isRemoved = this.#drop(other ?? this.#first(() => true, endsBefore));
    if (isRemoved && other === undefined) this.evictions += 1;
  }

  #first(isMeant: (entry: Entry) => boolean, isBefore: (a: Entry, b: Entry) => boolean): Entry | undefined {
    return this.entries.reduce<Entry | undefined>(
      (first, entry) => (isMeant(entry) && (first === undefined || isBefore(entry, first)) ? entry : first),
      undefined,
    );
  }

  /** Returns false if the entry only goes to its later window, as the newest there. */
  #drop(entry: Entry | undefined): boolean {
    this.entries = this.entries.filter((each) => each !== entry);
    if (entry?.later === undefined) return true;
    this.entries = [...this.entries, { ...entry, ...entry.later, later: undefined }];
    return false;
  }
}

function windowAt(now: number, seconds: number): { readonly start: number; readonly end: number } {
  const start = Math.floor(now / 1000 / seconds) * seconds;
  return { start, end: start + seconds };
}

function endsBefore(a: Entry, b: Entry): boolean {
  return a.end < b.end || (a.end === b.end && a.start < b.start);
}

function startsAfter(a: Entry, b: Entry): boolean {
  return a.start > b.start || (a.start === b.start && a.end > b.end);
}

function costOf(key: string): number {
  return KEY_OVERHEAD_BYTES + (key.startsWith('鍵') ? 2 : 1) * key.length;
}

const keys = Array.from({ length: 12 }, (_, index) =>
  index % 3 === 0 ? `鍵${'k'.repeat(index * 9)}` : `key ${index}`,
);
const jump = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 1500 }) },
  { weight: 1, arbitrary: fc.integer({ min: -10_000_000, max: 10_000_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: -2000, max: 2000 }) },
);
const step = fc.record({
  action: fc.constantFrom('add', 'add', 'add', 'subtract', 'get', 'removePast'),
  key: fc.constantFrom(...keys),
  amount: fc.integer({ min: 1, max: 5 }),
  /** Windows of the first three often end together. */
  seconds: fc.constantFrom(1, 2, 4, 60, 3600),
  passes: jump,
  /** How far the bounds of a removal are from the clock, and how many keys it removes at most. */
  before: fc.integer({ min: 0, max: 100_000 }),
  after: fc.integer({ min: 0, max: 100_000 }),
  limit: fc.integer({ min: 0, max: 6 }),
});

it('ExpiringCounts returns the counts of a plain list of keys, for random operations, bounds and jumps of the clock', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 80 }),
      fc.record({ maxKeys: fc.integer({ min: 1, max: 12 }), maxBytes: fc.integer({ min: 1, max: 1600 }) }),
      (steps, bounds) => {
        const counts = new ExpiringCounts(bounds);
        const model = new Model(bounds);
        let now = 1_700_000_000_000;
        for (const { action, key, amount, seconds, passes, before, after, limit } of steps) {
          now += passes;
          const known = model.find(key);
          if (action === 'add') {
            expect(counts.add(key, amount, now, seconds)).toBe(model.add(key, amount, { now, seconds }));
          } else if (action === 'subtract') {
            if (known !== undefined) known.count = Math.max(0, known.count - amount);
            expect(counts.subtract(key, amount)).toBe(known?.count ?? 0);
          } else if (action === 'get') {
            expect(counts.get(key)).toBe(known?.count ?? 0);
          } else {
            counts.removePast(now - before, now + after, limit);
            model.removePast(now - before, now + after, limit);
          }
          expect([counts.size, counts.bytes, counts.evictions]).toEqual([
            model.entries.length,
            model.bytes,
            model.evictions,
          ]);
        }
        for (const key of keys) expect(counts.get(key)).toBe(model.find(key)?.count ?? 0);
      },
    ),
    { numRuns: 2000 },
  );
});

it('ExpiringCounts keeps a key until the longest of its windows has ended, whichever counts first', () => {
  const counts = new ExpiringCounts({ maxKeys: 10, maxBytes: Infinity });
  counts.add('k', 1, 0, 60);
  counts.add('k', 2, 1_000, 3600);
  counts.add('k', 4, 2_000, 60);
  counts.add('minute', 1, 2_000, 60);
  counts.removePast(60_000, Infinity, 10);
  expect([counts.get('k'), counts.get('minute'), counts.size]).toEqual([7, 0, 1]);
  counts.removePast(3_600_000, Infinity, 10);
  expect([counts.get('k'), counts.size, counts.bytes]).toEqual([0, 0, 0]);
});

it('ExpiringCounts evicts keys of two windows when room is needed, after giving a few of them to the longer one', () => {
  const counts = new ExpiringCounts({ maxKeys: 1000, maxBytes: Infinity });
  for (const seconds of [60, 3600]) for (let key = 0; key < 1000; key += 1) counts.add(`k${key}`, 1, 0, seconds);
  counts.add('new', 1, 1_000, 60);
  expect([counts.size, counts.evictions]).toEqual([1000, 1]);
  const gone = Array.from({ length: 1000 }, (_, key) => key).filter((key) => counts.get(`k${key}`) === 0);
  expect(gone).toEqual([16]);
});

it('ExpiringCounts uses the places of removed keys again, also beyond its first size', () => {
  const counts = new ExpiringCounts({ maxKeys: 3000, maxBytes: Infinity });
  for (let key = 0; key < 10_000; key += 1) counts.add(`k${key}`, key, 0, 60);
  expect(counts.size).toBe(3000);
  for (let key = 0; key < 7000; key += 1) expect(counts.get(`k${key}`)).toBe(0);
  for (let key = 7000; key < 10_000; key += 1) expect(counts.get(`k${key}`)).toBe(key);
  counts.removePast(60_000, Infinity, 10_000);
  expect([counts.size, counts.bytes]).toEqual([0, 0]);
});

describe('a settled clock', () => {
  const INTERVAL = 1000;
  const HOUR = 3_600_000;

  /** What it shows after each reading of a clock that differs by these milliseconds from one that starts at 0 and runs evenly. */
  function shown(deviations: readonly number[]): readonly number[] {
    const clock = new SettledClock(INTERVAL, 0);
    return deviations.map((deviation, index) => {
      const even = (index + 1) * INTERVAL;
      return clock.read(even + deviation) - even;
    });
  }

  it('follows deviations of seconds, as late timers cause them', () => {
    expect(shown([0, 3000, 9000, -1000, 0])).toEqual([0, 3000, 9000, -1000, 0]);
  });

  it('runs evenly while a jump lasts less than a minute', () => {
    const away = Array.from({ length: 59 }, () => 0);
    for (const jumped of [2 * HOUR, -2 * HOUR]) {
      expect(shown([0, ...away.map(() => jumped), 0, 0])).toEqual([0, ...away, 0, 0]);
    }
  });

  it('follows a jump after a minute', () => {
    const minute = Array.from({ length: 60 }, () => 0);
    for (const jumped of [2 * HOUR, -2 * HOUR]) {
      expect(shown([0, ...minute.map(() => jumped), jumped, jumped])).toEqual([0, ...minute, jumped, jumped]);
    }
  });

  it('starts the minute again when the clock jumps again', () => {
    const half = Array.from({ length: 30 }, () => 0);
    const deviations = [...half.map(() => HOUR), ...half.map(() => 2 * HOUR), ...half.map(() => HOUR)];
    expect(shown(deviations)).toEqual([...half, ...half, ...half]);
  });
});
