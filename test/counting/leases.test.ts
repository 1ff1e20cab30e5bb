import { SimulatedInstance, SimulatedStore, Timeline } from '../support/data/lease-fleet';
import { leasedLimit, runFleet } from './lease-bounds';
import { START, TRIP, leasing } from './leasing-instance';

describe('a leased key', () => {
  it('is decided at once, with the counts that it has when no other instance uses the limit', () => {
    const { call, held, stored, instance } = leasing();
    const before = held();
    const first = call()!;
    expect([first.countAfter, held(), stored() - held()]).toEqual([199, before - 1, 199]);
    expect(call(2)!.countAfter).toBe(201);
    expect(instance.atOnce / 201).toBeGreaterThan(0.85);
  });

  it('takes what it uses in 100 ms while it still has enough for a stall of the store, at most a sixteenth of what is left', () => {
    const ample = leasing();
    const before = ample.store.trips;
    for (let at = 1_000; at < 1_900; at += 5) {
      ample.timeline.at(START + at, () => {
        ample.call();
        expect(ample.held()).toBeGreaterThanOrEqual(9);
        expect(ample.held()).toBeLessThanOrEqual(36);
      });
    }
    ample.timeline.runTo(START + 1_900);
    expect(ample.store.trips - before).toBeLessThanOrEqual(10);
    const scarce = leasing(leasedLimit(260, 10));
    // 260 − 198 are left, of which a sixteenth is 3; the next are asked for before these are used up.
    expect(scarce.held()).toBeLessThanOrEqual(5);
  });

  it('lets its calls pass when the store has counted more than the limit since, of calls that were denied', () => {
    const { call, held, timeline, store, key, limit } = leasing();
    while (held() > 1) call();
    store.counts.change(key, 5_000, timeline.now, limit);
    timeline.runTo(timeline.now + 2 * TRIP);
    expect([held(), call()!.countAfter]).toEqual([1, limit.requestsPerUnit]);
  });

  it('is given back when it rests, and counts in the store what was used and no more', () => {
    const { timeline, held, stored, instance } = leasing();
    expect(held()).toBeGreaterThan(0);
    timeline.runTo(START + 1_200);
    expect([held(), stored()]).toEqual([0, 198]);
    const { grantedHits, usedHits, returnedHits, unusedHits } = instance.statistics;
    expect([grantedHits.value, unusedHits.value]).toEqual([usedHits.value + returnedHits.value, 0]);
    timeline.runTo(START + 3_000);
    expect(instance.leases.size).toBe(0);
  });

  it('is used no longer than 250 ms after it was asked for, and given back then, however much is left of it', () => {
    const { timeline, held, call, lag, instance } = leasing();
    // No more is granted from now on.
    lag(1_000);
    const [left, returned] = [held(), instance.statistics.returnedHits.value];
    expect(left).toBeGreaterThan(6);
    // One call in 40 ms keeps it from resting. It was asked for within the last 100 ms.
    for (let at = 1_010; at < 1_150; at += 40) {
      timeline.runTo(START + at);
      expect(call()).toBeDefined();
    }
    timeline.runTo(START + 1_251);
    expect(call()).toBeUndefined();
    expect([held(), instance.statistics.returnedHits.value - returned]).toEqual([0, left - 4]);
  });

  it('ends with its window: what is left is of no use, and not given back', () => {
    const { timeline, instance, call, held, store } = leasing(leasedLimit(10_000, 10));
    for (let at = 1_000; at < 9_950; at += 5) timeline.at(START + at, call);
    timeline.runTo(START + 9_990);
    const { returnedHits: returned, unusedHits: unused } = instance.statistics;
    const [left, before, trips] = [held(), returned.value, store.trips];
    expect([left > 0, unused.value]).toEqual([true, 0]);
    timeline.runTo(START + 10_300);
    expect([held(), returned.value - before, unused.value, store.trips - trips]).toEqual([0, 0, left, 0]);
  });

  it('begins in the next window with what is known of its demand', () => {
    const { timeline, instance, limit, key } = leasing();
    const next = `d_k_v_${START / 1000 + 10}`;
    for (let at = 1_000; at < 9_999; at += 10) {
      timeline.at(START + at, () => instance.call(limit, key, 1, () => undefined));
    }
    timeline.runTo(START + 10_010);
    instance.call(limit, next, 1, () => undefined);
    timeline.runTo(START + 10_020);
    expect(instance.leases.heldOf(next)).toBeGreaterThan(0);
  });

  it('is given back for a call with more hits than it holds, for one with another limit, and for all by a reload', () => {
    const { call, held, stored, timeline, instance, key } = leasing();
    expect(call(50)).toBeUndefined();
    expect(held()).toBe(0);
    timeline.runTo(START + 1_010);
    expect(stored() - held()).toBe(198 + 50);
    call();
    const other = leasedLimit(500, 10);
    instance.call(other, key, 1, ({ countAfter }) => expect(countAfter).toBe(250));
    timeline.runTo(START + 1_020);
    instance.giveBackAll();
    timeline.runTo(START + 1_030);
    expect([held(), stored(), instance.leases.size]).toEqual([0, 250, 0]);
  });

  it('is known to be over its limit for a quarter of a second', () => {
    const { call, timeline, stored } = leasing(leasedLimit(190, 10));
    const denied = stored();
    expect(call()).toMatchObject({ isKnownOver: true });
    timeline.runTo(START + 1_300);
    expect([call(), stored()]).toEqual([undefined, denied]);
    timeline.runTo(START + 1_310);
    expect(stored()).toBe(denied + 1);
  });

  it.each([
    ['sliding_window', undefined],
    ['token_bucket', 500],
  ] as const)('of a %s has the outcome that an exact one has', (algorithm, burst) => {
    const limit = leasedLimit(1_000, 10, { algorithm, ...(burst !== undefined && { burst }) });
    const { call, timeline, held } = leasing(limit, `{_d_k_v_}${algorithm}_10`);
    expect(held()).toBeGreaterThan(0);
    const { isAllowed, used, remaining } = call()!.outcome!;
    // Tokens flow in, and those that are held count as used at the end of their time.
    const [most, expected] = burst === undefined ? [199, 199] : [131, 99];
    expect([isAllowed, used >= expected, used <= most, remaining]).toEqual([true, true, true, limit.capacity - used]);
    timeline.runTo(START + 1_200);
    expect(held()).toBe(0);
  });
});

