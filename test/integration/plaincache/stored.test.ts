import { setTimeout as wait } from 'node:timers/promises';
import type { Operation } from '../../../src/counting/operation';
import type { PlaincacheOptions } from '../../../src/sinks/counters/plaincache/plaincache-counters';
import { Statistics } from '../../../src/statistics/statistics';
import { RecordedLog } from '../../support/data/recorded-log';
import { LaneClient } from '../../support/clients/lane-client';
import { MemcachedProcess } from '../../support/processes/memcached-process';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { ScriptedServer, openPlaincache } from './options';
import { counterOf } from '../../support/data/operations';

let server: MemcachedProcess;
let log: RecordedLog;
let statistics: Statistics;

beforeAll(async () => {
  server = await MemcachedProcess.start();
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(async () => {
  await server.command('flush_all\r\n');
  log = new RecordedLog();
  statistics = new Statistics(100);
});

function open(more: Partial<PlaincacheOptions> = {}, at: { readonly address: string } = server) {
  return openPlaincache([at], { log, statistics, expirationJitterMaxSeconds: 0, ...more });
}

function counted(...names: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(names.map((name) => [name, statistics.counter(`ratelimit.memcache.${name}`).value]));
}

/** The time to live of a key in seconds. */
async function ttlOf(key: string): Promise<number> {
  return Number(/ t(-?\d+)/.exec(await server.command(`mg ${key} t\r\n`, /\r\n/))?.[1]);
}

/**
 * The clock of the server in seconds of Unix time. It is read once a second, late on a busy machine, and expiries count
 * from it.
 */
async function serverClock(): Promise<number> {
  return Number(/STAT time (\d+)/.exec(await server.command('stats\r\n', /END\r\n/))?.[1]);
}

function ownClock(): number {
  return Math.floor(Date.now() / 1_000);
}

describe('a counter in memcached', () => {
  it('is a decimal number under its cache key in UTF-8', async () => {
    const counters = open();
    const key = 'shop_user_é_鍵\u00a0_1700000000';
    await apply(counters, operation(key, 3), operation('x'.repeat(250), 1));
    await counters.close();
    expect(await server.value(Buffer.from(key).toString('latin1'))).toBe('3');
    expect(await server.value('x'.repeat(250))).toBe('1');
  });

  it.each([
    ['a second', 1],
    ['a day', 86_400],
    ['a month', 2_592_000],
    ['a year', 31_536_000],
  ])('of %s expires after it, not before', async (_, lengthSeconds) => {
    const counters = open();
    // Up to a month, the expiry is a time to live by the clock of the server; above, a time by that of the client.
    async function measured(key: string) {
      const longest = lengthSeconds + 1;
      const earliest = Math.min(ownClock(), await serverClock()) + longest;
      await apply(counters, operation(key, 1, { lengthSeconds }));
      const latest = Math.max(ownClock(), await serverClock()) + longest;
      await apply(counters, operation(key, 0, { lengthSeconds }));
      const readAfter = await serverClock();
      const ttl = await ttlOf(key);
      return { earliest, latest, readAfter, ttl, readBefore: await serverClock() };
    }
    // On a busy machine, the key of a second may have expired before it is read.
    let found = await measured('k0');
    for (let time = 1; Number.isNaN(found.ttl) && time < 10; time += 1) found = await measured(`k${time}`);
    // A key that never expires has -1.
    expect(found.ttl).toBeGreaterThanOrEqual(0);
    expect(found.readBefore + found.ttl).toBeGreaterThanOrEqual(found.earliest);
    expect(found.readAfter + found.ttl).toBeLessThanOrEqual(found.latest);
  });

  it('expires after a random time below the jitter more', async () => {
    const counters = open({ expirationJitterMaxSeconds: 10_000 });
    await apply(counters, ...Array.from({ length: 20 }, (_, index) => operation(`k${index}`, 1)));
    await counters.close();
    const found = await Promise.all(Array.from({ length: 20 }, (_, index) => ttlOf(`k${index}`)));
    expect(new Set(found).size).toBeGreaterThan(10);
    expect(Math.max(...found)).toBeLessThanOrEqual(10_061);
  });

  it('is created with the longest window of those that are counted together, and keeps its expiry then', async () => {
    const counters = open();
    const windows = [60, 5000, 300];
    await apply(counters, ...windows.map((lengthSeconds) => operation('joined', 1, { lengthSeconds })));
    const steps = [operation('split', 2), operation('split', -1), operation('split', 1, { lengthSeconds: 5000 })];
    expect(await apply(counters, ...steps)).toEqual([2, 1, 2]);
    await apply(counters, operation('joined', 1, { lengthSeconds: 9000 }));
    await counters.close();
    for (const key of ['joined', 'split']) {
      expect(await ttlOf(key)).toBeGreaterThan(4000);
      expect(await ttlOf(key)).toBeLessThanOrEqual(5001);
    }
  });

  it('keeps its expiry when it is incremented and decremented, which leaves a blank', async () => {
    const counters = open();
    await server.command('add k 0 1000 3\r\n100\r\n');
    expect(await apply(counters, operation('k', 2), operation('k', -3))).toEqual([102, 99]);
    expect(await apply(counters, operation('k', 0))).toEqual([99]);
    expect(await server.value('k')).toBe('99 ');
    expect(await ttlOf('k')).toBeGreaterThan(900);
  });

  it('that another process adds first is incremented, and one that is closed has written its hits', async () => {
    const others = Array.from({ length: 4 }, () => open());
    const keys = Array.from({ length: 20 }, (_, round) => `race_${round}`);
    for (const key of keys)
      await Promise.all(others.map((other) => apply(other, operation(key, 1), operation(key, 2))));
    await Promise.all(others.map((other) => other.close()));
    expect(await Promise.all(keys.map((key) => server.value(key)))).toEqual(keys.map(() => '12'));
  });

  const BLANK = 'contains white space or a control character, which memcached does not allow';
  it.each([
    ['two words', 'a b', BLANK],
    ['a command', 'a\r\nflush_all', BLANK],
    ['ended by NUL', 'a\u0000', BLANK],
    ['ended by DEL', 'é\u007f', BLANK],
    ['251 letters', 'd'.repeat(251), 'has 251 bytes, and memcached allows 250'],
    ['252 bytes', 'é'.repeat(126), 'has 252 bytes, and memcached allows 250'],
  ])('whose key is %s fails its call, of which nothing is counted, and no other call', async (_, key, problem) => {
    const counters = open();
    using client = new LaneClient(counters);
    const outcomes = await Promise.allSettled([
      client.call([operation('a', 1), operation('e', 1)]),
      client.call([operation('a', 1), operation(key, 1), operation('f', 1)]),
      client.call([operation('a', 1)]),
    ]);
    const error = { code: 'invalid_request', message: `the key of a counter ${problem}` };
    expect(outcomes).toMatchObject([{ value: [1, 1] }, { reason: error }, { value: [2] }]);
    await counters.close();
    expect(await Promise.all(['a', 'e', 'f'].map((each) => server.value(each)))).toEqual(['2', '1', undefined]);
    await expect(counters.readCounter(counterOf(key))).rejects.toMatchObject(error);
  });

  it('whose value is not a number counts as 0, which is logged once', async () => {
    await server.command('set k 0 1000 3\r\nfoo\r\n');
    const counters = open();
    expect(await apply(counters, operation('k', 1), operation('other', 1))).toEqual([1, 1]);
    expect(await apply(counters, operation('k', 1), operation('other', 1))).toEqual([1, 2]);
    await until('both are logged', () => log.lines.length >= 2);
    await apply(counters, operation('k', 1));
    expect(log.lines.map(({ fields }) => fields['reason'])).toEqual([
      'a counter holds a value that is not a number',
      'the server replied "CLIENT_ERROR cannot increment or decrement non-numeric value"',
    ]);
    expect(await server.value('k')).toBe('foo');
    expect(await counters.readCounter(counterOf('k'))).toMatchObject({ count: 0 });
  });

  it('is counted in the statistics of the Go service', async () => {
    const counters = open();
    await apply(counters, operation('new', 1), operation('other', 1));
    await apply(counters, operation('new', 1), operation('absent', 0));
    await counters.close();
    const expected = {
      ...{ 'multiget.__code=success': 2, 'multiget.__code=error': 0, keys_requested: 4, keys_found: 1 },
      ...{ 'increment.__code=success': 1, 'increment.__code=miss': 2, 'increment.__code=error': 0 },
      ...{ 'add.__code=success': 2, 'add.__code=error': 0, 'add.__code=not_stored': 0, dropped_hits: 0 },
    };
    expect(counted(...Object.keys(expected))).toEqual(expected);
  });
});

/** One operation on each of this many keys, `k0` and so on unless named otherwise. */
function window(keys: number, hits: number, nameOf = (index: number) => `k${index}`): Operation[] {
  return Array.from({ length: keys }, (_, index) => operation(nameOf(index), hits));
}

function repeated(count: number, times: number): number[] {
  return Array.from({ length: times }, () => count);
}

/**
 * A server that has the count 5 for every key, and takes some milliseconds for each thousand of them; after `most` it
 * answers nothing.
 */
function slowServer({ perThousand = 0, most = Infinity }): Promise<ScriptedServer> {
  let taken = 0;
  return ScriptedServer.start((line) => {
    const [command, ...words] = line.split(' ');
    if (command === 'version') return taken > most ? undefined : 'VERSION 1.6.0\r\n';
    const keys = command === 'get' ? words : words.slice(0, 1);
    const thousands = Math.floor((taken + keys.length) / 1_000) - Math.floor(taken / 1_000);
    taken += keys.length;
    if (taken > most) return undefined;
    const values = keys.map((key) => `VALUE ${key} 0 1\r\n5\r\n`);
    const reply = command === 'get' ? `${values.join('')}END\r\n` : `${5 + Number(words[1])}\r\n`;
    return thousands * perThousand === 0 ? reply : wait(thousands * perThousand, reply);
  });
}

describe('a window of many keys', () => {
  it('is counted by a server that takes longer than the timeout for it, but not for a part of it', async () => {
    // 1.44 seconds to read all keys, and again to write them.
    await using slow = await slowServer({ perThousand: 180 });
    const counters = open({ timeoutMs: 1_200 }, slow);
    expect(await apply(counters, ...window(8_000, 3))).toEqual(repeated(8, 8_000));
    await counters.close();
    expect(log.lines).toEqual([]);
    expect(counted('dropped_hits', 'multiget.__code=success', 'keys_requested', 'keys_found')).toEqual({
      ...{ dropped_hits: 0, 'multiget.__code=success': 1, keys_requested: 8_000, keys_found: 8_000 },
    });
    expect(slow.received.filter((line) => line.startsWith('incr '))).toHaveLength(8_000);
  });

  it('is counted exactly by a real server, with keys nearly as long as it allows', async () => {
    await using large = await MemcachedProcess.start({ args: ['-m', '128'] });
    const counters = open({}, large);
    function longKey(index: number): string {
      return `${'v'.repeat(230)}_${index}`;
    }
    for (let count = 1; count <= 2; count += 1) {
      expect(await apply(counters, ...window(5_500, 1, longKey))).toEqual(repeated(count, 5_500));
    }
    await counters.close();
    const stored = await Promise.all([0, 999, 1_000, 5_499].map((index) => large.value(longKey(index))));
    expect([stored, counted('dropped_hits')]).toEqual([repeated(2, 4).map(String), { dropped_hits: 0 }]);
  });

  it('whose server stops answering has the counts that have arrived, counts the others as 0, and drops its hits', async () => {
    await using slow = await slowServer({ most: 2_000 });
    const counters = open({ timeoutMs: 500 }, slow);
    expect(await apply(counters, ...window(3_000, 1))).toEqual([...repeated(6, 2_000), ...repeated(1, 1_000)]);
    await counters.close();
    expect(log.lines.map(({ fields }) => fields['reason'])).toContain('the server did not answer within 500 ms');
    expect(counted('dropped_hits', 'multiget.__code=error', 'keys_found')).toEqual({
      ...{ dropped_hits: 3_000, 'multiget.__code=error': 1, keys_found: 2_000 },
    });
  });
});
