import { ExpiringCounts, type ExpiringCountsOptions, KEY_OVERHEAD_BYTES, TimedCounts } from '../../src/counting/counts';
import { algorithmOf } from '../../src/counting/limit';
import { LARGEST_COUNT } from '../../src/counting/operation';
import { operation, windowOf } from '../support/data/operations';
import fc from '../support/data/properties';

const SECOND = 1000;
const [HOUR, DAY] = [3600 * SECOND, 86_400 * SECOND];

/** Counts at a time that begins at a full day. */
function counts({ maxKeys = 100, ...bounds }: Partial<ExpiringCountsOptions> = {}) {
  const table = new TimedCounts(new ExpiringCounts({ maxKeys, ...bounds }));
  table.now = 20_000 * DAY;
  function count(key: string, hits: number, seconds = 60): number {
    return table.add(operation(key, hits, windowOf(seconds)), hits);
  }
  /** Adds one hit to each of `n` keys. */
  function flood(n: number, prefix: string, seconds = 60): void {
    for (let key = 0; key < n; key += 1) count(`${prefix}${key}`, 1, seconds);
  }
  /** After some milliseconds, removes the keys of windows that have ended so many before, or have not begun. */
  function pass(milliseconds: number, grace = 0): void {
    table.now += milliseconds;
    table.counts.removeOutside(table.now - grace, table.now);
  }
  return { table, of: table.counts, count, flood, pass };
}

/** A key with the beginning and end of its window in seconds. */
type Entry = { key: string; count: number; start: number; end: number };

function costOf(key: string): number {
  return KEY_OVERHEAD_BYTES + (key.startsWith('鍵') ? 2 : 1) * key.length;
}

/** The same while the clock runs evenly, found by looking at every key. */
class Model {
  /** In the order in which they have come to their windows. */
  entries: Entry[] = [];
  evictions = 0;

  constructor(
    readonly maxKeys: number,
    readonly maxBytes: number,
  ) {}

  get bytes(): number {
    return this.entries.reduce((sum, { key }) => sum + costOf(key), 0);
  }

  count(key: string, hits: number, { now, seconds }: { readonly now: number; readonly seconds: number }): number {
    const start = Math.floor(now / 1000 / seconds) * seconds;
    let entry = this.entries.find((each) => each.key === key);
    if (hits <= 0 && entry === undefined) return 0;
    if (entry === undefined || (hits > 0 && entry.end < start + seconds && entry.end - entry.start !== seconds)) {
      if (entry !== undefined) this.entries.splice(this.entries.indexOf(entry), 1);
      while (this.entries.length > 0 && this.#isFull(key)) this.#evict(now);
      entry = { key, count: entry?.count ?? 0, start, end: start + seconds };
      this.entries.push(entry);
    }
    entry.count = Math.max(0, entry.count + hits);
    return entry.count;
  }

  removeEnded(now: number): void {
    this.entries = this.entries.filter(({ end }) => end * 1000 > now);
  }

  #isFull(key: string): boolean {
    return this.entries.length >= this.maxKeys || this.bytes + costOf(key) > this.maxBytes;
  }

  /** Removes the oldest entry of the window that ends first. */
  #evict(now: number): void {
    const first = this.entries.toSorted((a, b) => a.end - b.end || a.start - b.start)[0]!;
    this.entries.splice(this.entries.indexOf(first), 1);
    if (first.end * 1000 > now) this.evictions += 1;
  }
}

