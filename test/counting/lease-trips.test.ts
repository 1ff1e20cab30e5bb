import type { Limit } from '../../src/counting/limit';
import { Operation } from '../../src/counting/operation';
import { SimulatedInstance, SimulatedStore, Timeline } from '../support/data/lease-fleet';
import { leasedLimit, randomOf } from './lease-bounds';
import { START, TRIP, aloneWithStore, leasing } from './leasing-instance';

/** A fixed window with so little left that the key is counted call by call. */
function scarce() {
  const made = leasing(leasedLimit(225, 10));
  const { held, call, store } = made;
  while (held() > 0) call();
  const before = store.trips;
  return { ...made, trips: () => store.trips - before };
}

it('a leased key is asked for once at a time, however long the answer takes', () => {
  const { timeline, call, held, instance, lag } = leasing();
  const { grantedHits: granted } = instance.statistics;
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

it('a lease is enough for four trips to a store that is far away', () => {
  const { timeline, call, held, lag } = leasing(leasedLimit(100_000, 60));
  lag(200);
  let most = 0;
  for (let calls = 0; calls < 4_000; calls += 1) {
    timeline.runTo(timeline.now + 5);
    call();
    most = Math.max(most, held());
  }
  // Of 160, which are used in that time.
  expect(most).toBeGreaterThan(120);
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
  expect(instance.leases.decide([before!, leased!, after!], undefined).map((each) => each.key)).toEqual([
    'd_a_1',
    'd_b_1',
  ]);
  expect([leased!.countAfter, before!.countAfter]).toEqual([199, -1]);
});

describe('what is remembered of keys', () => {
  function fleetOfOne() {
    const { timeline, instance } = aloneWithStore();
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
});

/** Calls on one key, at milliseconds from the start. */
type Stream = readonly { readonly at: number; readonly hits: number }[];

interface Costs {
  /** With those that return what is not used. */
  readonly commands: number;
  readonly saved: number;
  /** Hits that are counted in the end beyond those of the calls. */
  readonly unused: number;
}

function costsOf(stream: Stream, limit: Limit, { isLeasing = true, trip = TRIP } = {}): Costs {
  const timeline = new Timeline(START);
  const store = new SimulatedStore();
  const instance = new SimulatedInstance({ timeline, store, trip: () => trip, span: 0.3, isLeasing });
  for (const { at, hits } of stream) {
    timeline.at(START + at, () => {
      const start = limit.startOfWindow(Math.floor(timeline.now / 1000));
      instance.call(limit, limit.algorithm === undefined ? `d_k_v_${start}` : 'd_k_v', hits, () => undefined);
    });
  }
  timeline.runTo(START + 180_000);
  const { grantedHits, usedHits, returnedHits, savedCalls } = instance.statistics;
  const unused = grantedHits.value - usedHits.value - returnedHits.value;
  return { commands: store.commands, saved: savedCalls.value, unused };
}

describe('a key costs no more commands with leases than without', () => {
  function evenly(callsASecond: number, hits: number, calls: number): Stream {
    return Array.from({ length: calls }, (_, call) => ({ at: (call * 1000) / callsASecond, hits }));
  }

  it('with 13 calls of any hits at 5, 10, 20 or 25 a second, which are counted call by call', () => {
    for (const algorithm of [undefined, 'sliding_window', 'token_bucket'] as const) {
      for (const hits of [1, 10, 500]) {
        const limit = leasedLimit(1_000_000, 60, { algorithm });
        const costs = [5, 10, 20, 25].map((callsASecond) => costsOf(evenly(callsASecond, hits, 13), limit));
        expect(costs).toEqual(new Array(4).fill({ commands: 13, saved: 0, unused: 0 }));
      }
    }
  });

  it('with a burst of a few calls, alone and followed by another one', () => {
    const limit = leasedLimit(100_000, 60);
    for (let calls = 1; calls <= 40; calls += 1) {
      for (const gap of [1.5, 5, 20, 45]) {
        const burst = evenly(1000 / gap, 7, calls);
        const { commands, unused } = costsOf(burst, limit);
        expect([calls, gap, commands <= calls, unused <= 2 * 7]).toEqual([calls, gap, true, true]);
        const again = [...burst, ...burst.map(({ at, hits }) => ({ at: at + 5_000, hits }))];
        expect(costsOf(again, limit).commands).toBeLessThanOrEqual(2 * calls);
      }
    }
  });

  it('unless its window is longer than a minute, after which a lease that has saved nothing is returned', () => {
    const limit = leasedLimit(100_000, 3_600);
    const costs = Array.from({ length: 30 }, (_, calls) => costsOf(evenly(200, 7, calls), limit).commands - calls);
    expect(Math.max(...costs)).toBe(1);
  });

  it('with half of the commands of 50 calls a second, whatever their hits', () => {
    for (const hits of [1, 10, 500]) {
      const { commands } = costsOf(evenly(50, hits, 500), leasedLimit(1_000_000, 60));
      expect(commands).toBeLessThan(250);
    }
  });

  /** Calls that come evenly, at random or in bursts, with equal or random hits. */
  function randomStream(random: () => number): Stream {
    const calls = 1 + Math.floor(random() ** 2 * 300);
    const gap = 1_000 / (2 * 1_000 ** random());
    const most = [1, 1, 10, 500][Math.floor(random() * 4)]!;
    const [isEven, hasEqualHits] = [random() < 0.3, random() < 0.5];
    const burst = random() < 0.3 ? 2 + Math.floor(random() * 30) : Infinity;
    let at = 0;
    return Array.from({ length: calls }, (_, call) => {
      at += isEven ? gap : -Math.log(1 - random()) * gap;
      if (call % burst === 0) at += random() * 2_000;
      return { at, hits: hasEqualHits ? most : 1 + Math.floor(random() * most) };
    });
  }

  it.each([undefined, 'sliding_window', 'token_bucket'] as const)('in random streams of calls: %s', (algorithm) => {
    let [commands, withoutLeases] = [0, 0];
    for (let seed = 1; seed <= 150; seed += 1) {
      const random = randomOf(seed);
      const stream = randomStream(random);
      const hits = stream.reduce((sum, call) => sum + call.hits, 0);
      const requestsPerUnit = Math.max(2, Math.ceil(hits * [0.3, 1, 3, 30][Math.floor(random() * 4)]!));
      const limit = leasedLimit(requestsPerUnit, [10, 60][Math.floor(random() * 2)]!, { algorithm });
      const trip = [0.5, 2, 20][Math.floor(random() * 3)]!;
      const [leased, exact] = [true, false].map((isLeasing) => costsOf(stream, limit, { isLeasing, trip }).commands);
      expect([seed, leased! <= exact!]).toEqual([seed, true]);
      commands += leased!;
      withoutLeases += exact!;
    }
    expect(commands / withoutLeases).toBeLessThan(0.8);
  });
});
