import type { Operation } from '../../../src/counting/operation';
import { KEY_OVERHEAD_BYTES } from '../../../src/counting/counts';
import { MemoryCounters, type MemoryCountersOptions } from '../../../src/sinks/counters/memory/memory-counters';
import type { Log } from '../../../src/log/log';
import { LONGEST_TABLE_KEY } from '../../../src/text/table-key';
import fc from '../../support/data/properties';
import { operation, stopWhenOver } from '../../support/data/operations';

const opened: MemoryCounters[] = [];
beforeEach(() => jest.useFakeTimers());
afterEach(async () => {
  await Promise.all(opened.splice(0).map((counters) => counters.close()));
  jest.useRealTimers();
});

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Counters whose clock starts at a full day; {@link pass} moves it together with the timers, `clock.now` alone makes it jump. */
function memory({ maxKeys = 100, maxBytes = 1_000_000, log }: Partial<MemoryCountersOptions> = {}) {
  const clock = { now: 20_000 * 24 * HOUR };
  const counters = new MemoryCounters({ maxKeys, maxBytes, now: () => clock.now, ...(log && { log }) });
  opened.push(counters);
  function apply(...operations: readonly Operation[]): readonly number[] {
    let counts: readonly number[] = [];
    counters.apply(operations).subscribe((result) => (counts = result.map(Number)));
    return counts;
  }
  function count(key: string, hits: number, windowSeconds = 60): number {
    return apply(operation(key, hits, { windowSeconds }))[0]!;
  }
  /** Adds one hit to each of `n` keys. */
  function flood(n: number, prefix: string, windowSeconds = 60): void {
    for (let key = 0; key < n; key += 1) count(`${prefix}${key}`, 1, windowSeconds);
  }
  function pass(milliseconds: number): void {
    for (let passed = 0; passed < milliseconds; passed += SECOND) {
      clock.now += SECOND;
      jest.advanceTimersByTime(SECOND);
    }
  }
  return { counters, clock, apply, count, flood, pass };
}

/** A key with the beginning and end of its window in seconds. */
type Entry = { key: string; count: number; start: number; end: number };

function costOf(key: string): number {
  return KEY_OVERHEAD_BYTES + (key.startsWith('鍵') ? 2 : 1) * key.length;
}

