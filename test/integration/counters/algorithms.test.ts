import { firstValueFrom } from 'rxjs';
import { Code } from '../../../src/limiter/verdict';
import { type KvstoreCounters, kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { descriptor } from '../../support/data/requests';
import { limit as limitOf, rulesetOf } from '../../support/data/rules';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { connected, instance, options } from '../kvstore/options';
import { Service } from './rule-scenarios';
import { clock } from './scenarios';

// What the algorithms are: test/counting/algorithms.test.ts. What the script does: ../kvstore/count-script.test.ts.
// What calls with them are given on every store: scenarios.ts.

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

  it('calls fail, with the reason, where scripts are rejected', async () => {
    const directives = ['--user', 'default', 'on', 'nopass', '~*', '+@all', '-@scripting'];
    await using restricted = await RedisProcess.start({ directives });
    const real = await connected(instance(restricted.address));
    const ruleset = rulesetOf('rejected', { key: 'k', rateLimit: limitOf(1, 'MINUTE', { algorithm: 'token_bucket' }) });
    using service = new Service(ruleset, real);
    await expect(service.decide('rejected', ['k=x'])).rejects.toMatchObject({
      code: 'store_failed',
      message: 'the limit has an algorithm, which needs scripts, and the counter store rejects them',
    });
  });
});
