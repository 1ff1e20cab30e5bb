import { Statistics } from '../../../src/statistics/statistics';
import { RecordedLog } from '../../support/data/recorded-log';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { schedulerWith } from '../../support/waiting/scheduler-with';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { connected, instance } from './options';

const POLICY = 'the counter store evicts counters when its memory is full; their callers start again at zero';
const EVICTS = 'the counter store evicts keys; callers whose counters it evicts start again at zero';

/** A process that asks every 50 ms, which are 10 s outside of tests. */
async function watching(...[url, more]: Parameters<typeof instance>) {
  const [log, statistics] = [new RecordedLog(), new Statistics(10)];
  const scheduler = schedulerWith({ 10_000: 50 });
  const counters = await connected(instance(url, more), { watchesEvictions: true, log, statistics, scheduler });
  return { counters, log, evicted: () => new Map(statistics.entries()).get('ratelimit.redis_pool.evicted_keys') };
}

/** Waits until a server has been asked several times. */
async function asked({ control }: RedisProcess, times = 3): Promise<void> {
  async function count(): Promise<number> {
    return Number(/cmdstat_info:calls=(\d+)/.exec(await control.info('commandstats'))?.[1] ?? 0);
  }
  const before = await count();
  let own = 0;
  await until('the server is asked', async () => {
    own += 1;
    return (await count()) - before - own >= 2 * times;
  });
}

/** Writes keys until the server has evicted some. */
async function fill({ control }: RedisProcess): Promise<void> {
  await control.config('SET', 'maxmemory', '3mb');
  await until('the server evicts', async () => {
    const pipeline = control.pipeline();
    for (let key = 0; key < 500; key += 1) pipeline.set(`filling_${Math.random()}`, 'x'.repeat(1_000));
    await pipeline.exec();
    return /evicted_keys:[1-9]/.test(await control.info('stats'));
  });
  // Otherwise, connections would have it evict more.
  await control.config('SET', 'maxmemory', '0');
}

describe('a server that evicts keys', () => {
  let server: RedisProcess;
  beforeEach(async () => {
    server = await RedisProcess.start();
  });
  afterEach(() => server[Symbol.asyncDispose]());

  it.each([
    ['allkeys-lru', 1],
    ['allkeys-lfu', 1],
    ['allkeys-random', 1],
    ['volatile-lru', 1],
    ['volatile-random', 1],
    ['volatile-ttl', 0],
    ['noeviction', 0],
  ])('is warned about once, by its policy %s: %i times', async (policy, lines) => {
    await server.control.config('SET', 'maxmemory-policy', policy);
    const { log } = await watching(server.address);
    await asked(server);
    expect(log.lines).toMatchObject(
      Array.from({ length: lines }, () => ({
        ...{ level: 'warn', message: POLICY },
        fields: { store: 'main', reason: `maxmemory-policy ${policy}` },
      })),
    );
  });

  it('is counted and logged when it does, from the start of the process on, also when it has started again', async () => {
    await server.control.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await fill(server);
    const { log, evicted } = await watching(server.address);
    await asked(server);
    expect([evicted(), log.messages]).toEqual([0, [POLICY]]);
    await server.control.config('RESETSTAT');
    await asked(server);
    await fill(server);
    await until('evictions are counted', () => (evicted() ?? 0) > 0);
    await asked(server);
    const count = Number(/evicted_keys:(\d+)/.exec(await server.control.info('stats'))![1]);
    expect(evicted()).toBe(count);
    expect(log.lines.filter(({ message }) => message === EVICTS)).toMatchObject([
      { level: 'warn', fields: { store: 'main', evicted: expect.any(Number) } },
    ]);
  });

  it('is not noticed by a user without INFO, which one line says, and nothing else is different', async () => {
    await server.control.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await server.control.call('ACL', 'SETUSER', 'weir', 'on', '>secret', '~*', '&*', '+@all', '-info');
    const { counters, log, evicted } = await watching(server.address, { auth: 'weir:secret' });
    await until('a line is logged', () => log.lines.length > 0);
    expect(await apply(counters, operation('k', 1))).toEqual([1]);
    await until('it was asked several times', async () => {
      const rejected = /cmdstat_info:.*rejected_calls=(\d+)/.exec(await server.control.info('commandstats'))?.[1];
      return Number(rejected) > 5;
    });
    expect(log.lines).toMatchObject([
      { level: 'notice', message: 'the counter store rejects INFO; its evictions are not noticed' },
    ]);
    expect(evicted()).toBe(0);
  });
});

it('nodes of a cluster that evict keys are warned about once, and what each of them evicts is counted', async () => {
  await using cluster = await RedisCluster.start({ directives: ['--maxmemory-policy', 'allkeys-lru'] });
  const { log, evicted } = await watching(cluster.url, { type: 'cluster' });
  await Promise.all(cluster.masters.map((master) => asked(master)));
  expect(log.messages).toEqual([POLICY]);
  const [master] = cluster.masters as [RedisProcess];
  await fill(master);
  await until('evictions are counted', () => (evicted() ?? 0) > 0);
  expect(log.messages).toEqual([POLICY, EVICTS]);
});

it('a new master of sentinels that has evicted keys before is not counted', async () => {
  await using sentinels = await RedisSentinels.start();
  const { evicted, counters } = await watching(sentinels.url, { type: 'sentinel' });
  const master = await sentinels.currentMaster();
  await asked(master);
  const replica = sentinels.servers.find((each) => each !== master)!;
  // A replica evicts by itself, if it is told to.
  await replica.control.config('SET', 'replica-ignore-maxmemory', 'no');
  await replica.control.config('SET', 'maxmemory-policy', 'allkeys-lru');
  await replica.control.config('SET', 'replica-read-only', 'no');
  await fill(replica);
  const others = sentinels.servers.filter((each) => each !== master && each !== replica);
  for (const { control } of others) await control.config('SET', 'replica-priority', '0');
  await sentinels.failOver();
  expect(await sentinels.currentMaster()).toBe(replica);
  await until('calls succeed', () =>
    apply(counters, operation('k', 1)).then(
      ([count]) => typeof count === 'number',
      () => false,
    ),
  );
  await asked(replica);
  expect(evicted()).toBe(0);
});
