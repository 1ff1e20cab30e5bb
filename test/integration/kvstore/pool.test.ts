import { setImmediate } from 'node:timers/promises';
import { firstValueFrom } from 'rxjs';
import type { DecisionError } from '../../../src/limiter/decision-error';
import { type KvstoreCounters, kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import type { InstanceOptions, KvstoreOptions } from '../../../src/sinks/counters/kvstore/connections/options';
import { Statistics } from '../../../src/statistics/statistics';
import { FaultProxy } from '../../support/servers/fault-proxy';
import { freePorts } from '../../support/processes/free-ports';
import { RecordedLog } from '../../support/data/recorded-log';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { LaneClient } from '../../support/clients/lane-client';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { instance, options } from './options';
import { storedCounts } from './stored-counts';

/** Of a window, in milliseconds. */
const TIMEOUT = 2_000;

let server: RedisProcess;
let proxy: FaultProxy;
const opened: KvstoreCounters[] = [];

beforeAll(async () => {
  server = await RedisProcess.start();
});
beforeEach(async () => {
  proxy = await FaultProxy.start(() => server);
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((counters) => counters.close()));
  await proxy[Symbol.asyncDispose]();
});
afterAll(() => server[Symbol.asyncDispose]());

function openUnready(main: Partial<InstanceOptions> = {}, more: Partial<KvstoreOptions> = {}): KvstoreCounters {
  const counters = kvstoreCounters(options(instance(proxy.address, main), more));
  opened.push(counters);
  return counters;
}

async function open(main: Partial<InstanceOptions> = {}, more: Partial<KvstoreOptions> = {}): Promise<KvstoreCounters> {
  const counters = openUnready(main, more);
  await firstValueFrom(counters.ready$);
  return counters;
}

/** Opens two connections, and waits until both can carry windows: a connection is not yet ready when the proxy accepts it. */
async function openBoth(main: Partial<InstanceOptions>, statistics = new Statistics(10)): Promise<KvstoreCounters> {
  const counters = await open({ poolOnEmptyWaitDuration: 1, timeout: TIMEOUT, ...main }, { statistics });
  await until('the pool is full', () => statistic(statistics, 'ratelimit.redis_pool.cx_active') === 2);
  return counters;
}

/** Sends windows whose replies the proxy holds back: they occupy their connections until the timeout. */
async function occupy(client: LaneClient, windows: number): Promise<Promise<unknown>[]> {
  proxy.fault = 'black hole';
  const calls: Promise<unknown>[] = [];
  for (let window = 0; window < windows; window += 1) {
    calls.push(client.call([operation('busy', 1)]).catch((error: unknown) => error));
    await setImmediate();
  }
  return calls;
}

function statistic(statistics: Statistics, name: string): number {
  return new Map(statistics.entries()).get(name) ?? 0;
}

describe('a lane whose connections are all busy', () => {
  it('fails further windows when KVSTORE_POOL_ON_EMPTY_BEHAVIOR is ERROR', async () => {
    const counters = await openBoth({ poolOnEmptyBehavior: 'ERROR' });
    using client = new LaneClient(counters);
    const busy = await occupy(client, 2);
    await expect(client.call([operation('k', 1)])).rejects.toMatchObject({ code: 'store_pool_empty' });
    await Promise.all(busy);
  });

  it('opens a connection for each further window when it is CREATE, and closes it after the window', async () => {
    const statistics = new Statistics(10);
    const counters = await openBoth({ poolOnEmptyBehavior: 'CREATE' }, statistics);
    using client = new LaneClient(counters);
    const busy = await occupy(client, 2);
    proxy.fault = 'none';
    expect(await client.call([operation('created', 1)])).toEqual([1]);
    await until(
      'the extra connection is closed',
      () => statistic(statistics, 'ratelimit.redis_pool.cx_local_close') >= 1,
    );
    await Promise.all(busy);
  });

  it('lets further windows wait for a connection when it is WAIT', async () => {
    const counters = await openBoth({ poolOnEmptyBehavior: 'WAIT' });
    using client = new LaneClient(counters);
    const busy = await occupy(client, 2);
    const waiting = client.call([operation('k', 1)]).catch((failure: DecisionError) => failure.code);
    expect(await Promise.race([waiting, ...busy])).toMatchObject({ code: 'store_timeout' });
    expect(['store_timeout', 'store_failed']).toContain(await waiting);
    await Promise.all(busy);
  });

  it('sends windows in the order in which they were gathered', async () => {
    const counters = await open({ poolOnEmptyBehavior: 'WAIT', poolSize: 1 });
    using client = new LaneClient(counters);
    const calls: Promise<readonly number[]>[] = [];
    for (let index = 0; index < 20; index += 1) {
      calls.push(client.call([operation('in order', 1)]));
      await setImmediate();
    }
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 20 }, (_, index) => [index + 1]));
  });
});

describe('the statistics of a pool', () => {
  it('count open, opened and closed connections', async () => {
    const statistics = new Statistics(10);
    await open({ poolSize: 3 }, { statistics, perSecond: instance(server.address, { poolSize: 2 }) });
    function pool(stat: string): number {
      return statistic(statistics, `ratelimit.redis_pool.cx_${stat}`);
    }
    await until('all connections are open', () => pool('active') === 3);
    await until(
      'all connections are open',
      () => statistic(statistics, 'ratelimit.redis_per_second_pool.cx_active') === 2,
    );
    expect([pool('total'), pool('local_close')]).toEqual([3, 0]);
    proxy.cut();
    await until('all connections are open again', () => pool('total') === 6);
    expect([pool('active'), pool('local_close')]).toEqual([3, 3]);
  });
});

