import fc from 'fast-check';
import type { Count, CounterOperation } from '../../../src/limiter/counter-operation';
import { DecisionError } from '../../../src/limiter/decision-error';
import { ExpiringCounts } from '../../../src/sinks/counters/memory/expiring-counts';
import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import { Queue } from '../../../src/sinks/counters/memory/queue';

const opened: MemoryCounters[] = [];
afterEach(() => Promise.all(opened.splice(0).map((counters) => counters.close())));

function memory(maxKeys = 100): { counters: MemoryCounters; clock: { now: number }; count: typeof count } {
  const clock = { now: 0 };
  const counters = new MemoryCounters({ maxKeys, now: () => clock.now });
  opened.push(counters);
  function count(key: string, hits: number, windowSeconds = 60): Count {
    const operation: CounterOperation = { key, hits, windowSeconds, guard: undefined, limit: 0 };
    let result: Count | undefined;
    counters.apply([operation]).subscribe(([first]) => {
      result = first;
    });
    return result as Count;
  }
  return { counters, clock, count };
}

describe('counters in memory', () => {
  it('add hits until the key expires, one window after its first hit', () => {
    const { count, clock } = memory();
    expect([count('a', 1), count('a', 2)]).toEqual([1, 3]);
    clock.now = 59_999;
    expect(count('a', 0)).toBe(3);
    clock.now = 60_000;
    expect(count('a', 0)).toBe(0);
    expect(count('a', 1)).toBe(1);
  });

  it('fail beyond 2^53 − 1 and keep the count', () => {
    const { count } = memory();
    count('a', Number.MAX_SAFE_INTEGER);
    expect(count('a', 1)).toBeInstanceOf(DecisionError);
    expect(count('a', 0)).toBe(Number.MAX_SAFE_INTEGER);
  });

  it('create no key for reads or subtractions', () => {
    const { count, counters } = memory();
    expect([count('a', 0), count('a', -3)]).toEqual([0, 0]);
    expect(counters.size).toBe(0);
  });

  it('keep the expiry when hits are subtracted', () => {
    const { count, clock } = memory();
    count('a', 5);
    clock.now = 30_000;
    expect(count('a', -2)).toBe(3);
    clock.now = 60_000;
    expect(count('a', 0)).toBe(0);
  });

  it('are removed after their window, also without further calls', () => {
    jest.useFakeTimers();
    try {
      const { count, counters, clock } = memory();
      for (let key = 0; key < 50; key += 1) count(`k${key}`, 1, 1);
      count('long', 1, 3600);
      clock.now = 1000;
      jest.advanceTimersByTime(1000);
      expect(counters.size).toBe(1);
    } finally {
      jest.useRealTimers();
    }
  });
});

describe('counters in memory at MEMORY_MAX_KEYS', () => {
  it('evict the keys that would expire first, in whatever order keys were created', () => {
    const { count, counters } = memory(3);
    count('day', 7, 86_400);
    count('second', 7, 1);
    count('minute', 7, 60);
    count('new', 1, 60);
    expect(counters.size).toBe(3);
    expect(counters.evictions).toBe(1);
    expect([count('day', 0), count('second', 0), count('minute', 0)]).toEqual([7, 0, 7]);
  });

  it('evict only short-lived keys under a flood of short-lived keys', () => {
    const { count, counters } = memory(100);
    for (let key = 0; key < 50; key += 1) count(`day${key}`, 1, 86_400);
    for (let key = 0; key < 10_000; key += 1) count(`flood${key}`, 1, 1);
    expect(counters.size).toBe(100);
    for (let key = 0; key < 50; key += 1) expect(count(`day${key}`, 0)).toBe(1);
  });

  it('evict no key for further hits on existing keys', () => {
    const { count, counters } = memory(2);
    count('a', 1);
    count('b', 1);
    for (let hit = 0; hit < 10; hit += 1) count('a', 1);
    expect(counters.evictions).toBe(0);
  });
});

it('ExpiringCounts returns the same counts as a plain map with expiry for random operations', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          key: fc.constantFrom('a', 'b', 'c', 'd'),
          amount: fc.integer({ min: 1, max: 5 }),
          subtract: fc.boolean(),
          lifetime: fc.constantFrom(1, 3, 10),
          passes: fc.integer({ min: 0, max: 4 }),
        }),
      ),
      (steps) => {
        const counts = new ExpiringCounts(1000);
        const model = new Map<string, { count: number; expiresAt: number }>();
        let now = 0;
        for (const { key, amount, subtract, lifetime, passes } of steps) {
          now += passes;
          const known = model.get(key);
          if (known !== undefined && known.expiresAt <= now) model.delete(key);
          const entry = model.get(key);
          if (subtract) {
            if (entry !== undefined) entry.count = Math.max(0, entry.count - amount);
            expect(counts.subtract(key, amount, now)).toBe(entry?.count ?? 0);
          } else {
            if (entry === undefined) model.set(key, { count: amount, expiresAt: now + lifetime });
            else entry.count += amount;
            expect(counts.add(key, amount, now, lifetime)).toBe(model.get(key)?.count);
          }
        }
        counts.expire(now, Infinity);
        expect(counts.size).toBe([...model.values()].filter(({ expiresAt }) => expiresAt > now).length);
      },
    ),
    { numRuns: 1000 },
  );
});

it('Queue returns items in order, also when it compacts its storage', () => {
  const queue = new Queue<number>();
  let next = 0;
  for (let item = 0; item < 10_000; item += 1) {
    queue.push(item);
    if (item % 3 !== 0) {
      expect(queue.peek()).toBe(next);
      expect(queue.shift()).toBe(next);
      next += 1;
    }
  }
  while (queue.peek() !== undefined) {
    expect(queue.shift()).toBe(next);
    next += 1;
  }
  expect(next).toBe(10_000);
});
