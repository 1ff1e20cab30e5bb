import type { Count, CounterOperation } from '../../../src/limiter/counter-operation';
import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import { KEY_OVERHEAD_BYTES } from '../../../src/sinks/counters/memory/expiring-counts';
import { LONGEST_TABLE_KEY } from '../../../src/text/table-key';

const opened: MemoryCounters[] = [];
afterEach(() => Promise.all(opened.splice(0).map((counters) => counters.close())));

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

/** Counters whose clock starts at a full day; {@link pass} moves it together with the timers, `clock.now` alone makes it jump. */
function memory({ maxKeys = 100, maxBytes = 1_000_000 } = {}) {
  const clock = { now: 20_000 * 24 * HOUR };
  const counters = new MemoryCounters({ maxKeys, maxBytes, now: () => clock.now });
  opened.push(counters);
  function count(key: string, hits: number, windowSeconds = 60): Count {
    const operation: CounterOperation = { key, hits, windowSeconds, guard: undefined, limit: 0 };
    let result: Count | undefined;
    counters.apply([operation]).subscribe(([first]) => {
      result = first;
    });
    return result as Count;
  }
  function pass(milliseconds: number): void {
    for (let passed = 0; passed < milliseconds; passed += SECOND) {
      clock.now += SECOND;
      jest.advanceTimersByTime(SECOND);
    }
  }
  return { counters, clock, count, pass };
}

describe('counters in memory', () => {
  it('keep their counts to the end of their window, whenever it was hit first, and are then removed', () => {
    const { count, counters, pass } = memory();
    pass(30 * SECOND);
    expect([count('a', 1), count('a', 2)]).toEqual([1, 3]);
    pass(30 * SECOND);
    expect(count('a', 0)).toBe(3);
    pass(2 * SECOND);
    expect(counters.size).toBe(0);
    expect(count('a', 0)).toBe(0);
  });

  it('are kept for a moment after their window, for hits that were matched before its end', () => {
    const { count, counters, clock, pass } = memory();
    count('a', 3);
    pass(59 * SECOND);
    clock.now += SECOND;
    count('of the next window', 1);
    expect(count('a', 1)).toBe(4);
    expect(counters.size).toBe(2);
  });

  it('create no key for reads or subtractions', () => {
    const { count, counters } = memory();
    expect([count('a', 0), count('a', -3)]).toEqual([0, 0]);
    expect(counters.size).toBe(0);
  });

  it('are removed in portions, so that a million that end together do not delay decisions', () => {
    const { count, counters, pass } = memory({ maxKeys: 50_000, maxBytes: 100_000_000 });
    for (let key = 0; key < 50_000; key += 1) count(`k${key}`, 1, 1);
    count('long', 1, 3600);
    pass(2 * SECOND);
    expect(counters.size).toBe(30_000);
    count('new', 1, 3600);
    expect(counters.size).toBe(29_999);
    pass(2 * SECOND);
    expect(counters.size).toBe(2);
  });
});

describe('counters in memory at MEMORY_MAX_KEYS', () => {
  it('evict the keys that would expire first, in whatever order keys were created', () => {
    const { count, counters } = memory({ maxKeys: 3 });
    count('day', 7, 86_400);
    count('second', 7, 1);
    count('minute', 7, 60);
    count('new', 1, 60);
    expect(counters.size).toBe(3);
    expect(counters.evictions).toBe(1);
    expect([count('day', 0), count('second', 0), count('minute', 0)]).toEqual([7, 0, 7]);
  });

  it('evict only short-lived keys under a flood of short-lived keys', () => {
    const { count, counters } = memory();
    for (let key = 0; key < 50; key += 1) count(`day${key}`, 1, 86_400);
    for (let key = 0; key < 10_000; key += 1) count(`flood${key}`, 1, 1);
    expect(counters.size).toBe(100);
    for (let key = 0; key < 50; key += 1) expect(count(`day${key}`, 0)).toBe(1);
  });

  it('evict no key for further hits on existing keys', () => {
    const { count, counters } = memory({ maxKeys: 2 });
    count('a', 1);
    count('b', 1);
    for (let hit = 0; hit < 10; hit += 1) count('a', 1);
    expect(counters.evictions).toBe(0);
  });
});

