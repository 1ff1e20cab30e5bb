import { firstValueFrom } from 'rxjs';
import { algorithmOf } from '../../../src/counting/limit';
import type { LimiterOptions } from '../../../src/limiter/decision';
import { Code } from '../../../src/limiter/verdict';
import type { RateLimitConfig } from '../../../src/rules/rule-config';
import { unitByName } from '../../../src/rules/unit';
import { type BatchCall, Batch } from '../../../src/counting/batch';
import fc from '../../support/data/properties';
import { descriptor } from '../../support/data/requests';
import { type RuleSketch, limit, rulesetOf } from '../../support/data/rules';
import { Service, clock } from './algorithm-scenarios';
import {
  type Answer,
  LONG,
  type Model,
  SHORT,
  answerOf,
  freshDomain,
  modelOfLimit,
  mostRestrictive,
  playRule,
  storesAtClock,
} from './rule-limits';
import { allOrNothingGroup, operation } from '../../support/data/operations';

const { memory, kvstore, redis } = storesAtClock();
const stores = [
  ['in memory', () => memory],
  ['on Redis', kvstore],
] as const;

/** A call of so many hits; negative ones are given back. */
function calling(count: number) {
  return descriptor('k=x', { hitsAddend: Math.abs(count), isNegativeHits: count < 0 });
}

/** A call counts on all limits or on none: what one has counted is given back when another denies. */
function modelOfRule(limits: readonly RateLimitConfig[]): Model {
  const models = limits.map((each) => modelOfLimit(each, true));
  return (hits, now) => {
    const answers = models.map((model) => model(hits, now));
    const isDenied = answers.some(([isAllowed]) => !isAllowed);
    if (isDenied) answers.forEach(([isAllowed], index) => isAllowed && models[index]!(-hits, now));
    return mostRestrictive(answers);
  };
}

it('one to three limits decide a call together as a model does, in memory and on Redis, also in merged windows', async () => {
  const anyLimit = fc.record({
    algorithm: fc.constantFrom(undefined, 'sliding_window', 'token_bucket'),
    requestsPerUnit: fc.integer({ min: 0, max: 9 }),
    burst: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
  });
  const anyHits = fc.constantFrom(1, 1, 1, 1, 2, 3, 0, -1);
  const anyTurn = fc.record({
    pause: fc.constantFrom(0, 0, 1, 300, 1000, 7_000, 61_000),
    calls: fc.array(anyHits, { minLength: 1, maxLength: 5 }),
  });
  const limits = fc.array(anyLimit, { minLength: 1, maxLength: 3 });
  let played = 0;
  await fc.assert(
    fc.asyncProperty(limits, fc.array(anyTurn, { minLength: 1, maxLength: 15 }), async (sketches, turns) => {
      const rateLimits = sketches.map(({ requestsPerUnit, algorithm, burst }, index) =>
        limit(requestsPerUnit, (['MINUTE', 'SECOND', 'HOUR'] as const)[index]!, {
          algorithm,
          burst: algorithm === 'token_bucket' && requestsPerUnit > 0 ? burst : undefined,
        }),
      );
      const domain = freshDomain();
      const ruleset = rulesetOf(domain, { key: 'k', rateLimits, allOrNothing: true });
      const services = stores.map(([, store]) => new Service(ruleset, store()));
      const model = modelOfRule(rateLimits);
      clock.now = 1_764_000_000_000 + (played += 1) * 977;
      for (const { pause, calls } of turns) {
        clock.now += pause;
        const sent = calls.map(calling);
        // Those of a turn of the event loop are merged for Redis.
        const answers = await Promise.all(
          services.map((service) => Promise.all(sent.map((each) => service.decide(domain, [each])))),
        );
        const expected = calls.map((hits) => model(hits, clock.now));
        expect(answers.map((verdicts) => verdicts.map(answerOf))).toEqual([expected, expected]);
      }
      for (const service of services) service[Symbol.dispose]();
    }),
    { numRuns: 150 },
  );
});

