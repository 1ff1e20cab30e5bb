import { keySlot } from '../../../src/sinks/counters/kvstore/slots';
import { openReservationsOf } from '../../../src/operators/counters';
import type { ReservationStore } from '../../../src/streams/ports/reservations';
import { descriptor, request } from '../../support/data/requests';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { until } from '../../support/waiting/until';
import { connected, instance } from '../kvstore/options';
import { Caller, STARTS_AT } from './reservation-caller';
import { counterOf } from '../../support/data/operations';
import { courseTests, type FAILURES, FailingStore, callerOn, cluster, leftBy, reserve, store } from './spread-courses';

courseTests('fast');

/** A caller whose process ends at a step, and another one with the same reservations. */
function failingAt(step: number, how: (typeof FAILURES)[number]): [caller: Caller, other: Caller, store: FailingStore] {
  const failing = new FailingStore(store, step, how);
  const caller = callerOn(failing);
  return [caller, callerOn(store, caller.cacheKeyPrefix), failing];
}
const ALL = 'reserved true 100,150,10,0';

describe('a reservation on a cluster that is left half made', () => {
  it('does not exist, and is given back by another one with its id', async () => {
    const [caller, other, failing] = failingAt(3, 'before it has the reply');
    void reserve(caller);
    await until('it fails', () => failing.hasFailed);
    expect([await other.settle('r', 1), await leftBy(other)]).toEqual([
      'unknown_reservation',
      'reserved true 51,90,10,0',
    ]);
    expect(await other.reserve('r', [{ name: 'team', hits: 1 }])).toBe('reserved true 149');
    expect(await leftBy(other)).toBe('reserved true 100,149,10,0');
  });

  it('is made as a whole by another call, also when its record is lost', async () => {
    const [caller, other, failing] = failingAt(2, 'before it has the reply');
    void reserve(caller);
    await until('it fails', () => failing.hasFailed);
    const name = `${caller.cacheKeyPrefix}weir:reservation:r`;
    await (await cluster.ownerOf(keySlot(name))).control.del(name);
    expect([await reserve(other), await leftBy(other)]).toEqual([
      'reserved true 60,90,51,0',
      'reserved true 51,90,0,0',
    ]);
  });

  it('is given back at once if it was the server that failed', async () => {
    const [caller, other] = failingAt(4, 'as the server fails');
    expect(await reserve(caller)).toBe('store_failed');
    expect(await leftBy(other)).toBe(ALL);
  });

  it('is waited for no longer than a few seconds', async () => {
    const caller = callerOn(store);
    const name = `${caller.cacheKeyPrefix}weir:reservation:r`;
    const owner = await cluster.ownerOf(keySlot(name));
    let attempts = 0;
    const timer = setInterval(() => void owner.control.set(name, `pending ${(attempts += 1)} []`), 200);
    await until('it is written', () => attempts > 1);
    expect(await reserve(caller)).toBe('store_timeout');
    clearInterval(timer);
  });
});

it('a reservation on a cluster that a slow call gives back is not that of a call that has taken it over', async () => {
  // It counts one step, fails at the next one, and is slow when it gives back the first.
  const failing = new FailingStore(store, 2, 'as the server fails');
  const slow = new FailingStore(failing, 4, 'for long');
  const caller = callerOn(slow);
  const other = callerOn(store, caller.cacheKeyPrefix);
  const failed = reserve(caller);
  await until('it is slow', () => slow.hasFailed);
  expect(await reserve(other)).toBe('reserved true 60,90,51,0');
  slow.goOn();
  expect([await failed, await leftBy(other)]).toEqual(['store_failed', 'reserved true 51,90,0,0']);
  expect(await other.settle('r', 1)).toBe('settled 40>1:-39,60>1:-59,9>1:-8,20>1:-19');
});

