import type { Subscription } from 'rxjs';
import type { KvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { keySlot } from '../../../src/sinks/counters/kvstore/slots';
import { counterOf } from '../../support/data/operations';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { until } from '../../support/waiting/until';
import { connected, instance } from '../kvstore/options';
import { Caller } from './reservation-caller';

// What reservations have left whose process has ended, on the clock of the server.

const DUE = 'weir:reservation:due';
const CANCEL = { ttl: 1_000, onExpiry: 'cancel' } as const;
const LONG = { ...CANCEL, ttl: 3_600_000 };
/** The clock of a caller decides the windows; this one is far from that of the server. */
const TRIED = 'd_tried_x_1699999980';

const subscriptions: Subscription[] = [];
afterEach(() => subscriptions.splice(0).forEach((each) => each.unsubscribe()));

const KINDS = ['Redis behind sentinels', 'Redis Cluster', 'Redis with another one for seconds'] as const;
describe.each(KINDS)('what reservations hold whose process has ended, in %s', (kind) => {
  let server: RedisProcess | RedisSentinels | RedisCluster;
  let second: RedisProcess | undefined;
  beforeAll(async () => {
    if (kind === 'Redis behind sentinels') server = await RedisSentinels.start();
    else server = kind === 'Redis Cluster' ? await RedisCluster.start() : await RedisProcess.start();
    if (kind === 'Redis with another one for seconds') second = await RedisProcess.start();
  });
  afterAll(async () => {
    await second?.[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  });

  let prefixes = 0;

  /** A process: it looks for what is due. */
  async function process(prefix: string): Promise<{ caller: Caller; counters: KvstoreCounters; freed: string[] }> {
    const type = server instanceof RedisCluster ? 'cluster' : 'sentinel';
    const main = server instanceof RedisProcess ? instance(server.address) : instance(server.url, { type });
    const counters = await connected(main, { perSecond: second && instance(second.address) });
    const freed: string[] = [];
    subscriptions.push(counters.reservations.freed$!.subscribe((key) => freed.push(key)));
    return { caller: new Caller(counters.reservations, prefix), counters, freed };
  }

  async function dueCount(): Promise<number> {
    const main = server instanceof RedisCluster ? await server.ownerOf(keySlot(DUE)) : server;
    return 'control' in main ? main.control.zcard(DUE) : main.master.control.zcard(DUE);
  }

  it('is given back by another one, in any number, and the rest stays', async () => {
    const prefix = `${kind}${(prefixes += 1)}_`;
    const [one, other] = [await process(prefix), await process(prefix)];
    await other.caller.reserve('own', [{ name: 'tried', hits: 1 }], { ...CANCEL, ttl: 2_000 });
    subscriptions[0]!.unsubscribe();
    const uses = [
      { name: 'tried', hits: 2 },
      { name: 'second', hits: 0 },
      { name: 'team', hits: 0 },
    ];
    for (let made = 0; made < 230; made += 1) await one.caller.reserve(`r${made}`, uses, CANCEL);
    const decided = ['slid100', 'bucket100', 'several'];
    for (const name of decided) await one.caller.reserve(name, [{ name, hits: 9 }], CANCEL);
    await one.caller.reserve('second', [{ name: 'second', hits: 7 }], CANCEL);
    await one.caller.reserve('stays', [{ name: 'tried', hits: 5 }], { ttl: 1_000 });
    await one.caller.reserve('long', [{ name: 'tried', hits: 11 }], LONG);
    const tried = counterOf(prefix + TRIED);
    await until('all is back', async () => (await other.counters.readCounter(tried)).count === 16);
    const seconds = counterOf(`${prefix}d_second_x_1700000035`, 1);
    await until('that of the second, too', async () => (await other.counters.readCounter(seconds)).count === 0);
    // That which is open yet.
    await until('the others are forgotten', async () => (await dueCount()) === 1);
    expect(await one.caller.settle('long', 4)).toBe('settled 11>4:-7');
    await until('none is left', async () => (await dueCount()) === 0);
    for (const name of decided) {
      const all = name === 'several' ? 10 : 100;
      expect(await other.caller.reserve(`all-${name}`, [{ name, hits: all }])).toBe('reserved true 0');
    }
    expect(other.freed).toEqual(expect.arrayContaining([tried.key, seconds.key]));
    expect((await other.counters.readCounter(tried)).count).toBe(9);
  });

  it('is given back by one that starts later, and at rest nothing is sent', async () => {
    const prefix = `${kind}${(prefixes += 1)}_`;
    const one = await process(prefix);
    subscriptions[0]!.unsubscribe();
    await one.caller.reserve('r', [{ name: 'tried', hits: 7 }], { ...CANCEL, ttl: 1_500 });
    const other = await process(prefix);
    const tried = counterOf(prefix + TRIED);
    await until('all is back', async () => (await other.counters.readCounter(tried)).count === 0);
    await until('it has been forgotten', async () => (await dueCount()) === 0);
    const used = (await other.caller.settle('r', 3)) + (await other.caller.settle('r', 3));
    expect(used).toBe('settled 7>3:3settled 7>3:3');
    if (!(server instanceof RedisProcess)) return;
    const { control } = server;
    // It has looked once more, as it has settled a reservation.
    async function calls(): Promise<number> {
      return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await control.info('commandstats'))?.[1]);
    }
    const before = await calls();
    await until('it has looked', async () => (await calls()) > before);
    const atRest = await calls();
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(await calls()).toBe(atRest);
  });
});

