import type { KvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import type { KvstoreOptions } from '../../../src/sinks/counters/kvstore/deployment';
import { LARGEST_COUNT } from '../../../src/counting/operation';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { apply, operation } from '../counters/scenarios';
import { connected, instance } from './options';
import { counterOf, stopWhenOver, windowOf } from '../../support/data/operations';

/** In seconds. */
const YEAR = 365 * 86_400;

let server: RedisProcess;
let second: RedisProcess;

beforeAll(async () => {
  [server, second] = await Promise.all([RedisProcess.start(), RedisProcess.start()]);
});
afterEach(async () => {
  await server.control.acl('SETUSER', 'default', '+@scripting');
  await Promise.all([server.control.flushall(), second.control.flushall()]);
});
afterAll(() => Promise.all([server[Symbol.asyncDispose](), second[Symbol.asyncDispose]()]));

function open(more: Partial<KvstoreOptions> = {}): Promise<KvstoreCounters> {
  return connected(instance(server.address), more);
}

/** A test for both ways in which hits are counted, by the permission of the user. */
function inBothWays(title: string, test: () => Promise<void>): void {
  // oxlint-disable-next-line jest/expect-expect -- the test has them
  it.each([
    ['scripts', '+@scripting'],
    ['plain commands', '-@scripting'],
  ])(`${title}, with %s`, async (_, permission) => {
    await server.control.acl('SETUSER', 'default', permission);
    await test();
  });
}

/** The time to live of each key, in seconds. */
function timesToLive(...keys: readonly string[]): Promise<readonly number[]> {
  return Promise.all(keys.map((key) => server.control.ttl(key)));
}

async function callsOf(command: string): Promise<number> {
  const statistics = await server.control.info('commandstats');
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(statistics)?.[1] ?? 0);
}