it.each([
  ['settle', 'settled 40>30:-10', 'reserved true 70'],
  ['cancel', 'settled 40>30:30', 'reserved true 70'],
] as const)(
  'a reservation on a cluster with on_expiry: %s that expires while it is settled leaves what was used',
  async (onExpiry, answer, left) => {
    // Three steps make it, and one enters what is given back; it is read, its end is written down, and what is done is
    // read.
    const steps = onExpiry === 'cancel' ? 4 : 3;
    const [caller, other, failing] = failingAt(steps + 2, 'before the server has it');
    await caller.reserve('r', [{ name: 'user', hits: 40 }], { ttl: 1_000, onExpiry });
    void caller.settle('r', 30);
    await until('it fails', () => failing.hasFailed);
    other.now += 1_000;
    await other.reserve('next', [{ name: 'user', hits: 0 }]);
    expect([await other.settle('r', 30), await other.settle('r', 30)]).toEqual([answer, answer]);
    expect(await other.reserve('read', [{ name: 'user', hits: 0 }])).toBe(left);
  },
);

it('a reservation on a cluster that was left half settled counts once what was above it, until it is forgotten', async () => {
  // Three steps make it; it is read, its end is written down, and what is above it is counted in the present window.
  const [caller, other, failing] = failingAt(3 + 3, 'before the server has it');
  await caller.reserve('r', [{ name: 'user', hits: 40 }], { ttl: 60_000 });
  caller.now = other.now = STARTS_AT + 6_000;
  void caller.settle('r', 50);
  await until('it fails', () => failing.hasFailed);
  const record = `${caller.cacheKeyPrefix}weir:reservation:r`;
  const passed = (await (await cluster.ownerOf(keySlot(record))).control.pttl(record)) - 20_000;
  for (const { control } of cluster.masters) {
    for (const key of await control.keys(`*${caller.cacheKeyPrefix}*reservation*`)) {
      await control.pexpire(key, (await control.pttl(key)) - passed);
    }
  }
  expect(await other.settle('r', 50)).toBe('settled 40>50:10');
  expect(await other.reserve('read', [{ name: 'user', hits: 0 }])).toBe('reserved true 90');
});

it('a reservation on a cluster that was left half settled is settled when it is made again', async () => {
  const [caller, other, failing] = failingAt(8, 'before it has the reply');
  const answer = await reserve(caller);
  void caller.settle('r', 1);
  await until('it fails', () => failing.hasFailed);
  expect([await reserve(other), await leftBy(other)]).toEqual([answer, 'reserved true 98,149,9,0']);
});

it('a reservation on a cluster is denied by the count that it found', async () => {
  const other = callerOn(store);
  const uses = [
    { name: 'team', hits: 1 },
    { name: 'user', hits: 60 },
  ];
  await other.reserve('others', [{ name: 'user', hits: 60 }]);
  const steps = 3 + 3;
  const failing = new FailingStore(store, steps, 'for long');
  const denied = callerOn(failing, other.cacheKeyPrefix).reserve('r', uses);
  await until('it waits', () => failing.hasFailed);
  await other.cancel('others');
  failing.goOn();
  expect(await denied).toBe('denied false 150,0');
});

it('a reservation on a cluster that is known is answered as before, also if it would be denied by now', async () => {
  const caller = callerOn(store);
  await reserve(caller);
  const { now, cacheKeyPrefix } = caller;
  const opens = { ttl: 5_000, isDenied: true, domain: 'd' };
  const change = { before: undefined, after: 'x', lifetime: 700_000, now, opens, steps: [] };
  const reservations = caller.store as ReservationStore;
  const [known, other] = ['r', 'other'].map((id) =>
    reservations.changeReservation({ ...change, key: `${cacheKeyPrefix}weir:reservation:${id}` }),
  );
  expect(await known).toMatchObject({ outcome: 'changed', record: expect.stringContaining('"state":"open"') });
  expect(await other).toMatchObject({ outcome: 'denied', steps: [] });
});