describe('connected$', () => {
  it('follows the state of the connections', async () => {
    const counters = await open();
    const states: boolean[] = [];
    const subscription = counters.connected$.subscribe((state) => states.push(state));
    proxy.fault = 'refused';
    proxy.cut();
    await until('it is not connected', () => states.at(-1) === false);
    proxy.fault = 'none';
    await until('it is connected', () => states.at(-1) === true);
    subscription.unsubscribe();
    expect(states).toEqual([true, false, true]);
  });

  it('is false when one of two instances is not connected', async () => {
    const counters = await open({}, { perSecond: instance(server.address) });
    proxy.fault = 'refused';
    proxy.cut();
    expect(await firstValueFrom(counters.connected$)).toBe(true);
    await until('it is not connected', async () => !(await firstValueFrom(counters.connected$)));
  });

  it('turns false when the server no longer answers, also without calls', async () => {
    const counters = await open({ timeout: 200 });
    expect(await firstValueFrom(counters.connected$)).toBe(true);
    proxy.fault = 'black hole';
    await until('it is not connected', async () => !(await firstValueFrom(counters.connected$)));
  });
});

describe('counters at start', () => {
  it('wait for the store, and log one line when it is unavailable and one when it is connected', async () => {
    const log = new RecordedLog();
    proxy.fault = 'refused';
    const counters = openUnready({}, { log });
    await expect(apply(counters, operation('k', 1)).catch((error: DecisionError) => error.code)).resolves.toBe(
      'store_failed',
    );
    await until('several attempts were made', () => proxy.accepted > 3);
    proxy.fault = 'none';
    await firstValueFrom(counters.ready$);
    expect(log.messages).toEqual(['cannot connect to the counter store; retrying', 'connected to the counter store']);
  });

  it('fail with the reason when the store is not connected within KVSTORE_STARTUP_MAX_ELAPSED_TIME', async () => {
    const [port] = await freePorts(1);
    const counters = kvstoreCounters(
      options(instance(`redis://:secret@127.0.0.1:${port}`), {
        startup: { initialInterval: 10, maxInterval: 20, maxElapsedTime: 100 },
      }),
    );
    opened.push(counters);
    await expect(firstValueFrom(counters.ready$)).rejects.toThrow(
      /^cannot connect to the counter store within 100 ms: .*ECONNREFUSED/,
    );
  });

  it('fail when the server accepts connections but never replies', async () => {
    proxy.fault = 'black hole';
    const counters = openUnready(
      { timeout: 100 },
      { startup: { initialInterval: 10, maxInterval: 20, maxElapsedTime: 300 } },
    );
    await expect(firstValueFrom(counters.ready$)).rejects.toThrow('no reply within 100 ms');
  });
});

describe('KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR', () => {
  it('closes the connection to a read-only replica, and the caller gets the error', async () => {
    const counters = await open({ poolSize: 1 }, { closeConnectionOnReadonlyError: true });
    await server.control.call('REPLICAOF', '127.0.0.1', '1');
    try {
      const before = proxy.accepted;
      const [failure] = await apply(counters, operation('k', 1));
      expect(failure).toMatchObject({ code: 'store_failed', message: 'the counter store is a read-only replica' });
      await until('there is a new connection', () => proxy.accepted === before + 1);
    } finally {
      await server.control.call('REPLICAOF', 'NO', 'ONE');
    }
  });
});

it('a window whose reply arrives while the event loop stands still is counted', async () => {
  const statistics = new Statistics(10);
  // Without the proxy, which would stand still too.
  const counters = await open({ url: server.address, poolSize: 1, timeout: TIMEOUT }, { statistics });
  expect(await apply(counters, operation('still', 1))).toEqual([1]);
  await setImmediate();
  const counts = apply(counters, operation('still', 1));
  const end = performance.now() + TIMEOUT + 10;
  while (performance.now() < end);
  expect(await counts).toEqual([2]);
  expect(statistic(statistics, 'ratelimit.redis_pool.cx_local_close')).toBe(0);
});

it('a part of a window is not sent after the time of the window, when the reply to the part before is read so late', async () => {
  const counters = await open({ url: server.address, poolSize: 1, timeout: TIMEOUT });
  const keys = Array.from({ length: 600 }, (_, index) => `part-${index}`);
  expect(await apply(counters, operation('loads the script', 1))).toEqual([1]);
  await setImmediate();
  const applied = apply(counters, ...keys.map((key) => operation(key, 1)));
  const end = performance.now() + TIMEOUT + 10;
  while (performance.now() < end);
  const counts = await applied;
  const unsent = counts.findIndex((count) => typeof count !== 'number');
  // One part has at most 256 keys.
  expect(unsent).toBe(256);
  for (const failure of counts.slice(unsent)) expect(failure).toMatchObject({ code: 'store_timeout' });
  expect(await storedCounts(server.control, keys)).toEqual(keys.map((_, index) => (index < unsent ? 1 : 0)));
});

it('close waits for the windows in flight, then closes all connections', async () => {
  const counters = await open();
  const last = apply(counters, operation('last', 1));
  await counters.close();
  expect(await last).toEqual([1]);
  await until('all connections are closed', () => proxy.connections === 0);
});
