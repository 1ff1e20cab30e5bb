import { Operation } from '../../src/counting/operation';
import { SimulatedInstance, SimulatedStore, Timeline } from '../support/data/lease-fleet';
import { leasedLimit } from './lease-bounds';
import { START, TRIP, leasing } from './leasing-instance';

/** A fixed window with so little left that the key is counted call by call. */
function scarce() {
  const made = leasing(leasedLimit(225, 10));
  const { held, call, store } = made;
  while (held() > 0) call();
  const before = store.trips;
  return { ...made, trips: () => store.trips - before };
}

describe('a leased key', () => {
  it('is asked for once at a time, however long the answer takes', () => {
    const { timeline, call, held, instance, lag } = leasing();
    const { granted } = instance.statistics;
    while (held() > 0) call();
    lag(500);
    timeline.runTo(timeline.now + 1);
    lag(TRIP);
    timeline.runTo(timeline.now + 70);
    const before = granted.value;
    for (let made = 0; made < 20; made += 1) {
      call();
      timeline.runTo(timeline.now + 5);
    }
    expect(granted.value).toBe(before);
    timeline.runTo(START + 1_600);
    expect(granted.value).toBeGreaterThan(before);
  });

  it('sends nothing for calls that come while the answer is on its way', () => {
    const { call, held, timeline, store, instance } = leasing();
    while (held() > 0) call();
    timeline.runTo(timeline.now + 0.5);
    const [trips, used] = [store.trips, instance.statistics.used.value];
    for (let made = 0; made < 5; made += 1) {
      call();
      timeline.runTo(timeline.now + 0.3);
    }
    timeline.runTo(timeline.now + TRIP);
    // What was asked for, and the next request when all of it is used.
    expect([store.trips - trips <= 2, instance.statistics.used.value - used]).toEqual([true, 5]);
  });

  it('gives back what arrives after it was given back', () => {
    const { call, held, timeline, stored, instance } = leasing();
    let calls = 198;
    for (; held() > 0; calls += 1) call();
    timeline.runTo(timeline.now + 0.5);
    instance.giveBackAll();
    timeline.runTo(timeline.now + 10 * TRIP);
    expect([held(), stored(), instance.leases.size]).toEqual([0, calls, 0]);
  });
});

describe('a key of which little is left', () => {
  it('sends each call at once, and nothing else', () => {
    const { call, timeline, trips, stored, instance } = scarce();
    const before = stored();
    call();
    timeline.runTo(timeline.now + 0.5);
    call();
    timeline.runTo(timeline.now + TRIP);
    expect([stored() - before, trips()]).toEqual([2, 2]);
    call();
    timeline.runTo(timeline.now + 0.5);
    instance.giveBackAll();
    timeline.runTo(timeline.now + 5 * TRIP);
    expect(trips()).toBe(3);
  });

  it('gives back the last hit when it rests', () => {
    const { held, timeline, stored } = leasing(leasedLimit(230, 10));
    expect(held()).toBe(1);
    timeline.runTo(timeline.now + 200);
    expect([held(), stored()]).toEqual([0, 198]);
  });

  it('is known to be busy, and is leased as soon as there is more', () => {
    const { call, held, timeline, store, key } = scarce();
    function callEvenly(calls: number): void {
      for (let made = 0; made < calls; made += 1) {
        timeline.runTo(timeline.now + 25);
        call();
      }
    }
    callEvenly(20);
    expect(held()).toBe(0);
    store.counts.remove(key);
    callEvenly(3);
    expect(held()).toBeGreaterThan(0);
  });
});

it('a bucket that has denied a call denies others until a token has flowed in, and no longer', () => {
  const limit = leasedLimit(1_000, 10, { algorithm: 'token_bucket', burst: 500 });
  const { call, timeline, held } = leasing(limit, 'bucket');
  while (held() > 0) call();
  for (let made = 0; made < 500; made += 1) call();
  timeline.runTo(timeline.now + 2 * TRIP);
  expect(call()).toMatchObject({ isKnownOver: true, outcome: { isAllowed: false, remaining: 0 } });
  timeline.runTo(timeline.now + 11);
  expect(call()?.isKnownOver ?? false).toBe(false);
});

it('operations of a call that no lease decides are left in their order', () => {
  const { instance, limit, key } = leasing();
  const [before, leased, after] = ['d_a_1', key, 'd_b_1'].map((each) => new Operation(limit, each, 1));
  expect(instance.leases.use([before!, leased!, after!]).map((each) => each.key)).toEqual(['d_a_1', 'd_b_1']);
  expect([leased!.after, before!.after]).toEqual([199, -1]);
});

describe('what is remembered of keys', () => {
  function fleetOfOne() {
    const timeline = new Timeline(START);
    const instance = new SimulatedInstance({ timeline, store: new SimulatedStore(), trip: () => TRIP, span: 0.3 });
    const limit = leasedLimit(1_000, 10);
    function call(number: number, hits = 1): void {
      instance.call(limit, `d_k_${number}_${START / 1000}`, hits, () => undefined);
    }
    return { timeline, leases: instance.leases, call };
  }

  it('is nothing of those that are called now and then, and nothing of all others some time after their calls', () => {
    const { timeline, leases, call } = fleetOfOne();
    for (let number = 0; number < 1_000; number += 1) {
      timeline.at(START + number, () => call(number));
      timeline.at(START + 200 + number, () => call(number));
    }
    timeline.runTo(START + 2_000);
    expect(leases.isIdle).toBe(true);
    call(1, 2);
    timeline.runTo(START + 2_010);
    expect(leases.isIdle).toBe(false);
    timeline.runTo(START + 4_000);
    expect(leases.isIdle).toBe(true);
  });

  it('is looked up of the first keys of a large batch only', () => {
    const { timeline, leases, call } = fleetOfOne();
    for (let number = 0; number < 10; number += 1) call(number);
    timeline.runTo(START + 10);
    for (let number = 9; number > 5; number -= 1) call(number);
    timeline.runTo(START + 20);
    expect(leases.isIdle).toBe(true);
    for (let number = 0; number < 4; number += 1) call(number);
    timeline.runTo(START + 30);
    expect(leases.isIdle).toBe(false);
  });

  it('is a lease of 16,384 of them at most', () => {
    const { timeline, leases, call } = fleetOfOne();
    for (const round of [0, 20]) {
      timeline.at(START + round, () => {
        for (let number = 0; number < 16_390; number += 1) call(number, 2);
      });
    }
    timeline.runTo(START + 30);
    expect(leases.size).toBe(16_384);
  });
});
