import { plaincacheCounters } from '../../../src/sinks/counters/plaincache/plaincache-counters';
import type { CounterOperation } from '../../../src/limiter/counter-operation';
import { Statistics } from '../../../src/statistics/statistics';
import { RecordedLog } from '../../support/data/recorded-log';
import { MemcachedProcess } from '../../support/processes/memcached-process';
import { SlowMemcached } from '../../support/servers/slow-memcached';
import { apply, operation } from '../counters/scenarios';
import { plaincacheTestOptions } from './options';

let log: RecordedLog;
let statistics: Statistics;

beforeEach(() => {
  log = new RecordedLog();
  statistics = new Statistics(100);
});

function open(server: { readonly address: string }, timeout: number) {
  return plaincacheCounters(plaincacheTestOptions([server], { log, statistics, timeout }));
}

function counted(name: string): number {
  return statistics.counter(`ratelimit.memcache.${name}`).value;
}

/** One operation on each of this many keys, `k0` and so on unless named otherwise. */
function window(keys: number, hits: number, nameOf = (index: number) => `k${index}`): CounterOperation[] {
  return Array.from({ length: keys }, (_, index) => operation(nameOf(index), hits));
}

/** Nearly as long as memcached allows. */
function longKey(index: number): string {
  return `${'v'.repeat(230)}_${index}`;
}

function repeated(count: number, times: number): number[] {
  return Array.from({ length: times }, () => count);
}

describe('a window of many keys', () => {
  it('is counted by a server that takes longer than the timeout for it, but not for a part of it', async () => {
    // 3.6 seconds to read all keys, and again to write them; 0.18 seconds for a thousand.
    await using server = await SlowMemcached.start({ timePerKey: 0.18 });
    for (let index = 0; index < 20_000; index += 1) server.values.set(`k${index}`, 5);
    const counters = open(server, 3_000);
    try {
      expect(await apply(counters, ...window(20_000, 3))).toEqual(repeated(8, 20_000));
    } finally {
      await counters.close();
    }
    expect(log.lines).toEqual([]);
    const names = ['dropped_hits', 'multiget.__code=success', 'multiget.__code=error', 'keys_requested', 'keys_found'];
    expect(names.map(counted)).toEqual([0, 1, 0, 20_000, 20_000]);
    expect(new Set(server.values.values())).toEqual(new Set([8]));
  });

  it('is counted exactly by a real server', async () => {
    await using server = await MemcachedProcess.start({ args: ['-m', '128'] });
    const counters = open(server, 10_000);
    try {
      for (let count = 1; count <= 3; count += 1) {
        expect(await apply(counters, ...window(25_500, 1, longKey))).toEqual(repeated(count, 25_500));
      }
    } finally {
      await counters.close();
    }
    expect(await Promise.all([0, 999, 1_000, 25_499].map((index) => server.value(longKey(index))))).toEqual(
      repeated(3, 4).map(String),
    );
    expect(counted('dropped_hits')).toBe(0);
  });
});

describe('a window whose server stops answering in the middle', () => {
  it('has the counts that have arrived, counts the others as 0, and drops its hits', async () => {
    await using server = await SlowMemcached.start({ keys: 2_000 });
    for (let index = 0; index < 3_000; index += 1) server.values.set(`k${index}`, 5);
    const counters = open(server, 500);
    try {
      expect(await apply(counters, ...window(3_000, 1))).toEqual([...repeated(6, 2_000), ...repeated(1, 1_000)]);
    } finally {
      await counters.close();
    }
    expect(log.lines.map(({ fields }) => fields['reason'])).toContain('the server did not answer within 500 ms');
    expect([counted('dropped_hits'), counted('multiget.__code=error'), counted('keys_found')]).toEqual([
      3_000, 1, 2_000,
    ]);
  });

  it('counts every hit that was not written as dropped, also those that were to create their key', async () => {
    await using server = await SlowMemcached.start({ keys: 2_500 + 1_200 });
    server.values.set('k0', 5);
    const counters = open(server, 500);
    try {
      await apply(counters, ...window(2_500, 1));
    } finally {
      await counters.close();
    }
    expect([server.values.get('k0'), server.values.size]).toEqual([6, 1]);
    expect(counted('dropped_hits')).toBe(2_499);
  });
});
