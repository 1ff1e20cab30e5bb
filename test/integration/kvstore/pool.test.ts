import { firstValueFrom } from 'rxjs';
import type { DecisionError } from '../../../src/limiter/decision-error';
import { type KvstoreCounters, kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import type { InstanceOptions, KvstoreOptions } from '../../../src/sinks/counters/kvstore/connections/options';
import { Statistics } from '../../../src/statistics/statistics';
import { FaultProxy } from '../../support/servers/fault-proxy';
import { freePorts } from '../../support/processes/free-ports';
import { RecordedLog } from '../../support/data/recorded-log';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { until } from '../../support/waiting/until';
import { operation, take } from '../counters/scenarios';
import { instance, options } from './options';

let server: RedisProcess;
let proxy: FaultProxy;
const opened: KvstoreCounters[] = [];

beforeAll(async () => {
  server = await RedisProcess.start();
}, 30_000);
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

/** Makes as many windows wait in the store as there are connections, until the proxy lets replies through again. */
function occupy(counters: KvstoreCounters, windows: number): Promise<unknown>[] {
  proxy.fault = 'black hole';
  return Array.from({ length: windows }, () => take(counters, operation('busy', 1)).catch((error: unknown) => error));
}

function statistic(statistics: Statistics, name: string): number {
  return new Map(statistics.entries()).get(name) ?? 0;
}

describe('a pool of which every connection is busy', () => {
  it('fails further windows with ERROR', async () => {
    const counters = await open({ poolOnEmptyBehavior: 'ERROR', poolOnEmptyWaitDuration: 1, timeout: 500 });
    await until('the pool is full', () => proxy.connections === 2);
    const busy = occupy(counters, 2);
    await expect(take(counters, operation('k', 1))).rejects.toMatchObject({ code: 'store_pool_empty' });
    await Promise.all(busy);
    expect(counters.whenFull).toEqual({ behavior: 'fail', after: 1 });
  });

  it('makes one more connection for each further window with CREATE, and closes it after', async () => {
    const statistics = new Statistics(10);
    const counters = await open({ poolOnEmptyBehavior: 'CREATE', timeout: 500 }, { statistics });
    await until('the pool is full', () => proxy.connections === 2);
    const busy = occupy(counters, 2);
    proxy.fault = 'none';
    expect(await take(counters, operation('created', 1))).toEqual([1]);
    await until('it is closed', () => statistic(statistics, 'ratelimit.redis_pool.cx_local_close') >= 1);
    await Promise.all(busy);
    expect(counters.whenFull).toEqual({ behavior: 'exceed', after: 1000 });
  });

  it('lets further windows wait with WAIT, not longer than the timeout', async () => {
    const counters = await open({ poolOnEmptyBehavior: 'WAIT', timeout: 300 });
    await until('the pool is full', () => proxy.connections === 2);
    const busy = occupy(counters, 2);
    const error = await take(counters, operation('k', 1)).catch((failure: DecisionError) => failure);
    expect(['store_timeout', 'store_failed']).toContain((error as DecisionError).code);
    await Promise.all(busy);
    expect(counters.whenFull).toBeUndefined();
  });

  it('gives a connection that comes free to the window that has waited longest', async () => {
    const counters = await open({ poolOnEmptyBehavior: 'WAIT', poolSize: 1 });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        take(counters, operation('in order', 1)).then(([count]) => [index, count]),
      ),
    );
    expect(answers).toEqual(Array.from({ length: 20 }, (_, index) => [index, index + 1]));
  });
});

describe('the statistics of a pool', () => {
  it('tell the connections that there are, have been, and were closed', async () => {
    const statistics = new Statistics(10);
    await open({ poolSize: 3 }, { statistics, perSecond: instance(server.address, { poolSize: 2 }) });
    function pool(stat: string): number {
      return statistic(statistics, `ratelimit.redis_pool.cx_${stat}`);
    }
    await until('all are there', () => pool('active') === 3);
    await until('all are there', () => statistic(statistics, 'ratelimit.redis_per_second_pool.cx_active') === 2);
    expect([pool('total'), pool('local_close')]).toEqual([3, 0]);
    proxy.cut();
    await until('all are back', () => pool('total') === 6);
    expect([pool('active'), pool('local_close')]).toEqual([3, 3]);
  });
});