/** The same as MemoryCounters while the clock runs evenly, found by looking at every key. */
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

  /** Removes the keys of windows that ended a second ago. */
  sweep(now: number): void {
    this.entries = this.entries.filter(({ end }) => end * 1000 > now - 1000);
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

describe('counters in memory', () => {
  it('have the counts, evictions and bytes of a plain list of keys, for random hits, windows and bounds', () => {
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
        const { counters, clock, count, pass } = memory({ maxKeys, maxBytes });
        const model = new Model(maxKeys, maxBytes);
        for (const { passes, key, hits, seconds } of steps) {
          for (let second = 0; second < passes; second += 1) {
            pass(SECOND);
            model.sweep(clock.now);
          }
          expect(count(key, hits, seconds)).toBe(model.count(key, hits, { now: clock.now, seconds }));
          const { entries, bytes, evictions } = model;
          expect([counters.size, counters.bytes, counters.evictions]).toEqual([entries.length, bytes, evictions]);
        }
        void counters.close();
      }),
      { numRuns: 400 },
    );
  });

  it('keep their counts to the end of their window and a moment longer, for hits that were matched before its end', () => {
    const { count, counters, clock, pass } = memory();
    pass(30 * SECOND);
    expect([count('a', 1), count('a', 2)]).toEqual([1, 3]);
    pass(29 * SECOND);
    clock.now += SECOND;
    count('of the next window', 1);
    expect(count('a', 1)).toBe(4);
    jest.advanceTimersByTime(SECOND);
    expect(count('a', 0)).toBe(4);
    pass(2 * SECOND);
    expect([counters.size, count('a', 0)]).toEqual([1, 0]);
  });

  it('that limits of several lengths share are kept until the last of their windows ends, also one of the calendar', () => {
    const [day, week] = [24 * HOUR, 7 * 24 * HOUR];
    const { clock, count, counters } = memory();
    // The clock starts on a Saturday, two days after the week: a day of UTC ends with the plain day.
    const calendar = (clock.now + day) / SECOND;
    const orders = [
      [day / SECOND, week / SECOND],
      [week / SECOND, day / SECOND],
      [calendar, week / SECOND],
      [week / SECOND, calendar],
      [day / SECOND, calendar + day / SECOND],
    ];
    orders.forEach((windows, index) => windows.forEach((windowSeconds) => count(`k${index}`, 2, windowSeconds)));
    function counts(): readonly number[] {
      return orders.map((_, index) => count(`k${index}`, 0));
    }
    clock.now += day + 2 * SECOND;
    counters.removeExpired();
    expect(counts()).toEqual([4, 4, 4, 4, 4]);
    clock.now += day;
    counters.removeExpired();
    expect(counts()).toEqual([4, 4, 4, 4, 0]);
    clock.now += week;
    counters.removeExpired();
    expect(counts()).toEqual([0, 0, 0, 0, 0]);
  });

  it('are evicted in their order, but not those of a longer window by a flood of short-lived keys', () => {
    const { counters, count, flood, pass } = memory({ maxKeys: 3000 });
    flood(10_000, 'k');
    expect([counters.size, counters.evictions]).toEqual([3000, 7000]);
    for (let key = 0; key < 10_000; key += 1) expect(count(`k${key}`, 0)).toBe(key < 7000 ? 0 : 1);
    flood(50, 'day', 86_400);
    flood(10_000, 'flood', 1);
    for (let key = 0; key < 50; key += 1) expect(count(`day${key}`, 0)).toBe(1);
    pass(62 * SECOND);
    expect([counters.size, counters.bytes]).toEqual([50, 50 * costOf('day10') - 10]);
  });

  it('with long keys are counted apart, each for the memory of a digest, and survive a flood of them', () => {
    const { apply, count, counters, flood } = memory({ maxKeys: 1000, maxBytes: 20_000 });
    const long = 'x'.repeat(100_000);
    const [one, two] = [`${long}1`, `${long}2`];
    expect([count(one, 1), count(two, 1), count(one, 1), count(two, -1)]).toEqual([1, 1, 2, 0]);
    expect(counters.bytes).toBe(2 * (KEY_OVERHEAD_BYTES + 44));
    count('day', 3, 86_400);
    flood(1000, long);
    expect(counters.bytes).toBeLessThanOrEqual(20_000);
    expect(count('day', 0)).toBe(3);
    const group = stopWhenOver();
    const [key, other] = ['x'.repeat(LONGEST_TABLE_KEY + 1), 'y'.repeat(LONGEST_TABLE_KEY + 1)];
    const steps = [key, other].map((name) => operation(name, 1, { group, limit: name === key ? 1 : 9 }));
    expect([...apply(...steps), ...apply(...steps)]).toEqual([1, 1, 2, 1]);
  });
});

