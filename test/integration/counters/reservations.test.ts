import { RedisProcess } from '../../support/processes/redis/redis-process';
import type { ReservationResult } from '../../../src/streams/ports/reservations';
import { KEPT } from '../../../src/streams/ports/reservations';
import { counterOf } from '../../support/data/operations';
import { request } from '../../support/data/requests';
import { until } from '../../support/waiting/until';
import { connected, instance } from '../kvstore/options';
import { Caller, STARTS_AT } from './reservation-caller';
import { freshPrefix, memory, reservationScenarios } from './reservation-scenarios';

// Behind sentinels: reservations.long.test.ts.
describe.each([
  ['memory', 100],
  ['Redis', 25],
  ['Redis Cluster', 15],
] as const)('reservations in %s', (kind, runs) => {
  reservationScenarios(kind, runs);
});

let redis: RedisProcess;
beforeAll(async () => {
  redis = await RedisProcess.start();
});
afterAll(() => redis[Symbol.asyncDispose]());

describe('reservations of one store only', () => {
  it('in memory are forgotten two minutes after they have expired, and what they held is given back before', async () => {
    const clock = { now: STARTS_AT };
    const counters = memory(clock);
    const caller = new Caller(counters, freshPrefix());
    await caller.reserve('r', [{ name: 'team', hits: 50 }], { ttl: 1_000, onExpiry: 'cancel' });
    caller.now = clock.now += 1_000;
    counters.removeExpired();
    const team = counterOf(`${caller.cacheKeyPrefix}d_team_x_1699999920`, 120);
    expect((await counters.readCounter(team)).count).toBe(0);
    expect(await caller.cancel('r')).toBe('reservation_conflict');
    caller.now = clock.now += KEPT;
    counters.removeExpired();
    expect(await caller.cancel('r')).toBe('unknown_reservation');
    await caller.reserve('ended', [{ name: 'team', hits: 50 }], { ttl: 3_600_000 });
    await caller.cancel('ended');
    caller.now = clock.now += KEPT;
    counters.removeExpired();
    expect(await caller.cancel('ended')).toBe('unknown_reservation');
  });

  it('in memory have ended as long as their ids can be ended, if they hold no hits', async () => {
    const clock = { now: STARTS_AT };
    const counters = memory(clock);
    const caller = new Caller(counters, freshPrefix());
    const call = {
      request: request('unknown', ['user=x']),
      ttl: 3_600_000,
      id: undefined,
      onExpiry: 'settle',
    } as const;
    const { id } = await caller.reservations.reserve(call);
    expect(await caller.cancel(id!)).toBe('cancelled 0>0:0');
    for (const passed of [KEPT, 3_600_000 - KEPT - 1, KEPT]) {
      caller.now = clock.now += passed;
      counters.removeExpired();
      expect([await caller.settle(id!, 1), await caller.cancel(id!)]).toEqual([
        'reservation_conflict',
        'cancelled 0>0:0',
      ]);
    }
    caller.now = clock.now += 1;
    counters.removeExpired();
    expect(await caller.cancel(id!)).toBe('reservation_conflict');
  });

  it('in memory give nothing back from the first millisecond after their window on', async () => {
    const caller = new Caller(memory({ now: STARTS_AT }), freshPrefix());
    for (const id of ['before', 'after']) await caller.reserve(id, [{ name: 'user', hits: 9 }], { ttl: 60_000 });
    caller.now = STARTS_AT + 4_999;
    expect(await caller.cancel('before')).toBe('cancelled 9>0:-9');
    caller.now += 1;
    expect(await caller.cancel('after')).toBe('cancelled 9>0:0');
  });

  it('in memory leave the lists of their counters when they end, also of those whose window has ended', async () => {
    const clock = { now: STARTS_AT };
    const counters = memory(clock);
    const caller = new Caller(counters, freshPrefix());
    await caller.reserve('r', [{ name: 'user', hits: 1 }], { ttl: 60_000 });
    caller.now = clock.now = STARTS_AT + 6_000;
    expect(await caller.settle('r', 1)).toBe('settled 1>1:0');
    const ended = counterOf(`${caller.cacheKeyPrefix}d_user_x_1699999980`);
    expect(await counters.readOpen(ended, clock.now)).toEqual({ count: 0, first: [] });
  });

  it('in memory are ended in turns when many expire at once', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick'] });
    const clock = { now: STARTS_AT };
    const counters = memory(clock);
    const caller = new Caller(counters, freshPrefix());
    const terms = { ttl: 1_000, onExpiry: 'cancel' } as const;
    for (let made = 0; made < 1_000; made += 1)
      await caller.reserve(
        `r${made}`,
        [
          { name: 'team', hits: 0 },
          { name: 'tried', hits: 1 },
        ],
        terms,
      );
    clock.now += 2_000;
    jest.advanceTimersByTime(2_000);
    jest.useRealTimers();
    const tried = counterOf(`${caller.cacheKeyPrefix}d_tried_x_1699999980`);
    // A turn ends 200 at most.
    expect((await counters.readCounter(tried)).count).toBeGreaterThanOrEqual(800);
    await until('all are ended', async () => (await counters.readCounter(tried)).count === 0);
  });

  it('in memory leave their room when they end, to which answers to repeated calls do not count', async () => {
    const clock = { now: STARTS_AT };
    const bounds = { open: { records: 10, bytes: 100_000 }, answerBytes: 1_000_000 };
    const caller = new Caller(memory(clock, bounds), freshPrefix());
    for (let made = 0; made < 2_000; made += 1) {
      await caller.reserve(`r${made}`, [{ name: 'user', hits: 1 }]);
      await caller.cancel(`r${made}`);
    }
    expect(await caller.cancel('r1999')).toBe('cancelled 1>0:-1');
    // The newest answers are kept, and the oldest ones make room.
    expect(await caller.cancel('r0')).toBe('unknown_reservation');
    expect(await caller.reserve('r1999', [{ name: 'user', hits: 1 }])).toBe('reserved true 99');
  });

  it('in memory are bounded by domain and in all, and the answer says which is full', async () => {
    const clock = { now: STARTS_AT };
    const bounds = { open: { records: 2_000, bytes: 1_000_000 }, answerBytes: 1_000_000 };
    const store = memory(clock, bounds);
    async function open(id: string, domain: string, counter: string): Promise<ReservationResult> {
      const step = {
        key: counter,
        hits: 1,
        limit: { requestsPerUnit: 1_000_000, lengthSeconds: 60 },
        denies: 'alone',
      } as const;
      return store.changeReservation({
        ...{ key: id, before: undefined, after: id, lifetime: 1_000, now: clock.now },
        opens: { ttl: 1_000, isDenied: false, domain },
        steps: [{ ...step, member: `s:0:${id}` }],
      });
    }
    async function fill(domain: string): Promise<ReservationResult> {
      for (let made = 0; ; made += 1) {
        const result = await open(`${domain}${made}`, domain, `${domain}${made % 100}`);
        if (result.outcome !== 'done') return result;
      }
    }
    expect(await fill('one')).toEqual({ outcome: 'full', of: 'domain' });
    expect(await open('other', 'other', 'other')).toMatchObject({ outcome: 'done' });
    expect(await fill('two')).toEqual({ outcome: 'full', of: 'store' });
    clock.now += 1_000;
    store.removeExpired();
    expect(await open('more', 'one', 'more')).toMatchObject({ outcome: 'done' });
  });

  it('in Redis leave keys that expire, and reject another type of value', async () => {
    const kvstore = await connected(instance(redis.address));
    const caller = new Caller(kvstore.reservations, 'ttl_');
    await caller.reserve('r', [{ name: 'user', hits: 1 }]);
    const keys = (await redis.control.keys('ttl_*')).sort();
    expect(keys).toEqual([
      expect.stringMatching(/^ttl_d_user_x_\d+$/),
      expect.stringMatching(/:reservations$/),
      'ttl_weir:reservation:r',
    ]);
    for (const key of keys) expect(await redis.control.ttl(key)).toBeGreaterThan(0);
    await redis.control.set('ttl_weir:reservation:odd', 'odd');
    expect(await caller.settle('odd', 1)).toBe('store_failed');
    await redis.control.lpush('ttl_weir:reservation:list', 'odd');
    expect(await caller.reserve('list', [{ name: 'user', hits: 1 }])).toBe('store_failed');
    expect(await caller.reserve('read', [{ name: 'user', hits: 0 }])).toBe('reserved true 99');
    expect(caller.statistics.counter('ratelimit.reservations.reserved').value).toBe(2);
  });
});