describe('the set of what is due in Redis', () => {
  let redis: RedisProcess;
  beforeAll(async () => {
    redis = await RedisProcess.start();
  });
  beforeEach(() => redis.control.flushall());
  afterAll(() => redis[Symbol.asyncDispose]());

  async function caller(): Promise<[Caller, KvstoreCounters]> {
    const counters = await connected(instance(redis.address));
    return [new Caller(counters.reservations, 'p_'), counters];
  }

  it('has what is given back, until that is settled, cancelled or denied, and expires', async () => {
    const [{ reservations }, one] = [(await caller())[0], (await caller())[0]];
    expect(reservations).toBeDefined();
    await one.reserve('a', [{ name: 'user', hits: 60 }], LONG);
    await one.reserve('denied', [{ name: 'user', hits: 60 }], LONG);
    await one.reserve('b', [{ name: 'user', hits: 1 }], LONG);
    await one.reserve('stays', [{ name: 'user', hits: 1 }], { ttl: 60_000 });
    await one.reserve('empty', [{ name: 'user', hits: 0 }], LONG);
    const counter = 'mp_d_user_x_1699999980\n';
    expect(await redis.control.zrange(DUE, 0, -1)).toEqual([`${counter}c:0:a`, `${counter}c:0:b`]);
    expect(await redis.control.pttl(DUE)).toBeGreaterThan(3_600_000);
    await one.settle('a', 90);
    await one.cancel('b');
    expect(await redis.control.exists(DUE)).toBe(0);
  });

  it('names a counter by the algorithm, and by its key without the ending of a window', async () => {
    const [one] = await caller();
    for (const name of ['slid100', 'bucket100']) await one.reserve(name, [{ name, hits: 1 }], LONG);
    const members = await redis.control.zrange(DUE, 0, -1);
    const counters = ['bp_{_d_bucket100_x_}token_bucket_60', 'wp_{_d_slid100_x_}sliding_window_60'];
    expect(new Set(members.map((member) => member.split('\n')[0]))).toEqual(new Set(counters));
  });

  it('is no name of a reservation', async () => {
    const [one] = await caller();
    expect(await one.reserve('due', [{ name: 'user', hits: 1 }])).toBe('invalid_request');
    expect(await one.settle('due', 1)).toBe('unknown_reservation');
  });

  it('may have what another program has written, and counters that hold something else', async () => {
    const [one, counters] = await caller();
    await redis.control.zadd(DUE, 1, 'x', 2, 'mno_member\n', 3, 'mlist\nc:0:r', 4, 'mtext\nc:0:r', 5, '');
    await redis.control.rpush('list', 'x');
    await redis.control.set('text', 'x');
    await redis.control.zadd('text:reservations', 1, 'c1:0:r');
    await one.reserve('r', [{ name: 'tried', hits: 7 }], CANCEL);
    subscriptions.push(counters.reservations.freed$!.subscribe());
    await until('the set is empty', async () => (await redis.control.exists(DUE)) === 0);
    expect((await counters.readCounter(counterOf(`p_${TRIED}`))).count).toBe(0);
  });

  it('is not needed by reservations: it may be of another type', async () => {
    const [one] = await caller();
    await redis.control.set(DUE, 'x');
    expect(await one.reserve('r', [{ name: 'user', hits: 60 }], LONG)).toBe('reserved true 40');
    expect(await one.cancel('r')).toBe('cancelled 60>0:-60');
  });

  it('is looked at again when the server is back', async () => {
    const [one, counters] = await caller();
    subscriptions.push(counters.reservations.freed$!.subscribe());
    await one.reserve('r', [{ name: 'tried', hits: 7 }], CANCEL);
    await redis.crash();
    await redis.run();
    await redis.control.set(`p_${TRIED}`, 7);
    await redis.control.zadd(`p_${TRIED}:reservations`, 1, 'c7:0:r');
    await redis.control.zadd(DUE, 1, `mp_${TRIED}\nc:0:r`);
    await until('all is back', async () => (await redis.control.get(`p_${TRIED}`)) === '0');
    expect(await redis.control.exists(`p_${TRIED}:reservations`)).toBe(0);
  });
});

it('a process whose clock is wrong ends no reservation', async () => {
  await using redis = await RedisProcess.start();
  const counters = await connected(instance(redis.address));
  const [caller, wrong] = [new Caller(counters.reservations, 'p_'), new Caller(counters.reservations, 'p_')];
  await caller.reserve('r', [{ name: 'year', hits: 7 }], { ttl: 60_000, onExpiry: 'cancel' });
  wrong.now += 4_000_000;
  subscriptions.push(counters.reservations.freed$!.subscribe());
  expect(await wrong.reserve('more', [{ name: 'year', hits: 4 }])).toBe('denied false 0');
  expect(await wrong.settle('r', 9)).toBe('settled 7>9:2');
  expect(await caller.reserve('more', [{ name: 'year', hits: 1 }])).toBe('reserved true 0');
});
