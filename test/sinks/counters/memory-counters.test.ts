import type { Operation } from '../../../src/counting/operation';
import { MemoryCounters, type MemoryCountersOptions } from '../../../src/sinks/counters/memory/memory-counters';
import type { Log } from '../../../src/log/log';
import { operation } from '../../support/data/operations';
import { Caller } from '../../integration/counters/reservation-caller';

const opened: MemoryCounters[] = [];
beforeEach(() => jest.useFakeTimers());
afterEach(async () => {
  await Promise.all(opened.splice(0).map((counters) => counters.close()));
  jest.useRealTimers();
});

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/**
 * Counters whose clock starts at a full day; {@link pass} moves it together with the timers, `clock.now` alone makes it
 * jump.
 */
function memory({ maxKeys = 100, maxBytes = 1_000_000, log }: Partial<MemoryCountersOptions> = {}) {
  const clock = { now: 20_000 * 24 * HOUR };
  const counters = new MemoryCounters({ maxKeys, maxBytes, now: () => clock.now, ...(log && { log }) });
  opened.push(counters);
  function apply(...operations: readonly Operation[]): readonly number[] {
    let counts: readonly number[] = [];
    counters.apply(operations).then((result) => (counts = result.map(Number)));
    return counts;
  }
  function count(key: string, hits: number, lengthSeconds = 60): number {
    return apply(operation(key, hits, { lengthSeconds }))[0]!;
  }
  /** Adds one hit to each of `n` keys. */
  function flood(n: number, prefix: string, lengthSeconds = 60): void {
    for (let key = 0; key < n; key += 1) count(`${prefix}${key}`, 1, lengthSeconds);
  }
  function pass(milliseconds: number): void {
    for (let passed = 0; passed < milliseconds; passed += SECOND) {
      clock.now += SECOND;
      jest.advanceTimersByTime(SECOND);
    }
  }
  return { counters, clock, apply, count, flood, pass };
}

it('counters in memory keep their counts a moment longer than their window, for hits matched before its end', () => {
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
      apply(operation(`${prefix}${key}`, 1, { lengthSeconds: 3600, limit: 9, path: rule }));
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

it('counters in memory reserve of a bucket after a sweep between two microseconds has given tokens back to it', async () => {
  const own = jest.spyOn(performance, 'now').mockReturnValue(0.7507);
  const { counters, clock } = memory();
  const caller = new Caller(counters, '');
  caller.now = clock.now;
  const terms = { ttl: 2 * SECOND, onExpiry: 'cancel' } as const;
  expect(await caller.reserve('a', [{ name: 'slow', hits: 40 }], terms)).toBe('reserved true 60');
  expect(await caller.reserve('kept', [{ name: 'slow', hits: 20 }], { ttl: HOUR })).toBe('reserved true 40');
  caller.now = clock.now += 3 * SECOND;
  own.mockReturnValue(3000.25);
  jest.advanceTimersByTime(SECOND);
  expect(await caller.reserve('b', [{ name: 'slow', hits: 30 }], terms)).toBe('reserved true 50');
  expect(await caller.settle('b', 10)).toBe('settled 30>10:-20');
  own.mockRestore();
});

it('counters in memory gather windows only if they are to: then no call is counted at once', () => {
  const now = Date.now;
  const [atOnce, gathering] = [0, 5].map((windowSpan) => new MemoryCounters({ maxKeys: 10, windowSpan, now }));
  opened.push(atOnce!, gathering!);
  const counted = operation('k', 2);
  atOnce!.countNow!([counted]);
  expect([counted.countAfter, gathering!.countNow, gathering!.pipeline.span]).toEqual([2, undefined, 5]);
});
