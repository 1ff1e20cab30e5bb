import type { LimiterOptions } from '../../../src/limiter/decision';
import { Offenders } from '../../../src/limiter/offenders';
import { Code } from '../../../src/limiter/verdict';
import { limitsOf } from '../../../src/rules/rule-config';
import { unitByName } from '../../../src/rules/unit';
import fc from '../../support/data/properties';
import { descriptor } from '../../support/data/requests';
import { type RuleSketch, limit, ruleConfig, rulesetOf } from '../../support/data/rules';
import { Service, clock } from './algorithm-scenarios';
import { SHORT, answerOf, freshDomain, modelOfLimit, mostRestrictive, playRule, storesAtClock } from './rule-limits';

const { memory, kvstore, redis, perSecond } = storesAtClock({ hasPerSecond: true });
const stores = [
  ['in memory', () => memory],
  ['on Redis', kvstore],
] as const;

it('two limits of a rule answer as two models do, in memory and on Redis', async () => {
  const anyAlgorithm = fc.constantFrom(undefined, 'sliding_window', 'token_bucket');
  const anyLimit = fc.record({ algorithm: anyAlgorithm, requestsPerUnit: fc.integer({ min: 0, max: 9 }) });
  const anyCall = fc.record({
    pause: fc.constantFrom(0, 0, 1, 300, 1000, 7_000, 61_000),
    hits: fc.constantFrom(1, 1, 1, 2, 3, 0, -1),
  });
  const calls = fc.array(anyCall, { minLength: 1, maxLength: 20 });
  let played = 0;
  await fc.assert(
    fc.asyncProperty(anyLimit, anyLimit, calls, async (one, other, made) => {
      const rateLimits = [
        limit(one.requestsPerUnit, 'MINUTE', { algorithm: one.algorithm }),
        limit(other.requestsPerUnit, 'SECOND', { algorithm: other.algorithm }),
      ];
      const domain = freshDomain();
      const ruleset = rulesetOf(domain, { key: 'k', rateLimits });
      const services = stores.map(([, store]) => new Service(ruleset, store()));
      const models = rateLimits.map((each) => modelOfLimit(each, false));
      clock.now = 1_764_000_000_000 + (played += 1) * 977;
      for (const { pause, hits } of made) {
        clock.now += pause;
        const sent = descriptor('k=x', { hitsAddend: Math.abs(hits), isNegativeHits: hits < 0 });
        const answers = await Promise.all(services.map((service) => service.decide(domain, [sent])));
        const expected = mostRestrictive(models.map((model) => model(hits, clock.now)));
        expect(answers.map(answerOf)).toEqual([expected, expected]);
      }
      for (const service of services) service[Symbol.dispose]();
    }),
    { numRuns: 150 },
  );
});