it('quotas deny a reservation on a cluster only together', async () => {
  const caller = callerOn(store);
  expect(await caller.reserve('r', quotas(11, 5))).toBe('reserved true 0,15');
  expect(await caller.reserve('more', quotas(1, 16))).toBe('denied false 0,0');
  expect(await caller.reserve('read', quotas(0, 0))).toBe('reserved true 0,15');
});

function quotas(first: number, other: number): Parameters<Caller['reserve']>[1] {
  return [
    { name: 'first', hits: first },
    { name: 'other', hits: other },
  ];
}

it('a reservation that is made several times at once counts once, and all get the same answer', async () => {
  const callers = Array.from({ length: 5 }, () => callerOn(store, 'same_'));
  const answers = await Promise.all(callers.map(reserve));
  expect(new Set(answers)).toEqual(new Set(['reserved true 60,90,51,0']));
  expect(await leftBy(callers[0]!)).toBe('reserved true 51,90,0,0');
});

it('a reservation leaves keys that all expire, those of a counter in its slot', async () => {
  const caller = callerOn(store, 'keys_');
  await reserve(caller);
  await caller.settle('r', 5);
  const stored = await Promise.all(
    cluster.masters.map(async ({ control }) => {
      const keys = await control.keys('*keys_*');
      return Promise.all(keys.map(async (key) => [key, (await control.ttl(key)) > 0]));
    }),
  );
  const keys = stored.flat();
  expect(keys.filter(([, expires]) => expires !== true)).toEqual([]);
  // The record, three counters, and a record for each of the four descriptors; the lists are empty.
  expect(keys).toHaveLength(8);
  const name = 'keys_weir:reservation:r';
  const { control } = await cluster.ownerOf(keySlot(name));
  expect(await control.get(name)).toMatch(/"state":"settled".*\n40:40,60:60,49:9,20:20\n14:-35,5:-55,10:-4,5:-15$/);
  const besides = keys.filter(([key]) => String(key).includes(':reservation:s'));
  expect(besides).toHaveLength(4);
  const lifetimes = await Promise.all(
    besides.map(async ([key]) => (await cluster.ownerOf(keySlot(String(key)))).control.ttl(String(key))),
  );
  expect(Math.max(...lifetimes)).toBeLessThan((await control.ttl(name)) - 8);
});

it('a reservation on a cluster may have braces in its descriptors, unless these make its keys part', async () => {
  const caller = callerOn(store);
  const call = { ttl: 5_000, id: 'r', onExpiry: 'settle' } as const;
  const tagged = request('d', [descriptor('user={x}y'), descriptor('user=a{}')]);
  await expect(caller.reservations.reserve({ ...call, request: tagged })).rejects.toThrow('a closing brace');
  const counter = counterOf('d_user_a{}_0');
  expect(await openReservationsOf(counter, caller.store)).toBeUndefined();
  const { id } = await caller.reservations.reserve({ ...call, request: request('d', ['user={x}y', 'user=a{b']) });
  expect(id).toBe('r');
  expect(await caller.settle('r', 7)).toBe('settled 1>7:6,1>7:6');
});

it('a reservation may count limits per second in a store of their own', async () => {
  await using second = await RedisProcess.start();
  await using redis = await RedisProcess.start();
  const kvstore = await connected(instance(redis.address), { perSecond: instance(second.address) });
  const [caller, other] = [new Caller(kvstore.reservations, 'p_'), new Caller(kvstore.reservations, 'p_')];
  const uses = [
    { name: 'second', hits: 6 },
    { name: 'user', hits: 20 },
  ];
  expect(await caller.reserve('r', uses)).toBe('reserved true 4,80');
  expect(await other.reserve('denied', uses)).toBe('denied false 0,80');
  expect(await other.settle('r', [3, 30])).toBe('settled 6>3:-3,20>30:10');
  expect(await caller.reserve('more', uses)).toBe('reserved true 1,50');
  const counters = [await second.control.keys('p_d_second_x_*[0-9]'), await redis.control.keys('p_d_user_x_*[0-9]')];
  expect(counters.map((keys) => keys.length)).toEqual([1, 1]);
});
