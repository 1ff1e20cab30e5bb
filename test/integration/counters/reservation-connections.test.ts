import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/deployment';
import type { Store } from '../../../src/sinks/counters/kvstore/store-client';
import { Statistics } from '../../../src/statistics/statistics';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { serverStates } from '../../support/data/server-states';
import { until } from '../../support/waiting/until';
import { connected, connectedStore, instance } from '../kvstore/options';
import { Caller } from './reservation-caller';

let redis: RedisProcess;
let cluster: RedisCluster;
beforeAll(async () => {
  [redis, cluster] = await Promise.all([RedisProcess.start(), RedisCluster.start()]);
});
afterAll(() => Promise.all([redis, cluster].map((server) => server[Symbol.asyncDispose]())));

it.each(['Redis', 'Redis Cluster'])(
  '400 reservations at once use the connections of the pool to %s, and no others',
  async (kind) => {
    const statistics = new Statistics(100);
    const main = kind === 'Redis' ? instance(redis.address) : instance(cluster.url, { type: 'cluster' });
    // On a busy machine, servers may need longer than the second after which calls to them are held back.
    const servers = serverStates({ failures: 0, statistics });
    const { reservations } = await connected(main, { statistics, servers });
    const caller = new Caller(reservations, 'pool_');
    const made = Array.from({ length: 400 }, (_, index) => caller.reserve(`r${index}`, [{ name: 'tried', hits: 1 }]));
    for (const answer of await Promise.all(made)) expect(answer).toMatch(/^reserved true /);
    const nodes = kind === 'Redis' ? 1 : cluster.masters.length;
    expect(statistics.counter('ratelimit.redis_pool.cx_total').value).toBeLessThanOrEqual(nodes * main.poolSize);
  },
);

describe('commands while every connection of the pool is busy', () => {
  let store: Store;
  let statistics: Statistics;
  afterEach(() => store.close());

  /** A store with one connection, which a command keeps until the returned function is called. */
  async function busyStore(more: Partial<InstanceOptions>): Promise<() => Promise<unknown>> {
    const main = instance(redis.address, { poolSize: 1, ...more });
    statistics = new Statistics(100);
    store = await connectedStore(main, { statistics });
    const busy = store.run('k', (send) => send('BLPOP', 'pushed', '0')).catch(({ code }: { code: string }) => code);
    await until('it is busy', async () => String(await redis.control.client('LIST')).includes('cmd=blpop'));
    return async () => {
      await redis.control.lpush('pushed', 'x');
      return busy;
    };
  }

  function read(): Promise<unknown> {
    return store.run('k', (send) => send('GET', 'other')).catch(({ code }: { code: string }) => code);
  }

  function connections(): number {
    return statistics.counter('ratelimit.redis_pool.cx_total').value;
  }

  it('wait for it with KVSTORE_POOL_ON_EMPTY_BEHAVIOR=WAIT', async () => {
    const release = await busyStore({ poolOnEmptyBehavior: 'WAIT', poolOnEmptyWaitDuration: 1 });
    const reads = [read(), read()];
    expect(await release()).toEqual(['pushed', 'x']);
    expect([await Promise.all(reads), connections()]).toEqual([[null, null], 1]);
  });

  it('get one more after KVSTORE_POOL_ON_EMPTY_WAIT_DURATION with CREATE, all of them together', async () => {
    const release = await busyStore({ poolOnEmptyBehavior: 'CREATE', poolOnEmptyWaitDuration: 50 });
    expect(await Promise.all(Array.from({ length: 100 }, read))).toEqual(Array.from({ length: 100 }, () => null));
    expect(connections()).toBe(2);
    await release();
  });

  it('fail after it with ERROR', async () => {
    const release = await busyStore({ poolOnEmptyBehavior: 'ERROR', poolOnEmptyWaitDuration: 50 });
    expect(await Promise.all([read(), read()])).toEqual(['store_pool_empty', 'store_pool_empty']);
    await release();
    expect([await read(), connections()]).toEqual([null, 1]);
  });

  it('fail together when the timeout of their window passes, while those after them have another connection', async () => {
    const release = await busyStore({ poolOnEmptyBehavior: 'CREATE', poolOnEmptyWaitDuration: 1, timeout: 300 });
    const blocked = ['one', 'other'].map((key) =>
      store.run('k', (send) => send('BLPOP', key, '0')).catch(({ code }: { code: string }) => code),
    );
    expect(await Promise.all(blocked)).toEqual(['store_timeout', 'store_timeout']);
    await until('there is another connection', async () => (await read()) === null);
    expect(await release()).toBe('store_timeout');
  });
});