describe('keys in Redis', () => {
  inBothWays('expire after their window plus a random time below the jitter, guarded or not', async () => {
    const counters = await open({ expirationJitterMaxSeconds: 300 });
    for (const [name, options] of Object.entries({ k: {}, g: { group: stopWhenOver(), limit: 9 } })) {
      const keys = Array.from({ length: 200 }, (_, index) => name + index);
      const began = performance.now();
      await apply(counters, ...keys.map((key) => operation(key, 1, options)));
      const found = await timesToLive(...keys);
      const passed = Math.ceil((performance.now() - began) / 1000);
      expect(Math.min(...found)).toBeGreaterThanOrEqual(60 - passed);
      expect(Math.max(...found)).toBeLessThanOrEqual(359);
      expect(new Set(found).size).toBeGreaterThan(50);
    }
  });

  it('keep their expiry, and get one when another program left them without', async () => {
    await server.control.set('has', '5', 'EX', 1000);
    await server.control.set('none', '5');
    const counters = await open();
    expect(await apply(counters, operation('none', 0))).toEqual([5]);
    expect(await apply(counters, operation('has', 1), operation('none', 1))).toEqual([6, 6]);
    expect(await server.control.ttl('has')).toBeGreaterThan(990);
    expect(await server.control.ttl('none')).toBeGreaterThan(50);
    expect(await server.control.ttl('none')).toBeLessThanOrEqual(360);
  });

  it('get their expiry when they are created again, or have none at a count that a new key would have', async () => {
    const counters = await open({ expirationJitterMaxSeconds: 0 });
    await apply(counters, operation('removed', 1), operation('reset', 2), operation('kept', 1));
    await server.control.del('removed');
    await server.control.set('reset', '0');
    await server.control.set('kept', '0', 'EX', 1000);
    expect(await apply(counters, operation('removed', 3), operation('reset', 2), operation('kept', 1))).toEqual([
      3, 2, 1,
    ]);
    expect(Math.min(...(await timesToLive('removed', 'reset')))).toBeGreaterThan(50);
    expect(await server.control.ttl('kept')).toBeGreaterThan(990);
  });

  inBothWays('live as long as the longest window that counts on them, whichever is first', async () => {
    const counters = await open({ expirationJitterMaxSeconds: 0 });
    const group = stopWhenOver();
    for (const [lengthSeconds, count] of [
      [60, 1],
      [YEAR, 2],
      [60, 3],
    ] as const) {
      expect(await apply(counters, operation('k', 1, { lengthSeconds }))).toEqual([count]);
      const guarded = { lengthSeconds, group, limit: 10 };
      await apply(counters, operation('g', 1, guarded), operation(`other-${count}`, 1, guarded));
    }
    // Up to the end of the year: more than a minute, except in the last one of a year.
    const shortest = Math.min(YEAR - (Math.floor(Date.now() / 1000) % YEAR) - 60, YEAR - 60);
    expect(await server.control.ttl('k')).toBeGreaterThan(shortest);
    expect(await server.control.ttl('g')).toBeGreaterThan(shortest);
  });

  inBothWays('live until the last window ends that counts on them, also next to one of the calendar', async () => {
    const counters = await open({ expirationJitterMaxSeconds: 0 });
    const end = Math.floor(Date.now() / 1000) + 500;
    for (const [key, windows] of [
      ['before', [end, YEAR]],
      ['after', [YEAR, end]],
      ['again', [YEAR, end, 60, YEAR]],
    ] as const) {
      for (const seconds of windows) await apply(counters, operation(key, 1, windowOf(seconds)));
      const shortest = Math.min(YEAR - (Math.floor(Date.now() / 1000) % YEAR) - 60, YEAR - 60);
      expect(await server.control.ttl(key)).toBeGreaterThan(shortest);
    }
  });

  it('of steps with different hits and windows in one call get the expiry of their own window', async () => {
    const counters = await open({ expirationJitterMaxSeconds: 0 });
    await apply(counters, operation('known', 1, { lengthSeconds: 5000 }));
    const windows = [100, 100, 3000, 3000, 100];
    const steps = windows.map((lengthSeconds, index) => operation(`k${index}`, 1 + (index % 2), { lengthSeconds }));
    expect(await apply(counters, operation('known', 7), ...steps)).toEqual([8, 1, 2, 1, 2, 1]);
    const found = await timesToLive(...windows.map((_, index) => `k${index}`));
    for (const [index, seconds] of found.entries()) {
      expect(seconds).toBeLessThanOrEqual(windows[index] as number);
      expect(seconds).toBeGreaterThan((windows[index] as number) - 50);
    }
    expect(await server.control.ttl('known')).toBeGreaterThan(4900);
  });

  it('are examined for an expiry at their first hit, and again after a minute, or sooner when they are too many', async () => {
    const counters = await open();
    async function examined(...keys: readonly string[]): Promise<number> {
      const before = await callsOf('ttl');
      await apply(counters, ...keys.map((key) => operation(key, 1)));
      return (await callsOf('ttl')) - before;
    }
    const keys = Array.from({ length: 10 }, (_, index) => `k${index}`);
    const [longest, tooLong] = ['x'.repeat(256), 'x'.repeat(257)];
    expect(await examined(...keys, longest, tooLong)).toBe(12);
    expect(await examined(...keys, 'new', longest, tooLong)).toBe(2);
    const now = performance.now();
    const clock = jest.spyOn(performance, 'now').mockReturnValue(now + 40_000);
    expect(await examined(...keys)).toBe(0);
    clock.mockReturnValue(now + 60_000);
    expect(await examined(...keys)).toBe(10);
    await examined(...Array.from({ length: 32_768 }, (_, index) => `many${index}`));
    expect(await examined(...keys, 'many32757', 'many32758')).toBe(1);
    // A millisecond more: the sums are not exact.
    clock.mockReturnValue(now + 70_001);
    expect(await examined(...keys)).toBe(10);
    clock.mockRestore();
  });

  it('that are known to have one, alone in their window, are counted without a script', async () => {
    const counters = await open({ expirationJitterMaxSeconds: 0 });
    await apply(counters, operation('k', 2));
    const before = await callsOf('evalsha');
    function hits(count: number) {
      return apply(counters, operation('k', count));
    }
    expect([await hits(3), await hits(LARGEST_COUNT), await hits(1)]).toEqual([[5], [LARGEST_COUNT], [LARGEST_COUNT]]);
    expect(await server.control.get('k')).toBe(String(LARGEST_COUNT));
    await server.control.del('k');
    expect(await hits(3)).toEqual([3]);
    expect(await server.control.ttl('k')).toBeGreaterThan(50);
    await server.control.set('k', '9223372036854775807', 'KEEPTTL');
    expect(await hits(1)).toEqual([LARGEST_COUNT]);
    await server.control.set('k', 'text', 'KEEPTTL');
    expect(await hits(1)).toMatchObject([{ code: 'store_failed', message: expect.stringContaining('not an integer') }]);
    expect(await callsOf('evalsha')).toBe(before);
    // Reads, negative hits and those of guards need the script.
    await server.control.set('k', '7', 'KEEPTTL');
    expect([await hits(0), await hits(-2)]).toEqual([[7], [5]]);
    expect(await callsOf('evalsha')).toBe(before + 2);
  });

  it('that are known to have one are counted without a script, too, when they are many, each for itself', async () => {
    const counters = await open({ expirationJitterMaxSeconds: 0 });
    const keys = ['removed', 'list', 'größe 🔑', 'full', ...Array.from({ length: 300 }, (_, index) => `k${index}`)];
    await apply(counters, ...keys.map((key) => operation(key, 1)));
    const before = await callsOf('evalsha');
    await server.control.del('removed', 'list');
    await server.control.rpush('list', 'kept');
    await server.control.set('full', '9223372036854775807', 'KEEPTTL');
    const counts = await apply(
      counters,
      ...keys.map((key) => operation(key, 2)),
      operation('k0', 10),
      operation('k0', 1),
    );
    function of(key: string) {
      return counts[keys.indexOf(key)];
    }
    expect([of('removed'), of('größe 🔑'), of('full'), of('k0'), ...counts.slice(-2)]).toEqual([
      2,
      3,
      LARGEST_COUNT,
      3,
      13,
      14,
    ]);
    expect(of('list')).toMatchObject({ code: 'store_failed', message: expect.stringContaining('another type') });
    expect(counts.slice(4, 304)).toEqual(Array.from({ length: 300 }, () => 3));
    expect(await server.control.get('größe 🔑')).toBe('3');
    expect(await server.control.ttl('removed')).toBeGreaterThan(50);
    expect(await callsOf('evalsha')).toBe(before);
    // One that is new, read or lowered has all of its window counted by the script.
    for (const other of [operation('new', 1), operation('k1', 0), operation('k1', -1)]) {
      await apply(counters, operation('k0', 1), other);
    }
    expect(await callsOf('evalsha')).toBe(before + 3);
  });

  inBothWays('keep their expiry when hits are subtracted, which create none', async () => {
    await server.control.set('k', '2', 'EX', 1000);
    expect(await apply(await open(), operation('k', -5), operation('read', 0), operation('less', -1))).toEqual([
      0, 0, 0,
    ]);
    expect(await server.control.keys('*')).toEqual(['k']);
    expect(await server.control.get('k')).toBe('0');
    expect(await server.control.ttl('k')).toBeGreaterThan(990);
  });

  inBothWays('that another program raised beyond 2^53 − 1 count as saturated', async () => {
    await server.control.set('beyond', '9007199254740995', 'EX', 100);
    await server.control.set('end', '9223372036854775807');
    const counters = await open();
    const reads = [operation('beyond', 0), operation('end', 0)];
    expect(await apply(counters, ...reads)).toEqual([LARGEST_COUNT, LARGEST_COUNT]);
    const hits = [operation('beyond', -2), operation('end', 1), operation('fine', 1), operation('beyond', 1)];
    expect(await apply(counters, ...hits)).toEqual([LARGEST_COUNT, LARGEST_COUNT, 1, LARGEST_COUNT]);
    const lower = [operation('beyond', -LARGEST_COUNT), operation('end', -1)];
    expect((await apply(counters, ...lower))[1]).toBe(LARGEST_COUNT);
    expect(await apply(counters, operation('end', LARGEST_COUNT))).toEqual([LARGEST_COUNT]);
    expect(Number(await server.control.get('beyond'))).toBeLessThan(4);
    expect(Math.min(...(await timesToLive('end', 'beyond')))).toBeGreaterThan(0);
  });

  inBothWays('that hold the data of another program fail their calls, and get no expiry', async () => {
    await server.control.rpush('list', 'kept');
    await server.control.set('text', 'kept');
    const counters = await open();
    const [list, text, fine] = await apply(counters, ...['list', 'text', 'fine'].map((key) => operation(key, 1)));
    expect([list, text]).toMatchObject([
      { code: 'store_failed', message: expect.stringContaining('another type') },
      { code: 'store_failed', message: expect.stringContaining('not an integer') },
    ]);
    expect(fine).toBe(1);
    expect(await timesToLive('list', 'text')).toEqual([-1, -1]);
    expect(await server.control.ttl('fine')).toBeGreaterThan(0);
  });

  it('that hold the data of another program are repaired by operators, who set or clear them', async () => {
    const [list, text] = ['list', 'text'].map((key) => counterOf(key));
    await server.control.rpush('list', 'kept');
    await server.control.set('text', 'kept', 'EX', 1000);
    const counters = await open({ expirationJitterMaxSeconds: 0 });
    await expect(counters.readCounter(list!)).rejects.toThrow('another type');
    await expect(counters.readCounter(text!)).rejects.toThrow('not an integer');
    expect(await counters.changeCounter(list!, 7)).toEqual({ count: 0, timeToLive: null });
    expect(await counters.readCounter(list!)).toMatchObject({ count: 7 });
    expect(await server.control.ttl('list')).toBeGreaterThan(50);
    expect(await counters.changeCounter(text!, null)).toMatchObject({ count: 0 });
    expect(await server.control.exists('text')).toBe(0);
  });

  it('are counted by the hash of the script from the first window on, because connecting loads it', async () => {
    await server.control.script('FLUSH');
    const [texts, hashes] = [await callsOf('eval'), await callsOf('evalsha')];
    expect(await apply(await open(), operation('first', 1))).toEqual([1]);
    expect([await callsOf('eval'), await callsOf('evalsha')]).toEqual([texts, hashes + 1]);
  });

  it('that are new take one command for a window, and larger windows one command for each 256 keys', async () => {
    const counters = await open();
    await apply(counters, operation('warm', 1));
    const before = await callsOf('evalsha');
    await apply(counters, ...Array.from({ length: 256 }, (_, index) => operation(`k${index}`, 1)));
    expect(await callsOf('evalsha')).toBe(before + 1);
    await apply(counters, ...Array.from({ length: 600 }, (_, index) => operation(`m${index}`, 1)));
    expect(await callsOf('evalsha')).toBe(before + 4);
  });
});

