import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import type { KvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { Code } from '../../../src/limiter/verdict';
import type { ReservationStore } from '../../../src/streams/ports/reservations';
import { descriptor } from '../../support/data/requests';
import fc from '../../support/data/properties';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { connected, instance } from '../kvstore/options';
import { Caller, RULES, STARTS_AT } from './reservation-caller';
import { Service } from './rule-scenarios';

const CANCEL = { ttl: 30_000, onExpiry: 'cancel' } as const;
const NAMES = ['slid100', 'bucket100', 'all100'] as const;

let redis: RedisProcess;
let cluster: RedisCluster;
beforeAll(async () => {
  [redis, cluster] = [await RedisProcess.start(), await RedisCluster.start()];
});
afterAll(() => Promise.all([redis[Symbol.asyncDispose](), cluster[Symbol.asyncDispose]()]));

const opened: MemoryCounters[] = [];
afterEach(() => Promise.all(opened.splice(0).map((counters) => counters.close())));
let prefixes = 0;

describe.each(['memory', 'Redis', 'Redis Cluster'] as const)('reservations by algorithms in %s', (kind) => {
  let clock: { now: number };
  let store: ReservationStore;
  let caller: Caller;
  let other: Caller;
  let service: Service;
  beforeEach(async () => {
    clock = { now: STARTS_AT };
    const prefix = `a${(prefixes += 1)}_`;
    let counters: MemoryCounters | KvstoreCounters;
    if (kind === 'memory') {
      counters = new MemoryCounters({ maxKeys: 1_000, now: () => clock.now });
      opened.push(counters);
      store = counters;
    } else {
      const main = kind === 'Redis' ? instance(redis.address) : instance(cluster.url, { type: 'cluster' });
      counters = await connected(main, { now: () => clock.now * 1000 });
      store = counters.reservations;
    }
    service = new Service(RULES, counters, { cacheKeyPrefix: prefix }, () => clock.now);
    [caller, other] = [new Caller(store, prefix), new Caller(store, prefix)];
    // The beginning of a minute.
    pass(5_000);
  });

  afterEach(() => service[Symbol.dispose]());

  function pass(milliseconds: number): void {
    caller.now += milliseconds;
    clock.now = other.now = caller.now;
  }
  function take(id: string, name: string, hits: number): Promise<string> {
    return other.reserve(id, [{ name, hits }], { ttl: 3_600_000 });
  }

  it.each(NAMES)('take what fits, and all again after a cancellation (%s)', async (name) => {
    expect(await caller.reserve('a', [{ name, hits: 60 }], CANCEL)).toBe('reserved true 40');
    expect(await caller.reserve('a', [{ name, hits: 60 }], CANCEL)).toBe('reserved true 40');
    expect(await take('b', name, 60)).toBe('denied false 40');
    expect(await other.cancel('a')).toBe('cancelled 60>0:-60');
    expect(await other.cancel('a')).toBe('cancelled 60>0:-60');
    expect(await take('c', name, 100)).toBe('reserved true 0');
    expect(await take('d', name, 1)).toBe('denied false 0');
  });

  it.each(['bucket100', 'slid100', 'tokens', 'usage'])(
    'reserve 0 hits also of what is overdrawn (%s)',
    async (name) => {
      await caller.reserve('a', [{ name, hits: 20 }], CANCEL);
      expect(await other.settle('a', 250)).toBe('settled 20>250:230');
      expect(await take('read', name, 0)).toBe('reserved true 0');
      expect(await take('b', name, 1)).toBe('denied false 0');
    },
  );

  it.each(NAMES)('count what was used (%s)', async (name) => {
    await caller.reserve('a', [{ name, hits: 60 }], CANCEL);
    expect(await other.settle('a', 20)).toBe('settled 60>20:-40');
    expect(await take('read', name, 0)).toBe('reserved true 80');
    await caller.reserve('b', [{ name, hits: 60 }], CANCEL);
    expect(await other.settle('b', 75)).toBe('settled 60>75:15');
    expect(await take('read2', name, 0)).toBe('reserved true 5');
  });

  it.each(NAMES)('count beyond the limit what was used (%s)', async (name) => {
    await caller.reserve('a', [{ name, hits: 60 }], CANCEL);
    expect(await other.settle('a', 500)).toBe('settled 60>500:440');
    expect(await take('b', name, 1)).toBe('denied false 0');
  });

  it.each(NAMES)(
    'are given back when they expire, and counted in full when they are settled later (%s)',
    async (name) => {
      await caller.reserve('a', [{ name, hits: 60 }], { ttl: 1_000, onExpiry: 'cancel' });
      await caller.reserve('stays', [{ name, hits: 30 }], { ttl: 1_000 });
      pass(1_000);
      expect(await take('read', name, 0)).toBe('reserved true 70');
      expect(await other.settle('a', 50)).toBe('settled 60>50:50');
      expect(await take('read2', name, 0)).toBe('reserved true 20');
    },
  );

  it.each(NAMES)('count what other calls have counted, which count what is reserved (%s)', async (name) => {
    async function call(hits: number): Promise<string> {
      const { statuses } = await service.decide('d', [descriptor(`${name}=x`, { hitsAddend: hits })]);
      return `${statuses[0]!.code === Code.OK ? 'OK' : 'OVER'} ${statuses[0]!.limitRemaining}`;
    }
    expect(await call(10)).toBe('OK 90');
    expect(await caller.reserve('a', [{ name, hits: 60 }], CANCEL)).toBe('reserved true 30');
    expect(await call(31)).toBe('OVER 30');
    expect(await call(20)).toBe('OK 10');
    expect(await other.settle('a', 40)).toBe('settled 60>40:-20');
    expect(await call(30)).toBe('OK 0');
  });

  it('are denied by any of the limits of a rule, and count on none then', async () => {
    expect(await take('a', 'several', 8)).toBe('reserved true 2');
    expect(await take('b', 'several', 3)).toBe('denied false 2');
    expect(await take('c', 'several', 2)).toBe('reserved true 0');
    expect(await other.cancel('a')).toBe('cancelled 8>0:-8');
    expect(await take('d', 'several', 8)).toBe('reserved true 0');
  });

  it('give back to a bucket what has not flowed back by itself', async () => {
    // 10 a second, 100 at once.
    await caller.reserve('a', [{ name: 'fast', hits: 100 }], CANCEL);
    pass(20_000);
    expect(await take('plain', 'fast', 100)).toBe('reserved true 0');
    expect(await other.cancel('a')).toBe('cancelled 100>0:0');
    expect(await take('b', 'fast', 1)).toBe('denied false 0');
    // What was given back of a later one is not there for an earlier one.
    pass(20_000);
    await caller.reserve('c', [{ name: 'fast', hits: 50 }], CANCEL);
    await caller.reserve('d', [{ name: 'fast', hits: 50 }], CANCEL);
    pass(4_000);
    expect(await other.cancel('c')).toBe('cancelled 50>0:-10');
    expect(await other.cancel('d')).toBe('cancelled 50>0:-50');
    expect(await take('e', 'fast', 100)).toBe('reserved true 0');
  });

  it('give back to a bucket in the order in which they expire', async () => {
    await caller.reserve('first', [{ name: 'bucket100', hits: 60 }], { ttl: 5_000, onExpiry: 'cancel' });
    await caller.reserve('second', [{ name: 'bucket100', hits: 1 }], { ttl: 1_000, onExpiry: 'cancel' });
    pass(20_000);
    // 16.6 s are missing: 0.6 s come back of the second one, and then 15.4 s of the first one.
    expect(await take('read', 'bucket100', 0)).toBe('reserved true 99');
  });

  it('know what was given back to a bucket as long as reservations that were made after it', async () => {
    await caller.reserve('a', [{ name: 'slow', hits: 60 }], CANCEL);
    await other.cancel('a');
    pass(3_000_000);
    await caller.reserve('b', [{ name: 'slow', hits: 60 }], { ttl: 3_600_000, onExpiry: 'cancel' });
    pass(721_000);
    if (store instanceof MemoryCounters) store.removeExpired();
    await caller.reserve('c', [{ name: 'slow', hits: 30 }], CANCEL);
    expect(await other.cancel('c')).toBe('cancelled 30>0:-30');
    expect(await other.cancel('b')).toBe('cancelled 60>0:-9');
  });

  it('give back to a sliding window in their own window only', async () => {
    pass(59_000);
    await caller.reserve('a', [{ name: 'slid100', hits: 100 }], { ttl: 60_000, onExpiry: 'cancel' });
    pass(31_000);
    expect(await take('others', 'slid100', 50)).toBe('reserved true 0');
    pass(1_000);
    expect(await other.cancel('a')).toBe('cancelled 100>0:-100');
    expect(await take('read', 'slid100', 0)).toBe('reserved true 50');
    pass(30_000);
    expect(await take('read2', 'slid100', 0)).toBe('reserved true 50');
    await caller.reserve('b', [{ name: 'slid100', hits: 20 }], { ttl: 3_600_000 });
    pass(120_000);
    expect(await other.settle('b', 5)).toBe('settled 20>5:0');
  });
});

const ID = fc.constantFrom('r1', 'r2', 'r3', 'r4', 'r5', 'r6');
const HITS = fc.constantFrom(0, 1, 7, 30, 45, 60, 100, 101, 2 ** 33, Number.MAX_SAFE_INTEGER);
const ALL_NAMES = [...NAMES, 'fast', 'odd', 'several'] as const;
const ACTION = fc.oneof(
  fc.record({
    kind: fc.constant('reserve' as const),
    id: ID,
    uses: fc.array(fc.record({ name: fc.constantFrom(...ALL_NAMES), hits: HITS }), { minLength: 1, maxLength: 3 }),
    ttl: fc.constantFrom(1_000, 5_000, 60_000),
    onExpiry: fc.constantFrom('settle' as const, 'cancel' as const),
  }),
  fc.record({ kind: fc.constant('settle' as const), id: ID, hits: HITS }),
  fc.record({ kind: fc.constant('cancel' as const), id: ID }),
  fc.record({ kind: fc.constant('pass' as const), milliseconds: fc.constantFrom(1, 300, 1_000, 20_000, 61_000) }),
);

it('any reservations by algorithms do the same in all stores', async () => {
  const clock = { now: STARTS_AT };
  const inMemory = new MemoryCounters({ maxKeys: 1_000_000, now: () => clock.now });
  opened.push(inMemory);
  const options = { now: () => clock.now * 1000 };
  const one = await connected(instance(redis.address), options);
  const several = await connected(instance(cluster.url, { type: 'cluster' }), options);
  await fc.assert(
    fc.asyncProperty(fc.array(ACTION, { minLength: 1, maxLength: 25 }), async (actions) => {
      const prefix = `m${(prefixes += 1)}_`;
      const callers = [inMemory, one.reservations, several.reservations].map((store) => new Caller(store, prefix));
      async function all(call: (each: Caller) => Promise<string>): Promise<string> {
        for (const each of callers) each.now = clock.now;
        // What is given back is rounded down to microseconds, on a cluster also within a call that is denied.
        const [expected, ...others] = (await Promise.all(callers.map(call))).map((answer) =>
          answer.replace(/^denied.*/, 'denied'),
        );
        clock.now += 1;
        expect(others).toEqual(others.map(() => expected));
        return expected!;
      }
      for (const [index, action] of actions.entries()) {
        if (action.kind === 'pass') clock.now += action.milliseconds;
        else if (action.kind === 'settle') await all((each) => each.settle(action.id, action.hits));
        else if (action.kind === 'cancel') await all((each) => each.cancel(action.id));
        else await all((each) => each.reserve(action.id, action.uses, action));
        const reads = ALL_NAMES.map((name) => ({ name, hits: 0 }));
        const left = await all((each) => each.reserve(`read${index}`, reads));
        expect(left).toMatch(/^reserved /);
        // Whatever was given back, a bucket is not fuller than full.
        for (const each of left.split(' ')[2]!.split(',')) expect(Number(each)).toBeLessThanOrEqual(100);
      }
      clock.now += 200_000;
    }),
    { numRuns: 20 },
  );
});
