import { isDeepStrictEqual } from 'node:util';
import { firstValueFrom } from 'rxjs';
import type { AlgorithmLimit, LimitState, Outcome } from '../../../src/counting/algorithms/algorithm';
import { algorithmOf } from '../../../src/counting/limit';
import type { Counters } from '../../../src/streams/ports/counters';
import fc from '../../support/data/properties';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { limit as limitOf, rulesetOf } from '../../support/data/rules';
import { Code } from '../../../src/limiter/verdict';
import { connected, instance } from '../kvstore/options';
import { modelOf } from './algorithm-models';
import { Service, algorithmTable, clock, rows } from './algorithm-scenarios';
import { storesAtClock } from './rule-limits';
import { operation } from '../../support/data/operations';
import { Batch } from '../../../src/counting/batch';

const { memory, kvstore, redis } = storesAtClock();

it('the table of docs/rules.md has the rows that are played', () => {
  const [documented, played] = rows();
  expect(documented).toEqual(played);
});
// On Redis: counters.test.ts.
describe('in memory', () => {
  algorithmTable(() => memory);
});

let keys = 0;

/** Decides calls in one pipeline window: each of its own, on one key. */
async function decide(
  counters: Counters,
  key: string,
  limit: AlgorithmLimit,
  calls: readonly number[],
): Promise<readonly Outcome[]> {
  const algorithm = algorithmOf(limit);
  const { windowSeconds } = limit;
  const operations = calls.map((hits) => operation(key, hits, { windowSeconds, algorithm }));
  const error: Error[] = [];
  const window = new Batch(
    operations.map((each) => ({
      operations: [each],
      isCancelled: false,
      settle: () => undefined,
      fail: (e: Error) => error.push(e),
    })),
  );
  window.settle(await firstValueFrom(counters.laneOf(operations[0]!).apply(window.operations)));
  if (error.length > 0) throw error[0];
  return operations.map(({ outcome }) => outcome!);
}

function shown({ isAllowed, used, remaining, secondsUntilReset, retryAfterSeconds }: Outcome) {
  return { isAllowed, used, remaining, secondsUntilReset, retryAfterSeconds };
}

/** When a bucket is full; nothing of the kind for windows. */
function fullAt(state: LimitState): number {
  return 'whole' in state ? state.now + state.whole : 0;
}

const anyRate = fc.oneof(
  fc.integer({ min: 0, max: 12 }),
  fc.integer({ min: 1, max: 2 ** 32 - 1 }),
  fc.constantFrom(100, 1000, 7_000, 3_000_000, 2 ** 32 - 1),
);
const anyWindow = fc.constantFrom(1, 60, 300, 3600, 86_400, 31_536_000);
/** Unix milliseconds. */
const anyStart = fc.integer({ min: 0, max: 1000 }).map((step) => 1_764_000_000_000 + step * 977);
const anyShare = fc.constantFrom(0.001, 0.1, 0.5, 0.9, 1, 1.01, 1.5, 3);

