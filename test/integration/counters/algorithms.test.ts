import { isDeepStrictEqual } from 'node:util';
import { firstValueFrom } from 'rxjs';
import type { AlgorithmLimit, LimitState, Outcome } from '../../../src/counting/algorithms/algorithm';
import { algorithmOf } from '../../../src/counting/limit';
import { Code } from '../../../src/limiter/verdict';
import { type KvstoreCounters, kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import type { Counters } from '../../../src/streams/ports/counters';
import { anyLimit, anyStart, anyStep, hitsOf, modelOf, shown } from '../../counting/algorithm-models';
import { LaneClient } from '../../support/clients/lane-client';
import { operation } from '../../support/data/operations';
import fc from '../../support/data/properties';
import { descriptor } from '../../support/data/requests';
import { limit as limitOf, rulesetOf } from '../../support/data/rules';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { connected, instance, options } from '../kvstore/options';
import { Service } from './rule-scenarios';
import { clock } from './scenarios';

// What the algorithms are: test/counting/algorithms.test.ts. What calls with them are given on every store:
// scenarios.ts.

let redis: RedisProcess;
/** At the time of {@link clock}. */
let kvstore: KvstoreCounters;
beforeAll(async () => {
  redis = await RedisProcess.start();
  kvstore = kvstoreCounters(options(instance(redis.address), { now: () => Math.round(clock.now * 1000) }));
  await firstValueFrom(kvstore.ready$);
});
afterAll(async () => {
  await kvstore.close();
  await redis[Symbol.asyncDispose]();
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
  const operations = calls.map((hits) => operation(key, hits, { lengthSeconds: limit.lengthSeconds, algorithm }));
  using client = new LaneClient(counters);
  await Promise.all(operations.map((each) => client.call([each])));
  return operations.map(({ outcome }) => outcome!);
}

/** When a bucket is full; nothing of the kind for windows. */
function fullAt(state: LimitState): number {
  return 'whole' in state ? state.now + state.whole : 0;
}

describe.each(['token_bucket', 'sliding_window'] as const)('the algorithm %s on Redis', (name) => {
  it('decides the calls of merged windows as a model of whole numbers', async () => {
    const steps = fc.array(anyStep, { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(anyLimit(name), steps, anyStart, async (limit, played, start) => {
        const key = `{_property_${(keys += 1)}_}${name}`;
        const model = modelOf(limit);
        clock.now = start;
        for (const step of played) {
          clock.now += Math.floor(step.pause * limit.lengthSeconds * 1000);
          const hits = hitsOf(step, limit);
          const expected = hits.map((each) => model.decide(BigInt(each), BigInt(clock.now) * 1000n));
          expect((await decide(kvstore, key, limit, hits)).map(shown)).toEqual(expected);
        }
      }),
      { numRuns: 150 },
    );
  });

  it('takes over what a limit of another rate has left, as in memory, at any microsecond', async () => {
    const other = fc.integer({ min: 0, max: 1 });
    const steps = fc.array(fc.tuple(anyStep, other), { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(anyLimit(name), anyLimit(name), steps, anyStart, async (one, second, played, start) => {
        const key = `{_changed_${(keys += 1)}_}${name}`;
        // Windows of other lengths have other keys.
        const limits = [one, name === 'token_bucket' ? second : { ...second, lengthSeconds: one.lengthSeconds }];
        let stored: LimitState | undefined;
        clock.now = start + 0.123 * (start % 1000);
        for (const [step, index] of played) {
          const limit = limits[index]!;
          const algorithm = algorithmOf(limit);
          clock.now += step.pause * limit.lengthSeconds * 1000;
          const now = Math.round(clock.now * 1000);
          const before = stored === undefined ? algorithm.empty(now) : algorithm.at(stored, now);
          if (stored !== undefined && fullAt(before) < fullAt(stored)) stored = before;
          let state = before;
          const hits = hitsOf(step, limit);
          const expected = hits.map((each) => {
            const outcome = algorithm.decide(state, each);
            state = outcome.state;
            return shown(outcome);
          });
          // What is taken and given back in one window leaves the key, with the parts of its rate, as it was.
          if (!isDeepStrictEqual(state, before)) stored = state;
          expect((await decide(kvstore, key, limit, hits)).map(shown)).toEqual(expected);
        }
      }),
      { numRuns: 150 },
    );
  });

  it('gives or costs at most one limit when the clock jumps', async () => {
    const key = `{_jump_}${name}`;
    const ofAnHour = { name, requestsPerUnit: 5, lengthSeconds: 3600, burst: undefined };
    clock.now = 1_764_000_000_000;
    const allowed: number[] = [];
    for (const jump of [0, 86_400_000, -86_400_000, 7_200_000]) {
      clock.now += jump;
      const outcomes = await decide(kvstore, key, ofAnHour, new Array<number>(20).fill(1));
      allowed.push(outcomes.filter(({ isAllowed }) => isAllowed).length);
    }
    expect(allowed).toEqual([5, 5, expect.any(Number), 5]);
    expect(allowed[2]).toBeLessThanOrEqual(5);
  });
});

describe('the limits of a rule on Redis', () => {
  async function keysWith(text: string): Promise<readonly string[]> {
    return (await redis.control.keys(`*${text}*`)).toSorted();
  }

  it('are all in the main store, with one hash tag', async () => {
    const rateLimits = [limitOf(2, 'SECOND'), limitOf(5, 'MINUTE'), limitOf(9, 'HOUR', { algorithm: 'token_bucket' })];
    await using perSecond = await RedisProcess.start();
    const both = await connected(instance(redis.address), { perSecond: instance(perSecond.address) });
    using service = new Service(rulesetOf('several', { key: 'k', rateLimits }), both, { cacheKeyPrefix: 'p:' });
    clock.now = 1_764_000_000_000;
    await service.decide('several', ['k={x}']);
    const tag = 'p:{_several_k_{x}_}';
    expect(await keysWith('several')).toEqual([
      `${tag}fixed_window_1_1764000000`,
      `${tag}fixed_window_60_1764000000`,
      `${tag}token_bucket_3600`,
    ]);
    expect(await perSecond.control.keys('*')).toEqual([]);
  });

  it('have, with all_or_nothing, keys with an expiry, which are as before after a call that is denied', async () => {
    const rateLimits = [
      limitOf(1, 'MINUTE'),
      limitOf(5, 'HOUR', { algorithm: 'token_bucket' }),
      limitOf(5, 'DAY', { algorithm: 'sliding_window' }),
    ];
    using service = new Service(rulesetOf('together', { key: 'k', rateLimits, allOrNothing: true }), kvstore);
    clock.now = 1_764_000_000_000;
    const { control } = redis;
    async function stored() {
      const found = await keysWith('together');
      return Promise.all(found.map(async (key) => [key, await control.get(key)] as const));
    }
    await service.decide('together', ['k=x']);
    const before = await stored();
    expect(before.map(([key]) => key)).toEqual([
      '{_together_k_x_}all_or_nothing_60_1764000000',
      expect.stringMatching(/sliding_window_86400_[01]$/),
      '{_together_k_x_}token_bucket_3600',
    ]);
    for (const [key] of before) expect(await control.ttl(key)).toBeGreaterThan(0);
    for (let call = 0; call < 3; call += 1) {
      const { overallCode } = await service.decide('together', ['k=x']);
      expect(overallCode).toBe(Code.OVER_LIMIT);
      expect(await stored()).toEqual(before);
    }
    // A denied call on keys that do not exist creates none.
    await service.decide('together', [descriptor('k=y', { hitsAddend: 2 })]);
    expect(await keysWith('together_k_y')).toEqual([]);
  });

  it('fail its calls, with all_or_nothing, when one of their keys is no counter, and change no other key', async () => {
    const rateLimits = [limitOf(5, 'MINUTE'), limitOf(5, 'HOUR', { algorithm: 'token_bucket' })];
    using service = new Service(rulesetOf('broken', { key: 'k', rateLimits, allOrNothing: true }), kvstore);
    await redis.control.hset('{_broken_k_x_}token_bucket_3600', 'a', 'b');
    const calls = [service.decide('broken', ['k=x']), service.decide('broken', ['k=y'])];
    await expect(calls[0]).rejects.toMatchObject({ code: 'store_failed' });
    expect((await calls[1])?.overallCode).toBe(Code.OK);
    expect(await keysWith('broken_k_x_}all')).toEqual([]);
  });
});

describe('on Redis with its own clock', () => {
  it.each(['token_bucket', 'sliding_window'] as const)(
    'two instances whose clocks are 5 s apart share a %s, and exceed it by nothing',
    async (algorithm) => {
      const real = await connected(instance(redis.address));
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
    const real = await connected(instance(redis.address), { expirationJitterMaxSeconds: 0 });
    const client = redis.control;
    const bucket = { name: 'token_bucket', requestsPerUnit: 1, lengthSeconds: 60, burst: 2 } as const;
    const window = { name: 'sliding_window', requestsPerUnit: 4, lengthSeconds: 60, burst: undefined } as const;
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
    const directives = ['--user', 'default', 'on', 'nopass', '~*', '+@all', '-@scripting'];
    await using restricted = await RedisProcess.start({ directives });
    const real = await connected(instance(restricted.address));
    const bucket = { name: 'token_bucket', requestsPerUnit: 1, lengthSeconds: 60, burst: 2 } as const;
    await expect(decide(real, '{_rejected_}b', bucket, [1])).rejects.toMatchObject({
      code: 'store_failed',
      message: 'the limit has an algorithm, which needs scripts, and the counter store rejects them',
    });
  });
});