describe('a table of counts', () => {
  it('has the counts, evictions and bytes of a plain list of keys, for random hits, windows and bounds', () => {
    // So short that they are in one part of the table, which keeps their order.
    const keys = Array.from({ length: 11 }, (_, index) => (index % 3 === 0 ? '鍵' : 'k') + 'k'.repeat(index));
    const step = fc.record({
      passes: fc.constantFrom(0, 0, 0, 0, 0, 0, 1, 5),
      key: fc.constantFrom(...keys),
      hits: fc.integer({ min: -3, max: 5 }),
      // Windows of the first three often end together.
      seconds: fc.constantFrom(1, 2, 4, 60, 3600),
    });
    const bounds = fc.record({ maxKeys: fc.integer({ min: 1, max: 12 }), maxBytes: fc.integer({ min: 1, max: 1600 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), bounds, (steps, { maxKeys, maxBytes }) => {
        const { table, of, count, pass } = counts({ maxKeys, maxBytes });
        const model = new Model(maxKeys, maxBytes);
        const [states, wanted]: [number[][], number[][]] = [[], []];
        for (const { passes, key, hits, seconds } of steps) {
          pass(passes * SECOND, SECOND);
          model.removeEnded(table.now - SECOND);
          states.push([count(key, hits, seconds), of.size, of.bytes, of.evictions]);
          const after = model.count(key, hits, { now: table.now, seconds });
          wanted.push([after, model.entries.length, model.bytes, model.evictions]);
        }
        expect(states).toEqual(wanted);
      }),
      { numRuns: 400 },
    );
  });

  it('keeps a key that limits of several lengths share until the last of their windows ends, also one of the calendar', () => {
    const [day, week] = [DAY / SECOND, (7 * DAY) / SECOND];
    const { table, count, pass } = counts();
    // The clock starts on a Saturday, two days after the week: a day of UTC ends with the plain day.
    const calendar = table.now / SECOND + day;
    const firsts = [day, week, calendar, week, day];
    const lasts = [week, day, week, calendar, calendar + day];
    for (const windows of [firsts, lasts]) windows.forEach((seconds, index) => count(`k${index}`, 2, seconds));
    const kept = [DAY, DAY, 7 * DAY].map((milliseconds) => {
      pass(milliseconds);
      return firsts.map((_, index) => count(`k${index}`, 0)).join(' ');
    });
    expect(kept).toEqual(['4 4 4 4 4', '4 4 4 4 0', '0 0 0 0 0']);
  });

  it('leaves a key in its window when a hit of the same length comes late', () => {
    const { count, pass } = counts();
    count('k', 1);
    pass(60.5 * SECOND, SECOND);
    expect(count('k', 1)).toBe(2);
    pass(SECOND, SECOND);
    expect(count('k', 0)).toBe(0);
  });

  it('evicts keys in their order, but not those of a longer window for a flood of short-lived keys', () => {
    const { of, count, flood, pass } = counts({ maxKeys: 3000 });
    flood(10_000, 'k');
    expect([of.size, of.evictions]).toEqual([3000, 7000]);
    for (let key = 0; key < 10_000; key += 1) expect(count(`k${key}`, 0)).toBe(key < 7000 ? 0 : 1);
    flood(50, 'day', 86_400);
    flood(10_000, 'flood', 1);
    for (let key = 0; key < 50; key += 1) expect(count(`day${key}`, 0)).toBe(1);
    pass(62 * SECOND);
    expect([of.size, of.bytes]).toEqual([50, 50 * costOf('day10') - 10]);
  });

  it('evicts keys of windows that have not begun before all others, so that a clock set back does not block it', () => {
    const { table, of, count, flood } = counts();
    table.now += 2 * HOUR;
    flood(100, 'ahead');
    table.now -= 2 * HOUR;
    flood(100, 'live', 1);
    for (let key = 0; key < 100; key += 1) expect(count(`live${key}`, 1, 1)).toBe(2);
    expect(of.evictions).toBe(0);
    count('one more', 1, 1);
    expect(of.evictions).toBe(1);
  });

  it('counts long keys apart, each for the memory of a digest, and keeps others during a flood of them', () => {
    const { table, of, count, flood } = counts({ maxKeys: 1000, maxBytes: 20_000 });
    const long = 'x'.repeat(100_000);
    const [one, two] = [`${long}1`, `${long}2`];
    expect([count(one, 1), count(two, 1), count(one, 1), count(two, -1)]).toEqual([1, 1, 2, 0]);
    expect([one, two].map((key) => table.countOf(operation(key, 0)))).toEqual([2, 0]);
    expect(of.bytes).toBe(2 * (KEY_OVERHEAD_BYTES + 44));
    count('day', 3, 86_400);
    flood(1000, long);
    expect(of.bytes).toBeLessThanOrEqual(20_000);
    expect(count('day', 0)).toBe(3);
  });

  it('replaces a count, creates it when it is absent, and removes it', () => {
    const { table, of, count, pass } = counts();
    for (const most of [7, LARGEST_COUNT, 3, 0, 1]) {
      of.set('k', most, table.now, windowOf(60));
      expect(count('k', 0)).toBe(most);
    }
    expect([of.size, count('k', -2), count('k', 2)]).toEqual([1, 0, 2]);
    of.set('absent', 0, table.now, windowOf(60));
    of.remove('k');
    of.remove('k');
    expect([of.size, of.bytes]).toEqual([0, 0]);
    of.set('k', 5, table.now, windowOf(60));
    pass(59_999);
    expect(count('k', 0)).toBe(5);
    pass(1);
    expect([of.size, count('k', 0)]).toEqual([0, 0]);
  });

  it('keeps the state of an algorithm for one to four lifetimes, and none that changes nothing', () => {
    const { table, of, pass } = counts();
    const limit = { name: 'token_bucket', requestsPerUnit: 5, lengthSeconds: 100, burst: undefined } as const;
    const bucket = operation('k', 0, { algorithm: algorithmOf(limit) });
    const { lifetime } = bucket.limit.algorithm!;
    function taken(hits: number): number {
      const before = table.stateOf(bucket);
      const { state, used } = bucket.limit.algorithm!.decide(before, hits);
      table.keep(bucket, state, before);
      return used;
    }
    expect([taken(0), taken(-1), of.size]).toEqual([0, 0, 0]);
    expect([taken(3), taken(0), of.size]).toEqual([3, 3, 1]);
    expect(of.bytes).toBeGreaterThan(costOf('k'));
    for (let second = 1; second < lifetime; second += 1) {
      pass(SECOND);
      expect(of.size).toBe(1);
    }
    pass(3 * lifetime * SECOND);
    expect([of.size, of.bytes]).toEqual([0, 0]);
    taken(3);
    of.remove('k');
    expect([of.size, of.bytes]).toEqual([0, 0]);
  });
});