describe('counters in memory at MEMORY_MAX_BYTES', () => {
  const KEY = 'a key of thirty-two characters …'.slice(0, 31);

  it('evict the keys that would expire first, until the new key fits', () => {
    const { count, counters } = memory({ maxBytes: 10 * (KEY_OVERHEAD_BYTES + 3) });
    count('day', 7, 86_400);
    for (let key = 10; key < 19; key += 1) count(`s${key}`, 1, 1);
    expect(counters.evictions).toBe(0);
    count(KEY.padEnd(200, '.'), 1, 60);
    expect(counters.evictions).toBe(3);
    expect(counters.bytes).toBeLessThanOrEqual(10 * (KEY_OVERHEAD_BYTES + 3));
    expect([count('day', 0), count('s12', 0), count('s13', 0)]).toEqual([7, 0, 1]);
  });

  it('count two bytes for each character of a key that has one outside Latin-1', () => {
    const { count, counters } = memory();
    count('schlüssel', 1);
    expect(counters.bytes).toBe(KEY_OVERHEAD_BYTES + 9);
    count('鍵', 1);
    expect(counters.bytes).toBe(2 * KEY_OVERHEAD_BYTES + 9 + 2);
  });

  it('hold no bytes when every key has been removed', () => {
    const { count, counters, pass } = memory();
    for (let key = 0; key < 50; key += 1) count(`鍵${key}`, 1, key % 2 === 0 ? 1 : 60);
    pass(62 * SECOND);
    expect([counters.size, counters.bytes]).toEqual([0, 0]);
  });

  it('count long keys apart, each for the memory of a digest, and survive a flood of them', () => {
    const { count, counters } = memory({ maxKeys: 1000, maxBytes: 20_000 });
    const long = 'x'.repeat(100_000);
    expect([count(`${long}1`, 1), count(`${long}2`, 1), count(`${long}1`, 1)]).toEqual([1, 1, 2]);
    expect(count(`${long}2`, -1)).toBe(0);
    expect(counters.bytes).toBe(2 * (KEY_OVERHEAD_BYTES + 44));
    count('day', 3, 86_400);
    for (let key = 0; key < 1000; key += 1) count(`${long}_${key}`, 1);
    expect(counters.bytes).toBeLessThanOrEqual(20_000);
    expect(count('day', 0)).toBe(3);
  });

  it('compare the stored counts of long keys with their limits in a guarded step', () => {
    const { counters } = memory();
    const guard = { operations: 2 };
    const [key, other] = ['x', 'y'].map((letter) => letter.repeat(LONGEST_TABLE_KEY + 1));
    function step(): readonly Count[] {
      let counts: readonly Count[] = [];
      const more = { hits: 1, windowSeconds: 60, guard };
      const operations = [
        { ...more, key: key as string, limit: 1 },
        { ...more, key: other as string, limit: 9 },
      ];
      counters.apply(operations).subscribe((result) => (counts = result));
      return counts;
    }
    expect(step()).toEqual([1, 1]);
    expect(step()).toEqual([2, 1]);
  });
});

describe('counters in memory whose clock jumps', () => {
  it('keep the counters of windows that last when a call is ahead by two hours, under a flood of short-lived keys', () => {
    const { count, counters, clock, pass } = memory();
    count('hour', 990, 3600);
    clock.now += 2 * HOUR;
    count('ahead', 1, 1);
    clock.now -= 2 * HOUR;
    for (let second = 0; second < 5; second += 1) {
      for (let key = 0; key < 1000; key += 1) count(`${second} ${key}`, 1, 1);
      pass(SECOND);
    }
    expect(count('hour', 0)).toBe(990);
    pass(3 * SECOND);
    expect(counters.size).toBe(1);
  });

  it('keep the counters of windows that last when the clock is ahead for half a minute, then remove what was created ahead', () => {
    const { count, counters, clock, pass } = memory();
    count('hour', 990, 3600);
    clock.now += 2 * HOUR;
    for (let key = 0; key < 50; key += 1) count(`ahead ${key}`, 1, 3600);
    pass(30 * SECOND);
    clock.now -= 2 * HOUR;
    pass(SECOND);
    expect(count('hour', 0)).toBe(990);
    expect(counters.size).toBe(1);
  });

  it('keep the counters of windows that last when the clock is behind for half a minute, then remove what was created behind', () => {
    const { count, counters, clock, pass } = memory();
    count('hour', 990, 3600);
    clock.now -= 2 * HOUR;
    for (let key = 0; key < 50; key += 1) count(`behind ${key}`, 1, 3600);
    pass(30 * SECOND);
    expect(count('behind 0', 0)).toBe(1);
    clock.now += 2 * HOUR;
    pass(SECOND);
    expect(count('hour', 0)).toBe(990);
    expect(counters.size).toBe(1);
  });

  it.each([
    ['back', -2 * HOUR],
    ['ahead', 2 * HOUR],
  ])(
    'remove the counters of other windows a minute after the clock was set %s, and keep those of the current ones',
    (_, jump) => {
      const { count, counters, clock, pass } = memory();
      for (let key = 0; key < 50; key += 1) count(`before ${key}`, 1, 3600);
      count('day', 5, 86_400);
      clock.now += jump;
      // The clock has passed midnight if it was set back.
      const isSameDay = jump > 0;
      count('after', 1, 3600);
      pass(30 * SECOND);
      expect(counters.size).toBe(52);
      pass(35 * SECOND);
      expect(count('after', 0)).toBe(1);
      expect(count('day', 0)).toBe(isSameDay ? 5 : 0);
      expect(counters.size).toBe(isSameDay ? 2 : 1);
    },
  );

  it('keep the counter of a window that lasts after the clock was set back within it', () => {
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
    const { count, counters, clock } = memory();
    clock.now += 2 * HOUR;
    for (let key = 0; key < 100; key += 1) count(`ahead ${key}`, 1, 60);
    clock.now -= 2 * HOUR;
    for (let key = 0; key < 100; key += 1) count(`live ${key}`, 1, 1);
    for (let key = 0; key < 100; key += 1) expect(count(`live ${key}`, 1, 1)).toBe(2);
    expect(counters.evictions).toBe(0);
    count('one more', 1, 1);
    expect(counters.evictions).toBe(1);
  });
});