it('two instances hold the limits per second and all others, decide a guard together, and fail independently', async () => {
  // A key of the limit per second stays longer than the test takes, almost always.
  const counters = await open({ perSecond: instance(second.address), expirationJitterMaxSeconds: 1_000_000 });
  const perSecond = { lengthSeconds: 1 };
  const steps = [
    operation('second', 1, perSecond),
    operation('minute', 1),
    operation('day', 2, { lengthSeconds: 86_400 }),
  ];
  expect(await apply(counters, ...steps)).toEqual([1, 1, 2]);
  expect((await server.control.keys('*')).toSorted()).toEqual(['day', 'minute']);
  expect(await second.control.keys('*')).toEqual(['second']);
  const group = stopWhenOver();
  const guarded = [operation('second', 1, { ...perSecond, group, limit: 1 }), operation('new', 1, { group, limit: 5 })];
  expect(await apply(counters, ...guarded)).toEqual([2, 0]);
  expect(await server.control.exists('new')).toBe(0);
  await second.control.config('SET', 'maxmemory', '1');
  const failed = { code: 'store_failed', message: 'the counter store is out of memory' };
  expect(await apply(counters, operation('second', 1, perSecond), operation('minute', 1))).toMatchObject([failed, 2]);
  await second.control.config('SET', 'maxmemory', '0');
});