describe.each(stores)('a rule with all_or_nothing %s', (_, store) => {
  function play(
    rule: Partial<RuleSketch>,
    steps: Parameters<typeof playRule>[2],
    limiter: Partial<LimiterOptions> = {},
  ) {
    return playRule(store(), { rule: { allOrNothing: true, ...rule }, limiter }, steps);
  }
  /** Calls of one second, of which two are allowed, and the next second. */
  const SECOND = ['k=x', 'k=x', 'k=x', 'k=x', 1];

  it('counts a call that one limit denies on none, also not on that one', async () => {
    const { answers, verdicts, statistics } = await play({}, [...SECOND, ...SECOND, 'k=x', 'k=x']);
    expect(answers).toEqual([
      [true, 1, 1, 2],
      [true, 0, 1, 2],
      [false, 0, 1, 2],
      [false, 0, 1, 2],
      [true, 1, 1, 2],
      [true, 0, 1, 2],
      [false, 0, 1, 2],
      [false, 0, 1, 2],
      [true, 0, 298, 5],
      [false, 0, 298, 5],
    ]);
    expect(verdicts.at(-1)!.responseHeaders.map(({ value }) => value)).toEqual(['5, 2;w=1, 5;w=300', '0', '298']);
    expect(statistics).toEqual({
      'k.second.total_hits': 10,
      'k.second.within_limit': 5,
      'k.second.over_limit': 4,
      'k.second.near_limit': 2,
      'k.5minute.total_hits': 10,
      'k.5minute.within_limit': 5,
      'k.5minute.over_limit': 1,
      // That of the fifth call that is counted.
      'k.5minute.near_limit': 1,
    });
  });

  it('counts a call with all of its hits or with none, and shows what is left', async () => {
    const { answers } = await play({}, [
      calling(1),
      calling(2),
      calling(0),
      calling(1),
      1,
      calling(2),
      calling(2),
      1,
      calling(2),
    ]);
    expect(answers).toEqual([
      [true, 1, 1, 2],
      [false, 1, 1, 2],
      [true, 1, 1, 2],
      [true, 0, 1, 2],
      [true, 0, 1, 2],
      // Both limits deny it: the one with the longer reset is shown.
      [false, 1, 299, 5],
      [false, 1, 298, 5],
    ]);
  });

  it('gives back hits at each limit, down to none', async () => {
    const { answers, statistics } = await play({}, [
      calling(2),
      calling(-1),
      calling(1),
      calling(1),
      calling(-9),
      calling(2),
    ]);
    expect(answers.map(([isAllowed, remaining]) => [isAllowed, remaining])).toEqual([
      [true, 0],
      [true, 1],
      [true, 0],
      [false, 0],
      [true, 2],
      [true, 0],
    ]);
    expect(statistics).toMatchObject({ 'k.second.total_negative_hits': 10, 'k.5minute.total_negative_hits': 10 });
  });

  it('does not count what is over a limit in shadow mode either', async () => {
    const { answers, statistics } = await play({ shadowMode: true }, [...SECOND, ...SECOND, 'k=x', 'k=x']);
    expect(answers.every(([isAllowed]) => isAllowed)).toBe(true);
    expect(statistics).toMatchObject({ 'k.second.shadow_mode': 4, 'k.5minute.shadow_mode': 1 });
  });

  it('reads the other limits when one is over in the local cache, and caches each limit until it is free', async () => {
    const cached = await play({}, [...SECOND, 'k=x', ...SECOND, ...SECOND], { localCacheBytes: 100_000 });
    expect(cached.answers.map(([isAllowed]) => isAllowed)).toEqual([
      true,
      true,
      false,
      false,
      true,
      true,
      false,
      false,
      false,
      true,
      false,
      false,
      false,
    ]);
    expect(cached.statistics).toMatchObject({
      'k.second.over_limit_with_local_cache': 3,
      'k.5minute.over_limit_with_local_cache': 2,
    });
  });

  it('is replaced limit by limit, and by a limit in the request as a whole', async () => {
    const { answers } = await play({}, ['k=x other=y', 'k=x other=y', 'k=x other=y', 'k=x']);
    expect(answers.map(([, remaining, , requestsPerUnit]) => [remaining, requestsPerUnit])).toEqual([
      [4, 5],
      [3, 5],
      [2, 5],
      [1, 2],
    ]);
    const sent = descriptor('k=x', { limit: { requestsPerUnit: 100, unit: unitByName('HOUR') } });
    const overridden = await play({}, [sent, sent]);
    expect(overridden.answers.map(([, remaining]) => remaining)).toEqual([99, 98]);
  });

  it('is neither implied by STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT nor changed by it', async () => {
    const stop = { stopIncrementWhenOverLimit: true };
    const { answers } = await play({}, [...SECOND, ...SECOND, 'k=x', 'k=x'], stop);
    const second = [true, true, false, false];
    expect(answers.map(([isAllowed]) => isAllowed)).toEqual([...second, ...second, true, false]);
    // The other descriptor of the call is counted by itself.
    const beside = await play(
      { rateLimits: [limit(2, 'SECOND')] },
      ['k=x other=y', 'k=x other=y', 'k=x other=y'],
      stop,
    );
    expect(beside.verdicts.map(({ statuses }) => statuses[1]!.limitRemaining)).toEqual([8, 7, 6]);
  });

  it('counts twice for a descriptor that a call has twice', async () => {
    const { verdicts } = await play({ rateLimits: [LONG] }, ['k=x k=x', 'k=x k=x', 'k=x k=x', 'k=x']);
    expect(verdicts.map(({ statuses }) => statuses.map(({ limitRemaining }) => limitRemaining))).toEqual([
      [4, 3],
      [2, 1],
      [0, 0],
      [0],
    ]);
  });

  it('counts a window of the calendar beside others', async () => {
    const day = limit(3, 'DAY', { calendar: { timeZone: 'Asia/Tokyo', startsOn: 1 } });
    const { answers } = await play({ rateLimits: [SHORT, day] }, ['k=x', 'k=x', 'k=x', 1, 'k=x', 1, 'k=x']);
    const untilMidnight = 86_400 - ((clock.now / 1000 + 9 * 3600) % 86_400);
    expect(answers.slice(2)).toEqual([
      [false, 0, 1, 2],
      [true, 0, untilMidnight + 1, 3],
      [false, 0, untilMidnight, 3],
    ]);
  });

  it('begins to count at 0 when it is switched on, at fixed windows', async () => {
    const domain = freshDomain();
    const answers: Answer[] = [];
    for (const allOrNothing of [false, true, false]) {
      const ruleset = rulesetOf(domain, { key: 'k', rateLimits: [LONG], allOrNothing });
      using service = new Service(ruleset, store());
      for (let call = 0; call < 2; call += 1) answers.push(answerOf(await service.decide(domain, ['k=x'])));
    }
    expect(answers.map(([, remaining]) => remaining)).toEqual([4, 3, 4, 3, 2, 1]);
  });
});

