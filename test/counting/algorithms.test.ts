import type { AlgorithmLimit, Purpose } from '../../src/counting/algorithms/algorithm';
import { ExpiringCounts, TimedCounts } from '../../src/counting/counts';
import { algorithmOf } from '../../src/counting/limit';
import type { Operation } from '../../src/counting/operation';
import { simulate } from '../../src/counting/simulate';
import { ALGORITHMS } from '../../src/rules/rule-config';
import { allOrNothingGroup, operation } from '../support/data/operations';
import fc from '../support/data/properties';
import { anyLimit, anyStart, anyStep, hitsOf, modelOf, shown } from './algorithm-models';

/** Calls on some limits, all together or each alone, from a time on in Unix milliseconds. */
class Simulated {
  readonly #table = new TimedCounts(new ExpiringCounts({ maxKeys: 100 }));
  readonly #algorithms;

  constructor(limits: readonly AlgorithmLimit[], start = 1_764_000_000_000) {
    this.#algorithms = limits.map(algorithmOf);
    this.#table.now = start;
  }

  /** Unix milliseconds. */
  get now(): number {
    return this.#table.now;
  }

  pass(milliseconds: number): void {
    this.#table.now += milliseconds;
  }

  /** Applies one call. */
  decide(hits: number, purpose?: Purpose): readonly Operation[] {
    const group = this.#algorithms.length > 1 ? allOrNothingGroup() : undefined;
    const call = this.#algorithms.map((algorithm, index) => operation(`k${index}`, hits, { algorithm, group }));
    for (const each of call) each.purpose = purpose;
    simulate(call, this.#table);
    return call;
  }

  /** How many of so many calls pass at once. */
  passing(calls: number): number {
    let passed = 0;
    for (let call = 0; call < calls; call += 1) if (this.decide(1)[0]!.outcome!.isAllowed) passed += 1;
    return passed;
  }
}

describe.each(['token_bucket', 'sliding_window'] as const)('the algorithm %s', (name) => {
  it('decides as a model of whole numbers of any size', () => {
    fc.assert(
      fc.property(
        anyLimit(name),
        fc.array(anyStep, { minLength: 1, maxLength: 12 }),
        anyStart,
        fc.constantFrom('counted', 'reported', 'postpaid'),
        (given, steps, start, mode) => {
          const limit = { ...given, postpaid: mode === 'postpaid' };
          const [model, simulated] = [modelOf(limit), new Simulated([limit], start)];
          // Compared at the end: a call of `expect` takes longer than a decision.
          const [decided, wanted]: [unknown[], unknown[]] = [[], []];
          for (const step of steps) {
            simulated.pass(Math.floor(step.pause * limit.lengthSeconds * 1000));
            for (const hits of hitsOf(step, limit)) {
              const purpose = mode === 'counted' || hits < 0 ? undefined : hits === 0 ? 'ask' : 'report';
              const expected = model.decide(BigInt(hits), BigInt(simulated.now) * 1000n, purpose);
              const [{ outcome, countAfter: after }] = simulated.decide(hits, purpose) as [Operation];
              decided.push([shown(outcome!), after]);
              wanted.push([expected, expected.used]);
            }
          }
          expect(decided).toEqual(wanted);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('gives or costs at most one limit when the clock jumps', () => {
    const simulated = new Simulated([{ name, requestsPerUnit: 5, lengthSeconds: 3600, burst: undefined }]);
    const allowed = [0, 86_400_000, -86_400_000, 7_200_000].map((jump) => {
      simulated.pass(jump);
      return simulated.passing(20);
    });
    expect(allowed).toEqual([5, 5, expect.any(Number), 5]);
    expect(allowed[2]).toBeLessThanOrEqual(5);
  });
});

it.each(['token_bucket', 'sliding_window'] as const)(
  'a %s takes hits back for as long as it says, and at most a millisecond longer',
  (name) => {
    const algorithm = algorithmOf({ name, requestsPerUnit: 5, lengthSeconds: 60, burst: undefined });
    fc.assert(
      fc.property(fc.integer({ min: 1_764_000_000_000_000, max: 1_764_000_060_000_000 }), (now) => {
        const state = { ...algorithm.empty(now), whole: 30_000_000 };
        const { number, rest } = algorithm.windowAt(state, 250)!;
        const taken = [0, rest * 1000, rest * 1000 + 1001].map((passed) => {
          return algorithm.takesBack(1, number!, { ...state, now: now + passed });
        });
        expect(taken).toEqual([true, true, false]);
      }),
    );
  },
);

it('limits with all_or_nothing decide a call as one model for each, all of which it counts on, or none', () => {
  const limit = fc.record({
    name: fc.constantFrom('fixed_window', 'sliding_window', 'token_bucket'),
    requestsPerUnit: fc.integer({ min: 0, max: 9 }),
    lengthSeconds: fc.constantFrom(1, 60, 3600),
    burst: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
  });
  const call = fc.record({
    pause: fc.constantFrom(0, 0, 0, 1, 300, 1000, 7_000, 61_000),
    hits: fc.constantFrom(1, 1, 1, 1, 2, 3, 0, -1),
  });
  fc.assert(
    fc.property(
      fc.array(limit, { minLength: 2, maxLength: 3 }),
      fc.array(call, { maxLength: 30 }),
      anyStart,
      (limits, calls, start) => {
        const simulated = new Simulated(limits, start);
        const models = limits.map(modelOf);
        for (const { pause, hits } of calls) {
          simulated.pass(pause);
          const now = BigInt(simulated.now) * 1000n;
          let expected = models.map((model) => model.decide(BigInt(hits), now));
          const isDenied = expected.some(({ isAllowed }) => !isAllowed);
          // What one has counted is given back when another denies.
          if (isDenied) {
            expected = expected.map((each, index) => {
              return each.isAllowed
                ? (models[index]!.decide(BigInt(-hits), now), models[index]!.decide(0n, now))
                : each;
            });
          }
          const decided = simulated.decide(hits);
          expect(decided.map(({ outcome }) => shown(outcome!))).toEqual(expected);
          expect(decided.map((each) => [each.addedHits, each.countAfter])).toEqual(
            expected.map(({ used }) => [isDenied ? 0 : hits, used]),
          );
        }
      },
    ),
    { numRuns: 300 },
  );
});

it.each([1, 2, 10, 100])('a sliding window of %d lets twice as much less 1 pass in a window, and no more', (most) => {
  const limit = { name: 'sliding_window', requestsPerUnit: most, lengthSeconds: 1, burst: undefined } as const;
  const simulated = new Simulated([limit], 1_764_000_000_999);
  let passed = 0;
  for (let elapsed = 0; elapsed < 1000; elapsed += 1) {
    passed += simulated.passing(most);
    simulated.pass(1);
  }
  expect(passed).toBe(2 * most - 1);
});

it('a token bucket lets its burst and what flows in pass in every interval, and no more', () => {
  const call = fc.tuple(fc.nat({ max: 400 }), fc.integer({ min: 1, max: 4 }));
  const [rates, bursts] = [fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 60 })];
  fc.assert(
    fc.property(rates, bursts, fc.array(call, { minLength: 1, maxLength: 40 }), (rate, burst, calls) => {
      const simulated = new Simulated([{ name: 'token_bucket', requestsPerUnit: rate, lengthSeconds: 1, burst }]);
      const passed: [at: number, hits: number][] = [];
      for (const [pause, hits] of calls) {
        simulated.pass(pause);
        if (simulated.decide(hits)[0]!.outcome!.isAllowed) passed.push([simulated.now, hits]);
      }
      passed.forEach(([from], first) => {
        let sum = 0;
        for (const [to, hits] of passed.slice(first)) {
          sum += hits;
          expect(sum).toBeLessThanOrEqual(burst + (rate * (to - from)) / 1000);
        }
      });
    }),
  );
});

it.each(ALGORITHMS)('a %s lends what is left, and counts what it has lent', (name) => {
  const milliseconds = fc.constantFrom(0, 0.4, 250, 3_000);
  const part = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(anyLimit(name), fc.nat(20), milliseconds, part, (limit, calls, held, share) => {
      const algorithm = algorithmOf(limit);
      let state = algorithm.empty(1_764_000_000_000_000);
      for (let call = 0; call < calls; call += 1) ({ state } = algorithm.decide(state, 1));
      const { remaining, used } = algorithm.decide(state, 0);
      const most = algorithm.reservable(state, held);
      const hits = Math.floor(most * share);
      fc.pre(hits > 0);
      const after = algorithm.reserve(state, hits, held);
      const notLent = [remaining - algorithm.reservable(state, 0), most - hits - algorithm.reservable(after, 0)];
      // A bucket lends in whole microseconds, of which each rounding costs at most two.
      const perMicrosecond = limit.requestsPerUnit / limit.lengthSeconds / 1_000_000;
      const rounded = name === 'token_bucket' ? 1 + Math.ceil(4 * perMicrosecond) : 0;
      expect(Math.min(remaining - most, ...notLent)).toBeGreaterThanOrEqual(0);
      expect(Math.max(...notLent)).toBeLessThanOrEqual(rounded);
      expect(algorithm.decide(after, 0).used).toBeGreaterThanOrEqual(used + hits);
    }),
  );
});

describe.each(ALGORITHMS)('the state of a %s', (name) => {
  const algorithm = algorithmOf({ name, requestsPerUnit: 1, lengthSeconds: 60, burst: undefined });
  const START = 1_764_000_000_000_000;
  const { state } = algorithm.decide(algorithm.empty(START), 1);

  it('is one that a store can have, whatever it comes from', () => {
    const empty = algorithm.empty(START);
    const lent = algorithm.reserve(empty, algorithm.reservable(empty, 0), 0);
    const states = [empty, state, algorithm.at(state, START + 1), lent];
    expect(states.map((each) => algorithm.isPossible(each))).toEqual([true, true, true, true]);
  });

  it('is the same object after a call that changes nothing', () => {
    for (const hits of [0, 1, 2]) expect(algorithm.decide(state, hits).state).toBe(state);
  });

  // That of a fixed window is part of its key.
  it('is that of no hits when its lifetime has passed, and not two seconds before', () => {
    const [before, end] = [2, 0].map((seconds) => START + (algorithm.lifetime - seconds) * 1_000_000);
    if (name === 'fixed_window') return expect(algorithm.lifetime).toBe(60);
    expect(algorithm.at(state, before!)).not.toEqual(algorithm.empty(before!));
    expect(algorithm.at(state, end!)).toEqual(algorithm.empty(end!));
  });
});

it('a token bucket counts what it lends in whole microseconds, rounded up as what it had before', () => {
  const bucket = algorithmOf({ name: 'token_bucket', requestsPerUnit: 7, lengthSeconds: 60, burst: undefined });
  const lent = [0, 1].map((part) => bucket.reserve({ whole: 1000, part, parts: 7, now: 0 }, 2, 0));
  // Each hit takes 8,571,428 4/7 microseconds.
  expect(lent).toMatchObject([{ whole: 17_143_859 }, { whole: 17_143_860 }]);
});

it('a sliding window has the hits of the window into which its clock goes back, and none of the one before', () => {
  const window = algorithmOf({ name: 'sliding_window', requestsPerUnit: 9, lengthSeconds: 60, burst: undefined });
  const now = 1_764_000_000_000_000;
  const state = { previous: 3, current: 2, now };
  expect(window.at(state, now - 1)).toEqual({ previous: 0, current: 3, now: now - 1 });
});

it('a token bucket takes over what a limit of another rate has left, rounded up to a microsecond', () => {
  const bucket = algorithmOf({ name: 'token_bucket', requestsPerUnit: 7, lengthSeconds: 60, burst: undefined });
  const left = [0, 1, 2].map((part) => bucket.at({ whole: 1000, part, parts: 3, now: 0 }, 600));
  expect(left).toEqual([400, 401, 401].map((whole) => ({ whole, part: 0, parts: 7, now: 600 })));
  // No more than it takes this one to be full.
  expect(bucket.at({ whole: 90_000_000, part: 2, parts: 3, now: 0 }, 0)).toMatchObject({ whole: 60_000_000, part: 0 });
  expect(bucket.at({ whole: 500, part: 0, parts: 3, now: 0 }, 600)).toEqual(bucket.empty(600));
});