describe.each(['token_bucket', 'sliding_window'] as const)('the algorithm %s', (name) => {
  const anyLimit = fc
    .record({ requestsPerUnit: anyRate, windowSeconds: anyWindow, share: anyShare })
    .map(({ requestsPerUnit, windowSeconds: seconds, share: part }): AlgorithmLimit => {
      const most = Math.floor((3_153_600_000 / seconds) * requestsPerUnit);
      const burst = Math.max(1, Math.min(2 ** 32 - 1, most, Math.ceil(requestsPerUnit * part)));
      return {
        name,
        requestsPerUnit,
        windowSeconds: seconds,
        burst: name === 'token_bucket' && requestsPerUnit > 0 ? burst : undefined,
      };
    });
  const call = fc.oneof(
    fc.record({ of: fc.constantFrom(0.01, 0.3, 0.5, 0.9, 1), sign: fc.constantFrom(1, 1, 1, -1) }),
    fc.constantFrom(
      { hits: 1 },
      { hits: 1 },
      { hits: 2 },
      { hits: 0 },
      { hits: -1 },
      { hits: 2 ** 53 - 1 },
      { hits: 1 - 2 ** 53 },
    ),
  );
  const step = fc.record({
    pause: fc.oneof(fc.constantFrom(0, 1, 0.5, 1.5, 2, 3), fc.double({ min: 0, max: 0.2, noNaN: true })),
    calls: fc.array(call, { minLength: 1, maxLength: 6 }),
  });

  it('decides the calls of merged windows in memory, on Redis and in a model of whole numbers alike', async () => {
    await fc.assert(
      fc.asyncProperty(
        anyLimit,
        fc.array(step, { minLength: 1, maxLength: 12 }),
        anyStart,
        async (numbers, steps, start) => {
          const key = `{_property_${(keys += 1)}_}${name}`;
          const model = modelOf(numbers);
          const { capacity } = algorithmOf(numbers);
          clock.now = start;
          for (const { pause, calls } of steps) {
            clock.now += Math.floor(pause * numbers.windowSeconds * 1000);
            const hits = calls.map((each) => ('hits' in each ? each.hits : each.sign * Math.ceil(each.of * capacity)));
            const expected = hits.map((each) => model.decide(BigInt(each), BigInt(clock.now) * 1000n));
            const [inMemory, onRedis] = await Promise.all([
              decide(memory, key, numbers, hits),
              decide(kvstore(), key, numbers, hits),
            ]);
            expect(inMemory.map(shown)).toEqual(expected);
            expect(onRedis.map(shown)).toEqual(expected);
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  it('on Redis takes over what a limit of another rate has left, as in memory, at any microsecond', async () => {
    const other = fc.integer({ min: 0, max: 1 });
    const steps = fc.array(fc.tuple(step, other), { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(anyLimit, anyLimit, steps, anyStart, async (one, second, played, start) => {
        const key = `{_changed_${(keys += 1)}_}${name}`;
        // Windows of other lengths have other keys.
        const limits = [one, name === 'token_bucket' ? second : { ...second, windowSeconds: one.windowSeconds }];
        let stored: LimitState | undefined;
        clock.now = start + 0.123 * (start % 1000);
        for (const [{ pause, calls }, index] of played) {
          const algorithm = algorithmOf(limits[index]!);
          clock.now += pause * limits[index]!.windowSeconds * 1000;
          const now = Math.round(clock.now * 1000);
          const before = stored === undefined ? algorithm.empty(now) : algorithm.at(stored, now);
          if (stored !== undefined && fullAt(before) < fullAt(stored)) stored = before;
          let state = before;
          const hits = calls.map((each) =>
            'hits' in each ? each.hits : each.sign * Math.ceil(each.of * algorithm.capacity),
          );
          const expected = hits.map((each) => {
            const outcome = algorithm.decide(state, each);
            state = outcome.state;
            return shown(outcome);
          });
          // What is taken and given back in one window leaves the key, with the parts of its rate, as it was.
          if (!isDeepStrictEqual(state, before)) stored = state;
          expect((await decide(kvstore(), key, limits[index]!, hits)).map(shown)).toEqual(expected);
        }
      }),
      { numRuns: 150 },
    );
  });

  const ofAnHour = { name, requestsPerUnit: 5, windowSeconds: 3600, burst: undefined };
  it.each<[where: string, store: () => Counters]>([
    ['in memory', () => memory],
    ['on Redis', kvstore],
  ])('%s gives or costs at most one limit when the clock jumps', async (_, store) => {
    const key = `{_jump_${(keys += 1)}_}${name}`;
    async function allowed(): Promise<number> {
      const outcomes = await decide(
        store(),
        key,
        ofAnHour,
        Array.from({ length: 20 }, () => 1),
      );
      return outcomes.filter(({ isAllowed }) => isAllowed).length;
    }
    clock.now = 1_764_000_000_000;
    expect(await allowed()).toBe(5);
    clock.now += 86_400_000;
    expect(await allowed()).toBe(5);
    clock.now -= 86_400_000;
    expect(await allowed()).toBeLessThanOrEqual(5);
    clock.now += 7_200_000;
    expect(await allowed()).toBe(5);
  });
});

it.each([1, 2, 10, 100])(
  'a sliding window of %d lets twice as much less 1 pass in a window, and no more',
  async (requestsPerUnit) => {
    const key = `{_most_${requestsPerUnit}_}sliding_window`;
    const limit = { name: 'sliding_window', requestsPerUnit, windowSeconds: 1, burst: undefined } as const;
    let passed = 0;
    clock.now = 1_764_000_000_999;
    for (let elapsed = 0; elapsed < 1000; elapsed += 1) {
      const outcomes = await decide(
        memory,
        key,
        limit,
        Array.from({ length: requestsPerUnit }, () => 1),
      );
      passed += outcomes.filter(({ isAllowed }) => isAllowed).length;
      clock.now += 1;
    }
    expect(passed).toBe(2 * requestsPerUnit - 1);
  },
);

it('a token bucket lets its burst and what flows in pass in every interval, and no more', async () => {
  const calls = fc.array(fc.tuple(fc.nat({ max: 400 }), fc.integer({ min: 1, max: 4 })), {
    minLength: 1,
    maxLength: 40,
  });
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 1, max: 60 }),
      calls,
      async (rate, burst, made) => {
        const key = `{_bound_${(keys += 1)}_}token_bucket`;
        const limit = { name: 'token_bucket', requestsPerUnit: rate, windowSeconds: 1, burst } as const;
        const passed: [at: number, hits: number][] = [];
        for (const [pause, hits] of made) {
          clock.now += pause;
          const [outcome] = await decide(memory, key, limit, [hits]);
          if (outcome!.isAllowed) passed.push([clock.now, hits]);
        }
        passed.forEach(([from], first) => {
          let sum = 0;
          for (const [to, hits] of passed.slice(first)) {
            sum += hits;
            expect(sum).toBeLessThanOrEqual(burst + (rate * (to - from)) / 1000);
          }
        });
      },
    ),
  );
});

describe('on Redis with its own clock', () => {
  it.each(['token_bucket', 'sliding_window'] as const)(
    'two instances whose clocks are 5 s apart share a %s, and exceed it by nothing',
    async (algorithm) => {
      const real = await connected(instance(redis().address));
      const ruleset = rulesetOf(`apart-${algorithm}`, { key: 'k', rateLimit: limitOf(50, 'YEAR', { algorithm }) });
      using early = new Service(ruleset, real, {}, () => Date.now());
      using late = new Service(ruleset, real, {}, () => Date.now() - 5000);
      const allowed = [0, 0];
      for (let call = 0; call < 120; call += 1) {
        const { overallCode } = await [early, late][call % 2]!.decide(`apart-${algorithm}`, ['k=x']);
        if (overallCode === Code.OK) allowed[call % 2]! += 1;
      }
      expect(allowed).toEqual([25, 25]);
    },
  );

  it('keys have an expiry that is renewed while they are used, and are gone when nothing counts', async () => {
    const real = await connected(instance(redis().address), { expirationJitterMaxSeconds: 0 });
    const client = redis().control;
    const bucket = { name: 'token_bucket', requestsPerUnit: 1, windowSeconds: 60, burst: 2 } as const;
    const window = { name: 'sliding_window', requestsPerUnit: 4, windowSeconds: 60, burst: undefined } as const;
    await decide(real, '{_ttl_}b', bucket, [1, 1, 1]);
    await decide(real, '{_ttl_}s', window, [1, 1]);
    const stored = (await client.keys('{_ttl_}*')).toSorted();
    expect(stored).toEqual(['{_ttl_}b', expect.stringMatching(/^{_ttl_}s_[01]$/)]);
    for (const key of stored) {
      const seconds = await client.ttl(key);
      expect(seconds).toBeGreaterThan(60);
      expect(seconds).toBeLessThanOrEqual(141);
    }
  });

  it('calls fail, with the reason, where scripts are rejected', async () => {
    const directives = ['--user', 'default', 'on', 'nopass', '~*', '&*', '+@all', '-@scripting'];
    await using restricted = await RedisProcess.start({ directives });
    const real = await connected(instance(restricted.address));
    const bucket = { name: 'token_bucket', requestsPerUnit: 1, windowSeconds: 60, burst: 2 } as const;
    await expect(decide(real, '{_rejected_}b', bucket, [1])).rejects.toMatchObject({
      code: 'store_failed',
      message: 'the limit has an algorithm, which needs scripts, and the counter store rejects them',
    });
  });
});
