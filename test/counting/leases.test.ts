import type { BucketState } from '../../src/counting/algorithms/algorithm';
import { ExpiringCounts, TimedCounts } from '../../src/counting/counts';
import { BUCKET_LEASE_MS } from '../../src/counting/grant';
import type { Grant } from '../../src/counting/lease';
import { Operation } from '../../src/counting/operation';
import { run } from '../../src/counting/simulate';
import fc from '../support/data/properties';
import { leasedLimit, runFleet } from './lease-bounds';
import { type CounterEvent, excessOf } from './lease-events';
import { START, TRIP, aloneWithStore, leasing } from './leasing-instance';

describe('a leased key', () => {
  it('is decided at once, with the counts that it has when no other instance uses the limit', () => {
    const { call, held, stored, instance } = leasing();
    const before = held();
    const first = call()!;
    expect([first.countAfter, held(), stored() - held()]).toEqual([199, before - 1, 199]);
    expect(call(2)!.countAfter).toBe(201);
    expect(instance.atOnce / 201).toBeGreaterThan(0.85);
  });

  it('lets its calls pass when the store has counted more than the limit since, of calls that were denied', () => {
    const { call, held, timeline, store, key, limit } = leasing();
    while (held() > 1) call();
    store.counts.change(key, 5_000, timeline.now, limit);
    timeline.runTo(timeline.now + 2 * TRIP);
    expect([held(), call()!.countAfter]).toEqual([1, limit.requestsPerUnit]);
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

interface BucketStep {
  readonly kind: string;
  /** Milliseconds before it. */
  readonly pause: number;
  /** Hits; of `give back`, how many leases were taken after the one that comes back. */
  readonly number: number;
}

/** A step written as `<pause> <kind> <number>`, or without what is 0. */
function stepOf(text: string): BucketStep {
  const [, pause = 0, kind, number = 0] = /^(?:(\d+) )?(\D+)(?: (\d+))?$/.exec(text)!;
  return { kind: kind!, pause: Number(pause), number: Number(number) };
}

it('no more pass than a bucket allows, whenever hits of its leases are used or given back', () => {
  const limit = leasedLimit(1_000, 1, { algorithm: 'token_bucket', burst: 3_000 });
  const algorithm = limit.algorithm!;
  const step: fc.Arbitrary<BucketStep> = fc.record({
    kind: fc.constantFrom('lend', 'lend', 'lend', 'use all', 'give back', 'give back', 'call', 'fill'),
    pause: fc.constantFrom(0, 0, 0, 0, 300),
    number: fc.constantFrom(0, 1, 2, 3, 20, 200, 450),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100, size: 'max' }), (steps) => {
      const table = new TimedCounts(new ExpiringCounts({ maxKeys: 1 }));
      const events: CounterEvent[] = [];
      let grants: Grant[] = [];
      table.now = START;
      function pass(hits: number): void {
        events.push({ kind: 'passed', key: 'k', at: table.now, hits });
      }
      for (const { kind, pause, number } of steps) {
        table.now += pause;
        const grant = grants.at(-1 - number);
        if (kind === 'lend') {
          const lent = new Operation(limit, 'k', 0);
          lent.lease = { wants: number, milliseconds: BUCKET_LEASE_MS, sentAt: 0, granted: 0 };
          const [state] = run([lent], table) as [BucketState];
          const held = lent.lease.granted;
          const window = algorithm.windowAt(algorithm.reserve(state, held, BUCKET_LEASE_MS), BUCKET_LEASE_MS)?.number;
          if (held > 0) grants.push({ held, until: table.now + BUCKET_LEASE_MS, lostAt: Infinity, window });
        } else if (kind === 'use all') {
          for (const { held, until } of grants) if (table.now <= until) pass(held);
          grants = [];
        } else if (kind !== 'give back') {
          const { remaining } = algorithm.decide(table.stateOf({ key: 'k', limit }), 0);
          const passed = Math.min(remaining, kind === 'fill' ? Infinity : number);
          run([new Operation(limit, 'k', passed)], table);
          pass(passed);
        } else if (grant?.window !== undefined) {
          const returned = new Operation(limit, 'k', -grant.held);
          returned.onlyInWindow = grant.window;
          run([returned], table);
          grants = grants.filter((each) => each !== grant);
        }
      }
      expect(excessOf(events, limit)).toEqual([]);
    }),
    {
      numRuns: 400,
      examples: [
        // A later lease has counted its end before the first one comes back, in a bucket that is soon full,
        'lend 200, 250 lend 200, give back 1, 300 use all, fill',
        // or was then,
        'lend 200, 300 lend 200, lend 200, lend 200, lend 200, give back 4, 300 use all, fill',
        // or is then, as tokens of another one came back,
        'call 480, lend 200, lend 20, give back 1, 300 lend 200, give back 1, 300 use all, fill',
        // or when its time is over, so that the bucket may have been full without it.
        'lend 450, lend 450, 300 lend 200, 300 fill, give back 1, fill',
      ].map((text) => [text.split(', ').map(stepOf)]),
    },
  );
});

describe('keys whose calls come one at a time, so that no window has two on one key', () => {
  /** @param callsASecond on each key */
  function trips(callsASecond: number, keys = 1): { readonly perCall: number; readonly atOnce: number } {
    const { timeline, store, instance } = aloneWithStore();
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
  const { timeline, instance } = aloneWithStore();
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
  it.each([undefined, 'sliding_window', 'token_bucket'] as const)('with the algorithm %s', (algorithm) => {
    let [atOnce, granted, made] = [0, 0, 0];
    for (let seed = 5; seed <= 8; seed += 1) {
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