describe('in a pipeline window', () => {
  const algorithms = [
    algorithmOf({ name: 'token_bucket', requestsPerUnit: 3, windowSeconds: 60, burst: undefined }),
    algorithmOf({ name: 'fixed_window', requestsPerUnit: 9, windowSeconds: 1, burst: undefined }),
  ];

  /** A call on these keys, with one limit each; `isGuarded` says whether it is all or nothing. */
  function callOn(keys: readonly string[], count: number, isGuarded = true): BatchCall {
    const group = isGuarded ? allOrNothingGroup() : undefined;
    const operations = keys.map((key, index) => {
      const algorithm = algorithms[index]!;
      return operation(key, count, { windowSeconds: algorithm.windowSeconds, algorithm, group });
    });
    return { operations, isCancelled: false, settle: () => undefined, fail: (error) => expect(error).toBeUndefined() };
  }

  async function settled(calls: readonly BatchCall[]): Promise<Batch> {
    const batch = new Batch(calls);
    batch.settle(await firstValueFrom(kvstore().laneOf(batch.operations[0]!).apply(batch.operations)));
    return batch;
  }

  function allowed(calls: readonly BatchCall[]) {
    return calls.map(({ operations }) => operations.map(({ outcome }) => outcome!.isAllowed));
  }

  it('equal limits of different calls are one step, in which each call has its own verdict', async () => {
    const keys = ['{_merged_}b', '{_merged_}f'];
    const calls = [1, 1, 2, 1, 1].map((count) => callOn(keys, count));
    const { operations: batch } = await settled(calls);
    expect(batch.map(({ key, calls: merged }) => [key, merged])).toEqual(keys.map((key) => [key, [1, 1, 2, 1, 1]]));
    expect(allowed(calls)).toEqual([
      [true, true],
      [true, true],
      [false, true],
      [true, true],
      [false, true],
    ]);
    expect(calls.map(({ operations: [bucket, window] }) => [bucket!.after, window!.after])).toEqual([
      [1, 1],
      [2, 2],
      [2, 2],
      [3, 3],
      [3, 3],
    ]);
    // A call that does not count has none.
    expect(calls.map(({ operations: [bucket] }) => bucket!.hits)).toEqual([1, 1, 0, 1, 0]);
  });

  it('calls of which one key differs, or which are not all or nothing, are steps of their own', async () => {
    const calls = [
      callOn(['{_own_}b', '{_own_}f1'], 1),
      callOn(['{_own_}b', '{_own_}f2'], 1),
      callOn(['{_own_}b'], 2, false),
      callOn(['{_own_}b', '{_own_}f2'], 1),
      callOn(['{_own_}b'], 1),
    ];
    const { operations: batch } = await settled(calls);
    expect(batch.map(({ key }) => key)).toEqual(calls.flatMap(({ operations }) => operations.map(({ key }) => key)));
    expect(allowed(calls)).toEqual([[true, true], [true, true], [false], [true, true], [false]]);
  });
});