describe('counters in memory whose clock jumps', () => {
  it.each([
    ['ahead', 2 * HOUR],
    ['behind', -2 * HOUR],
  ])('keep the windows that last when it is %s for half a minute, and remove what was created meanwhile', (_, jump) => {
    const { count, counters, clock, flood, pass } = memory();
    count('hour', 990, 3600);
    // For one call.
    clock.now += jump;
    count('once', 1, 1);
    clock.now -= jump;
    for (let second = 0; second < 5; second += 1) {
      flood(1000, `${second} `, 1);
      pass(SECOND);
    }
    expect(count('hour', 0)).toBe(990);
    pass(3 * SECOND);
    expect(counters.size).toBe(1);
    clock.now += jump;
    flood(50, 'meanwhile', 3600);
    pass(30 * SECOND);
    if (jump < 0) expect(count('meanwhile0', 0)).toBe(1);
    clock.now -= jump;
    pass(MINUTE + SECOND);
    expect(count('hour', 0)).toBe(990);
    expect(counters.size).toBe(1);
  });

  it.each([
    ['back', -2 * HOUR],
    ['ahead', 2 * HOUR],
  ])('remove the counters of other windows a minute after it was set %s, and keep the others', (_, jump) => {
    const { count, counters, clock, flood, pass } = memory();
    flood(50, 'before', 3600);
    count('day', 5, 86_400);
    clock.now += jump;
    // The clock has passed midnight if it was set back.
    const isSameDay = jump > 0;
    count('after', 1, 3600);
    pass(30 * SECOND);
    // Another jump does not start the minute again.
    clock.now += MINUTE;
    pass(29 * SECOND);
    expect(counters.size).toBe(52);
    pass(2 * SECOND);
    expect([count('after', 0), count('day', 0)]).toEqual([1, isSameDay ? 5 : 0]);
    expect(counters.size).toBe(isSameDay ? 2 : 1);
  });

  it('remove the counters of ended windows also when it jumps every minute', () => {
    const { count, counters, clock, flood, pass } = memory({ maxKeys: 100_000 });
    for (const jump of [30 * SECOND, 2 * HOUR, -HOUR, 11 * SECOND, -20 * SECOND, 3 * HOUR, -2 * HOUR, 5 * MINUTE]) {
      flood(100, `${jump}`, 1);
      pass(55 * SECOND);
      clock.now += jump;
      count('day', 1, 86_400);
      pass(5 * SECOND);
      // Those of the last minute may be kept.
      expect(counters.size).toBeLessThanOrEqual(2 * 100 + 1);
    }
    expect(count('day', 0)).toBe(8);
  });

  it('keep the counter of a window that lasts after it was set back within the window', () => {
    const { count, clock, pass } = memory();
    pass(40 * MINUTE);
    count('hour', 990, 3600);
    clock.now -= 30 * MINUTE;
    pass(49 * MINUTE);
    expect(count('hour', 0)).toBe(990);
    pass(2 * MINUTE);
    expect(count('hour', 0)).toBe(0);
  });

  it('evict keys of windows that have not begun before all others, so that a clock set back does not block the memory', () => {
    const { count, counters, clock, flood } = memory();
    clock.now += 2 * HOUR;
    flood(100, 'ahead');
    clock.now -= 2 * HOUR;
    flood(100, 'live', 1);
    for (let key = 0; key < 100; key += 1) expect(count(`live${key}`, 1, 1)).toBe(2);
    expect(counters.evictions).toBe(0);
    count('one more', 1, 1);
    expect(counters.evictions).toBe(1);
  });
});

it('counters in memory without room log it once, with the rules that evict most, and when there is room for a minute', () => {
  const lines: unknown[] = [];
  function write(message: string, fields?: object): void {
    lines.push([message, fields]);
  }
  const log = { warn: write, notice: write } as unknown as Log;
  const { apply, count, pass } = memory({ maxKeys: 10, log });
  function hit(prefix: string, n: number, rule: string | undefined): void {
    for (let key = 0; key < n; key += 1)
      apply(operation(`${prefix}${key}`, 1, { windowSeconds: 3600, limit: 9, path: rule }));
  }
  hit('before', 10, 'shop.few');
  pass(2 * SECOND);
  expect(lines).toEqual([]);
  hit('path', 30, 'shop.path');
  hit('user', 20, 'shop.user');
  hit('own', 5, '');
  hit('few', 1, 'shop.few');
  pass(2 * SECOND);
  hit('again', 30, 'shop.other');
  pass(50 * SECOND);
  hit('and', 1, undefined);
  pass(59 * SECOND);
  const begins =
    'counters in memory have no room: those evicted start again at zero, so that more passes than the limits allow';
  const bounds = { memory_max_keys: 10, memory_max_bytes: 1_000_000 };
  const rules = 'shop.path (30), shop.user (20), limits in requests (5)';
  expect(lines).toEqual([[begins, { ...bounds, rules }]]);
  pass(3 * SECOND);
  expect(lines.slice(1)).toEqual([['counters in memory have room again', { ...bounds, evicted_keys: 87 }]]);
  expect(count('and0', 0)).toBe(1);
});

it('counters in memory gather windows only if they are to: then no call is counted at once', () => {
  const now = Date.now;
  const [atOnce, gathering] = [0, 5].map((windowSpan) => new MemoryCounters({ maxKeys: 10, windowSpan, now }));
  opened.push(atOnce!, gathering!);
  const counted = operation('k', 2);
  atOnce!.countNow!([counted]);
  expect([counted.after, gathering!.countNow, gathering!.pipeline.span]).toEqual([2, undefined, 5]);
});
