import type { Counters } from '../../../src/streams/ports/counters';
import { plaincacheCounters } from '../../../src/sinks/counters/plaincache/plaincache-counters';
import { PlaincacheStatistics } from '../../../src/sinks/counters/plaincache/counting/plaincache-statistics';
import { Statistics } from '../../../src/statistics/statistics';
import { RecordedLog } from '../../support/data/recorded-log';
import { MemcachedProcess } from '../../support/processes/memcached-process';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { plaincacheTestOptions } from './options';

let server: MemcachedProcess;
let counters: Counters;
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
  counters = plaincacheCounters(plaincacheTestOptions([server], { log, statistics, expirationJitterMaxSeconds: 0 }));
});
afterEach(() => counters.close());

function counted(name: string): number {
  return statistics.counter(`ratelimit.memcache.${name}`).value;
}

/** The time to live of a key in seconds. */
async function ttlOf(key: string): Promise<number> {
  return Number(/ t(-?\d+)/.exec(await server.command(`mg ${key} t\r\n`, /\r\n/))?.[1]);
}

/** The clock of the server in seconds of Unix time. It is read once a second, late on a busy machine, and expiries count from it. */
async function serverClock(): Promise<number> {
  return Number(/STAT time (\d+)/.exec(await server.command('stats\r\n', /END\r\n/))?.[1]);
}

function ownClock(): number {
  return Math.floor(Date.now() / 1_000);
}

describe('a counter in memcached', () => {
  it('is a decimal number under its cache key', async () => {
    await apply(counters, operation('shop_user_é_1700000000', 3));
    await apply(counters, operation('shop_user_é_1700000000', 0));
    expect(await server.value(Buffer.from('shop_user_é_1700000000').toString('latin1'))).toBe('3');
  });

  it.each([
    ['a second', 1, 2],
    ['a day', 86_400, 86_401],
    ['a month', 2_592_000, 2_592_001],
    ['a year', 31_536_000, 31_536_001],
  ])('of %s expires after it, not before', async (_, windowSeconds, longest) => {
    // Up to a month, the expiry is a time to live by the clock of the server; above, a time by that of the client.
    async function measured(key: string) {
      const earliest = Math.min(ownClock(), await serverClock()) + longest;
      await apply(counters, operation(key, 1, { windowSeconds }));
      const latest = Math.max(ownClock(), await serverClock()) + longest;
      await apply(counters, operation(key, 0, { windowSeconds }));
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

  it('keeps its expiry when it is incremented and decremented', async () => {
    await server.command('add k 0 1000 1\r\n5\r\n');
    expect(await apply(counters, operation('k', 2), operation('k', -3))).toEqual([7, 4]);
    await apply(counters, operation('k', 0));
    expect(await server.value('k')).toBe('4');
    expect(await ttlOf('k')).toBeGreaterThan(900);
  });

  it('is read with the blanks that a decrement leaves', async () => {
    await apply(counters, operation('k', 100), operation('k', -1));
    expect(await apply(counters, operation('k', 0))).toEqual([99]);
    expect(await server.value('k')).toBe('99 ');
  });

  it('that another process adds first is incremented', async () => {
    const others = Array.from({ length: 4 }, () => plaincacheCounters(plaincacheTestOptions([server])));
    try {
      for (let round = 0; round < 20; round += 1) {
        const key = `race_${round}`;
        await Promise.all(others.map((other) => apply(other, operation(key, 1), operation(key, 2))));
        await Promise.all(others.map((other) => apply(other, operation(key, 0))));
        expect(await server.value(key)).toBe('12');
      }
    } finally {
      await Promise.all(others.map((other) => other.close()));
    }
  });

  it('with a key that memcached does not allow fails alone', async () => {
    const results = await apply(
      counters,
      operation('a', 1),
      operation('b c', 1),
      operation('d'.repeat(251), 1),
      operation('e', 1),
    );
    expect(results).toEqual([
      1,
      expect.objectContaining({ code: 'invalid_request' }),
      expect.objectContaining({
        code: 'invalid_request',
        message: 'a descriptor cannot be counted: the key of its counter has 251 bytes, and memcached allows 250',
      }),
      1,
    ]);
    expect(await apply(counters, operation('a', 0), operation('e', 0))).toEqual([1, 1]);
  });

  it('that is closed has written its hits', async () => {
    const other = plaincacheCounters(plaincacheTestOptions([server]));
    await apply(other, operation('last', 7));
    await other.close();
    expect(await server.value('last')).toBe('7');
  });
});

describe('the statistics of memcached', () => {
  it('have the names and numbers of the Go service', async () => {
    await apply(counters, operation('new', 1), operation('other', 1));
    await apply(counters, operation('new', 1), operation('absent', 0));
    await counters.close();
    const names = [
      'multiget.__code=success',
      'multiget.__code=error',
      'increment.__code=success',
      'increment.__code=miss',
    ];
    const more = ['increment.__code=error', 'add.__code=success', 'add.__code=error', 'add.__code=not_stored'];
    expect(
      [...names, ...more, 'keys_requested', 'keys_found', 'dropped_hits'].map((name) => [name, counted(name)]),
    ).toEqual([
      ['multiget.__code=success', 2],
      ['multiget.__code=error', 0],
      ['increment.__code=success', 1],
      ['increment.__code=miss', 2],
      ['increment.__code=error', 0],
      ['add.__code=success', 2],
      ['add.__code=error', 0],
      ['add.__code=not_stored', 0],
      ['keys_requested', 4],
      ['keys_found', 1],
      ['dropped_hits', 0],
    ]);
  });

  it('count hits that were not stored', () => {
    const own = new PlaincacheStatistics(statistics);
    own.wrote({ kind: 'add', key: 'k', hits: 3, lifetime: 60 }, 'not stored');
    own.wrote({ kind: 'incr', key: 'k', hits: 3, lifetime: 60 }, new Error('no'));
    own.wrote({ kind: 'decr', key: 'k', hits: 3, lifetime: 60 }, undefined);
    expect([counted('add.__code=not_stored'), counted('increment.__code=error'), counted('dropped_hits')]).toEqual([
      1, 1, 3,
    ]);
  });
});

describe('a value that is not a number', () => {
  it('counts as 0, and is logged once', async () => {
    await server.command('set k 0 1000 3\r\nfoo\r\n');
    expect(await apply(counters, operation('k', 1), operation('other', 1))).toEqual([1, 1]);
    expect(await apply(counters, operation('k', 1), operation('other', 1))).toEqual([1, 2]);
    await until('both are logged', () => log.lines.length >= 2);
    await apply(counters, operation('k', 1));
    expect(log.lines.map(({ message, fields }) => [message, fields['reason']])).toEqual([
      ['a memcached server rejected a counter', 'a counter holds a value that is not a number'],
      [
        'a memcached server rejected a counter',
        'the server replied "CLIENT_ERROR cannot increment or decrement non-numeric value"',
      ],
    ]);
    expect(await server.value('k')).toBe('foo');
  });
});