describe('health', () => {
  it('follows the connections', async () => {
    const counters = await open();
    const states: boolean[] = [];
    const subscription = counters.connected$.subscribe((state) => states.push(state));
    proxy.fault = 'refused';
    proxy.cut();
    await until('it is unhealthy', () => states.at(-1) === false);
    proxy.fault = 'none';
    await until('it is healthy', () => states.at(-1) === true);
    subscription.unsubscribe();
    expect(states).toEqual([true, false, true]);
  });

  it('is that of both instances', async () => {
    const counters = await open({}, { perSecond: instance(server.address) });
    proxy.fault = 'refused';
    proxy.cut();
    expect(await firstValueFrom(counters.connected$)).toBe(true);
    await until('it is unhealthy', async () => !(await firstValueFrom(counters.connected$)));
  });

  it('finds a peer that has gone without a word, also when nobody calls', async () => {
    const counters = await open({ timeout: 200 });
    expect(await firstValueFrom(counters.connected$)).toBe(true);
    proxy.fault = 'black hole';
    await until('it is unhealthy', async () => !(await firstValueFrom(counters.connected$)));
  });
});

describe('at start', () => {
  it('the store is waited for, with one line when it is away and one when it is there', async () => {
    const log = new RecordedLog();
    proxy.fault = 'refused';
    const counters = openUnready({}, { log });
    await expect(take(counters, operation('k', 1)).catch((error: DecisionError) => error.code)).resolves.toBe(
      'store_failed',
    );
    await until('it was tried again and again', () => proxy.accepted > 3);
    proxy.fault = 'none';
    await firstValueFrom(counters.ready$);
    expect(log.messages).toEqual([
      'the counter store cannot be reached; trying until it can',
      'connected to the counter store',
    ]);
  });

  it('gives up when it takes longer than the settings allow, and says why', async () => {
    const [port] = await freePorts(1);
    const counters = kvstoreCounters(
      options(instance(`redis://:secret@127.0.0.1:${port}`), {
        startup: { initialInterval: 10, maxInterval: 20, maxElapsedTime: 100 },
      }),
    );
    opened.push(counters);
    await expect(firstValueFrom(counters.ready$)).rejects.toThrow(/could not be reached within 100 ms: .*ECONNREFUSED/);
  });

  it('a server that takes connections and never answers is no store', async () => {
    proxy.fault = 'black hole';
    const counters = openUnready(
      { timeout: 100 },
      { startup: { initialInterval: 10, maxInterval: 20, maxElapsedTime: 300 } },
    );
    await expect(firstValueFrom(counters.ready$)).rejects.toThrow('no answer within 100 ms');
  });
});

describe('a server that says it is a read-only replica', () => {
  it('loses its connections with KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR, and the caller gets the error', async () => {
    const counters = await open({ poolSize: 1 }, { closeConnectionOnReadonlyError: true });
    await server.control.call('REPLICAOF', '127.0.0.1', '1');
    try {
      const before = proxy.accepted;
      const [failure] = await take(counters, operation('k', 1));
      expect(failure).toMatchObject({ code: 'store_failed', message: 'the counter store is a read-only replica' });
      await until('there is a new connection', () => proxy.accepted === before + 1);
    } finally {
      await server.control.call('REPLICAOF', 'NO', 'ONE');
    }
  });
});

it('close answers what is under way first, and leaves nothing open', async () => {
  const counters = await open();
  const under = take(counters, operation('last', 1));
  await counters.close();
  expect(await under).toEqual([1]);
  await until('all connections are closed', () => proxy.connections === 0);
});