it('keys on Redis have an expiry, and are as before after a call that is denied', async () => {
  const domain = freshDomain();
  const rateLimits = [
    limit(1, 'MINUTE'),
    limit(5, 'HOUR', { algorithm: 'token_bucket' }),
    limit(5, 'DAY', { algorithm: 'sliding_window' }),
  ];
  using service = new Service(rulesetOf(domain, { key: 'k', rateLimits, allOrNothing: true }), kvstore());
  clock.now = 1_764_000_000_000;
  async function stored() {
    const keys = (await redis().control.keys(`*${domain}*`)).toSorted();
    return Promise.all(keys.map(async (key) => [key, await redis().control.get(key)] as const));
  }
  await service.decide(domain, ['k=x']);
  const before = await stored();
  expect(before.map(([key]) => key)).toEqual([
    `{_${domain}_k_x_}all_or_nothing_60_1764000000`,
    expect.stringMatching(/sliding_window_86400_[01]$/),
    `{_${domain}_k_x_}token_bucket_3600`,
  ]);
  for (const [key] of before) expect(await redis().control.ttl(key)).toBeGreaterThan(0);
  for (let call = 0; call < 3; call += 1) {
    const { overallCode } = await service.decide(domain, ['k=x']);
    expect(overallCode).toBe(Code.OVER_LIMIT);
    expect(await stored()).toEqual(before);
  }
  // A denied call on keys that do not exist creates none.
  await service.decide(domain, [descriptor('k=y', { hitsAddend: 2 })]);
  expect(await redis().control.keys(`*${domain}_k_y*`)).toEqual([]);
});

it('a key that is no counter fails the calls of its rule, and changes no other key', async () => {
  const domain = freshDomain();
  const rateLimits = [limit(5, 'MINUTE'), limit(5, 'HOUR', { algorithm: 'token_bucket' })];
  using service = new Service(rulesetOf(domain, { key: 'k', rateLimits, allOrNothing: true }), kvstore());
  await redis().control.hset(`{_${domain}_k_x_}token_bucket_3600`, 'a', 'b');
  const calls = [service.decide(domain, ['k=x']), service.decide(domain, ['k=y'])];
  await expect(calls[0]).rejects.toMatchObject({ code: 'store_failed' });
  expect((await calls[1])?.overallCode).toBe(Code.OK);
  expect(await redis().control.keys(`*${domain}_k_x_}all*`)).toEqual([]);
});