describe.each(stores)('a rule with rate_limits %s', (_, store) => {
  function play(
    rule: Partial<RuleSketch>,
    steps: Parameters<typeof playRule>[2],
    limiter: Partial<LimiterOptions> = {},
  ) {
    return playRule(store(), { rule, limiter }, steps);
  }

  it('counts each limit, and shows the most restrictive with the windows of all', async () => {
    const { verdicts, answers, statistics } = await play({}, ['k=x', 'k=x', 'k=x', 1, 'k=x', 1, 'k=x', 1, 'k=x']);
    expect(answers).toEqual([
      [true, 1, 1, 2],
      [true, 0, 1, 2],
      [false, 0, 1, 2],
      [true, 1, 1, 2],
      [true, 0, 298, 5],
      [false, 0, 297, 5],
    ]);
    expect(verdicts.at(-1)!.responseHeaders.map(({ value }) => value)).toEqual(['5, 2;w=1, 5;w=300', '0', '297']);
    expect(verdicts[0]!.responseHeaders[0]).toEqual({ key: 'limit', value: '2, 2;w=1, 5;w=300' });
    expect(statistics).toEqual({
      'k.second.total_hits': 6,
      'k.second.within_limit': 5,
      'k.second.over_limit': 1,
      'k.second.near_limit': 1,
      'k.5minute.total_hits': 6,
      'k.5minute.within_limit': 5,
      'k.5minute.over_limit': 1,
      'k.5minute.near_limit': 1,
    });
  });

  it('is replaced limit by limit', async () => {
    const { answers } = await play({}, ['k=x other=y', 'k=x other=y', 'k=x other=y', 'k=x']);
    expect(answers).toEqual([
      [true, 4, 300, 5],
      [true, 3, 300, 5],
      [true, 2, 300, 5],
      [true, 1, 1, 2],
    ]);
  });

  it('is replaced by an override as a whole', async () => {
    const sent = descriptor('k=x', { limit: { requestsPerUnit: 100, unit: unitByName('HOUR') } });
    const { answers, statistics } = await play({}, [sent, sent]);
    expect(answers.map(([, remaining]) => remaining)).toEqual([99, 98]);
    expect(Object.keys(statistics).every((name) => name.startsWith('k_x.'))).toBe(true);
  });

  it('answers OK in shadow mode, and counts what is over each limit', async () => {
    const { answers, statistics } = await play({ shadowMode: true }, ['k=x', 'k=x', 'k=x']);
    expect(answers.map(([isAllowed]) => isAllowed)).toEqual([true, true, true]);
    expect(statistics).toMatchObject({ 'k.second.shadow_mode': 1, 'k.second.over_limit': 1 });
    expect(statistics).not.toHaveProperty('k.5minute.over_limit');
  });

  it('answers by the local cache when one limit is over, and counts on the others', async () => {
    const cached = await play({}, ['k=x', 'k=x', 'k=x', 'k=x'], { localCacheBytes: 100_000 });
    expect(cached.answers.map(([isAllowed]) => isAllowed)).toEqual([true, true, false, false]);
    expect(cached.statistics).toMatchObject({
      'k.second.over_limit_with_local_cache': 1,
      'k.second.over_limit': 2,
      'k.5minute.within_limit': 4,
    });
  });

  it('is enforced for a share of the callers as a whole, and in shadow mode for the others', async () => {
    const { verdicts, statistics } = await play({ enforcePercent: 0 }, ['k=x', 'k=x', 'k=x']);
    expect(verdicts.map(({ overallCode }) => overallCode)).toEqual([Code.OK, Code.OK, Code.OK]);
    expect(statistics).toMatchObject({ 'k.second.shadow_mode': 1, 'k.second.over_limit': 1 });
  });

  it('is one quota: its most restrictive limit says whether that is used up', async () => {
    const { verdicts } = await play({ quotaMode: true }, ['k=x', 'k=x', 'k=x', 'k=x k=y']);
    const codes = verdicts.map(({ overallCode }) => overallCode);
    expect(codes).toEqual([Code.OK, Code.OK, Code.OVER_LIMIT, Code.OK]);
  });

  it('counts a window of the calendar beside others, and shows it when it is the most restrictive', async () => {
    const day = limit(3, 'DAY', { calendar: { timeZone: 'Asia/Tokyo', startsOn: 1 } });
    const { answers } = await play({ rateLimits: [SHORT, day] }, ['k=x', 'k=x', 1, 'k=x', 1, 'k=x']);
    const untilMidnight = 86_400 - ((clock.now / 1000 + 9 * 3600) % 86_400);
    expect(answers).toEqual([
      [true, 1, 1, 2],
      [true, 0, 1, 2],
      [true, 0, untilMidnight + 1, 3],
      [false, 0, untilMidnight, 3],
    ]);
  });

  it('counts nothing on all limits when one is over, with STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', async () => {
    const second = ['k=x', 'k=x', 'k=x', 'k=x', 1];
    const { answers } = await play({}, [...second, ...second, 'k=x', 'k=x'], { stopIncrementWhenOverLimit: true });
    const once = [true, false, false];
    expect(answers.map(([isAllowed]) => isAllowed)).toEqual([true, ...once, true, ...once, true, false]);
  });

  it('lists a caller once for a call that is over several limits', async () => {
    const offenders = new Offenders({ capacity: 10, windowSeconds: 3600 });
    const rateLimits = [limit(0, 'SECOND'), limit(0, 'MINUTE')];
    await play({ rateLimits }, ['k=x', 'k=x'], { offenders });
    expect(offenders.top({ limit: 10 }, Math.floor(clock.now / 1000))).toMatchObject([{ limited: 2 }]);
  });

  it('shares its counters with share_threshold, and counts by value otherwise', async () => {
    const shared = await play({ value: 'x*', shareThreshold: true }, ['k=x1', 'k=x2', 'k=x3']);
    expect(shared.answers.map(([isAllowed]) => isAllowed)).toEqual([true, true, false]);
    const apart = await play({ value: 'x*', detailedMetric: true }, ['k=x1', 'k=x2', 'k=x3']);
    expect(apart.answers.map(([isAllowed]) => isAllowed)).toEqual([true, true, true]);
    expect(apart.statistics).toMatchObject({ 'k_x1.second.total_hits': 1, 'k_x2.5minute.total_hits': 1 });
  });
});

it('all limits of a rule are in the main store, with one hash tag', async () => {
  const domain = freshDomain();
  const rateLimits = [limit(2, 'SECOND'), limit(5, 'MINUTE'), limit(9, 'HOUR', { algorithm: 'token_bucket' })];
  const ruleset = rulesetOf(domain, { key: 'k', rateLimits });
  using service = new Service(ruleset, kvstore(), { cacheKeyPrefix: 'p:' });
  clock.now = 1_764_000_000_000;
  await service.decide(domain, ['k={x}']);
  const tag = `p:{_${domain}_k_{x}_}`;
  expect((await redis().control.keys(`*${domain}*`)).toSorted()).toEqual([
    `${tag}fixed_window_1_1764000000`,
    `${tag}fixed_window_60_1764000000`,
    `${tag}token_bucket_3600`,
  ]);
  expect(await perSecond().control.keys('*')).toEqual([]);
  expect(limitsOf(ruleConfig({ key: 'k', rateLimits }))).toBe(rateLimits);
});