it('a call that comes while more is asked for waits for the answer', () => {
  const { call, timeline, held, instance, store } = leasing();
  while (held() > 0) call();
  const before = store.trips;
  const atOnce = instance.atOnce;
  for (let made = 0; made < 5; made += 1) call();
  timeline.runTo(timeline.now + 3 * TRIP);
  expect([instance.atOnce - atOnce, store.trips - before <= 2]).toEqual([0, true]);
  expect(held()).toBeGreaterThan(0);
});

it('hits that come back to a bucket after their time are not given back: it may have been full without them', () => {
  const limit = leasedLimit(10_000, 10, { algorithm: 'token_bucket', burst: 1_000 });
  const { timeline, store, held, instance, key, lag } = leasing(limit, 'bucket');
  expect(held()).toBeGreaterThan(10);
  lag(2_000);
  timeline.runTo(START + 1_950);
  expect([held(), instance.returning(key) > 10]).toEqual([0, true]);
  const other = new SimulatedInstance({ timeline, store, trip: () => 0, isLeasing: false });
  let passed = 0;
  function call(hits: number): void {
    other.call(limit, key, hits, ({ outcome }) => (passed += outcome!.isAllowed ? hits : 0));
  }
  call(1_000);
  timeline.runTo(START + 2_150);
  expect([passed, instance.returning(key)]).toEqual([1_000, 0]);
  for (let made = 0; made < 300; made += 1) call(1);
  timeline.runTo(START + 2_150);
  expect(passed).toBe(1_000 + 200);
});

describe('keys whose calls come one at a time, so that no window has two on one key', () => {
  /** @param callsASecond on each key */
  function trips(callsASecond: number, keys = 1): { readonly perCall: number; readonly atOnce: number } {
    const timeline = new Timeline(START);
    const store = new SimulatedStore();
    const instance = new SimulatedInstance({ timeline, store, trip: () => TRIP, span: 0.3 });
    const limit = leasedLimit(100_000, 60);
    const calls = 10 * callsASecond * keys;
    for (let call = 0; call < calls; call += 1) {
      timeline.at(START + (call * 10_000) / calls, () => {
        instance.call(limit, `d_k_v${call % keys}_${START / 1000}`, 1, () => undefined);
      });
    }
    timeline.runTo(START + 10_000);
    return { perCall: store.trips / calls, atOnce: instance.atOnce };
  }

  it('take at most 0.04 trips a call from 300 calls a second on', () => {
    for (const callsASecond of [300, 1_000, 5_000]) expect(trips(callsASecond).perCall).toBeLessThanOrEqual(0.04);
  });

  it('ask for more together, so that 20 of them take a fifth of the trips', () => {
    expect(trips(300, 20).perCall).toBeLessThan(0.04 / 5);
  });

  it('have no lease at 25 calls a second', () => {
    expect(trips(25)).toEqual({ perCall: 1, atOnce: 0 });
  });
});

it('keys that were called twice at once, and no more, do not keep others from being leased', () => {
  const timeline = new Timeline(START);
  const store = new SimulatedStore();
  const instance = new SimulatedInstance({ timeline, store, trip: () => TRIP, span: 0.3 });
  const limit = leasedLimit(1_000, 10);
  function call(value: string): void {
    instance.call(limit, `d_k_${value}_${START / 1000}`, 1, () => undefined);
  }
  for (let value = 0; value < 20_000; value += 1) {
    timeline.at(START + value / 100, () => {
      call(String(value));
      call(String(value));
    });
  }
  timeline.runTo(START + 9_000);
  for (let at = 0; at < 500; at += 5) timeline.at(START + 9_000 + at, () => call('busy'));
  timeline.runTo(START + 9_500);
  expect(instance.leases.heldOf(`d_k_busy_${START / 1000}`)).toBeGreaterThan(0);
});

describe('never more than the limit passes, over all instances', () => {
  it.each([
    ['fixed windows', undefined],
    ['a sliding window', 'sliding_window'],
    ['a token bucket', 'token_bucket'],
  ] as const)('with %s', (_, algorithm) => {
    let [atOnce, granted, made] = [0, 0, 0];
    for (let seed = 1; seed <= 8; seed += 1) {
      const { excess, ...result } = runFleet({ seed, calls: 6_000, algorithm });
      expect([seed, excess.slice(0, 3)]).toEqual([seed, []]);
      atOnce += result.atOnce;
      granted += result.granted;
      made += result.calls;
    }
    // Otherwise there was nothing to be wrong.
    expect([atOnce > made / 6, granted > made / 6]).toEqual([true, true]);
  });
});
