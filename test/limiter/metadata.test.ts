import { type Descriptor, NO_HITS_ADDEND, type RateLimitRequest } from '../../src/limiter/request';
import type { LimiterOptions } from '../../src/limiter/options';
import { Code, type Verdict } from '../../src/limiter/verdict';
import type { RuleConfig } from '../../src/rules/rule-config';
import { buildRuleset } from '../../src/rules/ruleset';
import { unitByName } from '../../src/rules/unit';
import fc from '../support/data/properties';
import { descriptor, request } from '../support/data/requests';
import { type RuleSketch, limit, ruleConfig, unlimited } from '../support/data/rules';
import { TestService } from '../support/data/service';
import { call, hits, perMinute, rule, serve } from './serve';
import { readOf } from '../../src/counting/operation';

const METADATA = { dynamicMetadata: true };

describe('the dynamic metadata', () => {
  const rules: readonly RuleSketch[] = [
    { key: 'a', rateLimit: perMinute(5), metadata: { tier: 'gold', nested: { one: 1 }, list: [1] } },
    { key: 'b', rateLimit: perMinute(5), metadata: { tier: 'silver', nested: { one: 2, two: 2 }, list: [2], more: 1 } },
    { key: 'c', rateLimit: perMinute(5), metadata: { nested: { three: 3 }, tier: {} } },
    { key: 'over', rateLimit: perMinute(0), metadata: { never: 1 } },
    { key: 'u', rateLimit: unlimited(), metadata: { never: 2 } },
  ];

  it('contains the decoded request, and the metadata of the rules that allowed it', () => {
    const override = descriptor('x=y', { limit: { requestsPerUnit: 7, unit: unitByName('WEEK') }, hitsAddend: 0 });
    const all = request('shop', ['b=2', 'over=3', 'u=4', override], 2);
    expect(serve(rules, METADATA).decide(all).dynamicMetadata).toEqual({
      domain: 'shop',
      hitsAddend: 2,
      descriptors: [
        ...['b=2', 'over=3', 'u=4'].map((entry) => ({ entries: [entry] })),
        { entries: ['x=y'], limit: 'requests_per_unit:7 unit:WEEK', hitsAddend: 0 },
      ],
      metadata: { tier: 'silver', nested: { one: 2, two: 2 }, list: [2], more: 1 },
    });
    const descriptors = [{ entries: ['a=1', 'b=2'] }];
    expect(call(serve([], METADATA), 'a=1,b=2').dynamicMetadata).toEqual({ domain: 'shop', descriptors });
  });

  it.each([
    ['a b c a', { tier: 'gold', nested: { one: 1, two: 2, three: 3 }, list: [1], more: 1 }],
    ['c b', { tier: {}, nested: { one: 2, two: 2, three: 3 }, list: [2], more: 1 }],
    ['a', { tier: 'gold', nested: { one: 1 }, list: [1] }],
  ])('merges that of the rules %s in this order, and leaves the rules as they are', (keys, expected) => {
    const service = serve(rules, METADATA);
    call(service, 'c=1', 'b=1', 'a=1');
    const { dynamicMetadata } = call(service, ...keys.split(' ').map((key) => `${key}=v`));
    expect(dynamicMetadata?.['metadata']).toEqual(expected);
  });

  it('keeps a member named __proto__ that a rule file has', () => {
    const metadata = JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}');
    const merged = call(serve([rule(5, { metadata })], METADATA), 'k=v').dynamicMetadata?.['metadata'];
    expect(JSON.stringify(merged)).toBe('{"__proto__":{"x":1},"constructor":2}');
  });
});

describe('the decisions in the dynamic metadata', () => {
  const rules: readonly RuleSketch[] = [
    { key: 'long', rateLimit: limit(5, 'HOUR', { unitMultiplier: 5 }) },
    { key: 'bucket', rateLimit: perMinute(2, { algorithm: 'token_bucket', burst: 3 }) },
    { key: 'zoned', rateLimit: limit(5, 'DAY', { calendar: { timeZone: 'Asia/Tokyo', startsOn: 1 } }) },
    { key: 'user', value: 'anna', rateLimit: perMinute(2, { name: 'of anna' }) },
    { key: 'shadow', shadowMode: true, rateLimit: perMinute(0) },
    { key: 'part', enforcePercent: 0, rateLimit: perMinute(0) },
    { key: 'several', shadowMode: true, rateLimits: [limit(2, 'HOUR'), perMinute(1)] },
    { key: 'free', rateLimit: unlimited({ replaces: ['replaced'] }) },
    { key: 'old', rateLimit: perMinute(1, { name: 'replaced' }) },
    { key: 'parent', descriptors: [{ key: 'child', value: 'a*', rateLimit: limit(5, 'HOUR') }] },
  ];
  const OF_ANNA = { requestsPerUnit: 2, unit: 'MINUTE', name: 'of anna' };

  function decider(options: Partial<LimiterOptions> = {}) {
    const service = serve(rules, { ...METADATA, metadataDecisions: true, ...options });
    return (...of: readonly (string | Descriptor)[]) => call(service, ...of).dynamicMetadata?.['decisions'];
  }

  it('have rule, limit, count, code and reset of each descriptor, in the order of the request', () => {
    const decide = decider();
    const within = { code: 'OK', reason: 'within_limit', count: 2 };
    const ofAnna = { rule: 'shop.user_anna', durationUntilReset: '50s', currentLimit: OF_ANNA };
    const hourly = { durationUntilReset: '3590s', currentLimit: { requestsPerUnit: 5, unit: 'HOUR' } };
    expect(decide(hits('user=anna', 2), hits('parent=p,child=abc', 2))).toEqual([
      { ...within, ...ofAnna },
      { ...within, ...hourly, rule: 'shop.parent.child_a*' },
    ]);
    const currentLimit = { requestsPerUnit: 5, unit: 'HOUR', unitMultiplier: 5 };
    expect(decide('long=x')).toMatchObject([{ currentLimit }]);
    const bucket = { requestsPerUnit: 2, unit: 'MINUTE', algorithm: 'token_bucket', burst: 3 };
    const denied = { code: 'OVER_LIMIT', reason: 'over_limit', count: 0, durationUntilReset: '1s' };
    expect(decide(hits('bucket=x', 4))).toEqual([{ ...denied, rule: 'shop.bucket', currentLimit: bucket }]);
    const zoned = { requestsPerUnit: 5, unit: 'DAY', timeZone: 'Asia/Tokyo' };
    expect(decide('zoned=x')).toMatchObject([{ currentLimit: zoned }]);
    expect(decide('user=anna')).toEqual([{ ...ofAnna, code: 'OVER_LIMIT', reason: 'over_limit', count: 3 }]);
  });

  it('say why no limit applies', () => {
    expect(decider()('free=x', 'old=x', 'parent=x', 'user=ben')).toEqual([
      { code: 'OK', reason: 'unlimited', rule: 'shop.free' },
      { code: 'OK', reason: 'replaced', rule: 'shop.old' },
      { code: 'OK', reason: 'no_limit', rule: 'shop.parent' },
      { code: 'OK', reason: 'no_match' },
    ]);
    const service = serve(rules, { ...METADATA, metadataDecisions: true });
    expect(service.decide(request('other', ['user=anna'])).dynamicMetadata).toMatchObject({
      decisions: [{ code: 'OK', reason: 'unknown_domain' }],
    });
  });

  it('have shadow mode, no rule for a limit of the request, and the count after negative hits', () => {
    const decide = decider();
    const currentLimit = { requestsPerUnit: 7, unit: 'DAY' };
    const override = descriptor('x=y', { limit: { requestsPerUnit: 7, unit: unitByName('DAY') } });
    decide(hits('user=anna', 3));
    expect(decide('part=x')).toMatchObject([{ code: 'OK', reason: 'over_limit', shadowMode: true }]);
    expect(decide('shadow=x', override, hits('user=anna', -1))).toEqual([
      expect.objectContaining({ code: 'OK', reason: 'over_limit', rule: 'shop.shadow', count: 1, shadowMode: true }),
      { code: 'OK', reason: 'within_limit', currentLimit, count: 1, durationUntilReset: '86390s' },
      expect.objectContaining({ code: 'OK', reason: 'negative_hits', count: 2 }),
    ]);
  });

  it('have, of several limits in shadow mode, the one that is over, also where another one has as little left', () => {
    const decide = decider();
    decide('several=x');
    const currentLimit = { requestsPerUnit: 1, unit: 'MINUTE' };
    const over = { code: 'OK', reason: 'over_limit', shadowMode: true, count: 2, currentLimit };
    expect(decide('several=x')).toMatchObject([over]);
  });

  it('have no count when the local cache answers', () => {
    const decide = decider({ localCacheBytes: 10_000 });
    decide(hits('user=anna', 3));
    const cached = { reason: 'over_limit_in_local_cache', rule: 'shop.user_anna', durationUntilReset: '50s' };
    expect(decide('user=anna')).toEqual([{ code: 'OVER_LIMIT', ...cached, currentLimit: OF_ANNA }]);
  });

  it('LIMIT_NAME_FROM_RULE gives a limit without a name the path of its rule, by which it cannot be replaced', () => {
    const replacing = { key: 'b', rateLimit: perMinute(1, { replaces: ['shop.parent.child_a*'] }) };
    function namesOf(options: Partial<LimiterOptions>) {
      const service = serve([...rules, replacing], options);
      const { statuses } = call(service, 'parent=p,child=abc', 'user=anna', 'free=x', 'b=x');
      return statuses.map(({ currentLimit }) => currentLimit?.name);
    }
    expect(namesOf({ limitNameFromRule: true })).toEqual(['shop.parent.child_a*', 'of anna', undefined, 'shop.b']);
    expect(namesOf({})).toEqual(['', 'of anna', undefined, '']);
  });
});

const NAMES = ['n1', 'n2', ''];
/** No window of these ends while a test runs, except at the end of a year. */
const UNIT = 'YEAR';

const someLimit = fc.oneof(
  { weight: 4, arbitrary: fc.nat(4).map((requests) => limit(requests, UNIT)) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.nat(4), fc.constantFrom('sliding_window', 'token_bucket'))
      .map(([requests, algorithm]) => limit(requests, UNIT, { algorithm })),
  },
  { weight: 1, arbitrary: fc.constant(unlimited()) },
);

function someRule(
  key: string,
  value: string,
  descriptors: fc.Arbitrary<readonly RuleConfig[]>,
): fc.Arbitrary<RuleConfig> {
  return fc
    .record({
      policy: fc.option(someLimit, { freq: 5, nil: undefined }),
      name: fc.constantFrom(...NAMES),
      replaced: fc.subarray(NAMES.slice(0, 2)),
      isShared: fc.boolean(),
      flags: fc.record({ shadowMode: fc.boolean(), quotaMode: fc.boolean() }),
      descriptors,
    })
    .map(({ policy, name, replaced, isShared, flags, descriptors: nestedRules }) => {
      const replaces = replaced.filter((other) => other !== name);
      const shareThreshold = isShared && value.includes('*');
      const own = { key, value, shareThreshold, rateLimit: policy && { ...policy, name, replaces } };
      return ruleConfig({ ...own, ...flags, descriptors: nestedRules });
    });
}

const nested = fc.tuple(someRule('b', '', fc.constant([])), someRule('b', 'y', fc.constant([])));

const DENY = ruleConfig({ key: 'on_unmatched', value: 'deny', rateLimit: unlimited({ unlimited: false }) });

/** Rules of one domain. */
const someRules: fc.Arbitrary<readonly RuleConfig[]> = fc.tuple(
  someRule('a', 'x', nested),
  someRule('a', 'x*', nested),
  someRule('a', '', nested),
  someRule('c', '', fc.constant([])),
);

const someEntry = fc.record({ key: fc.constantFrom('a', 'a', 'b', 'c'), value: fc.constantFrom('x', 'x1', 'y', '') });

const someDescriptor: fc.Arbitrary<Descriptor> = fc.record({
  entries: fc.array(someEntry, { minLength: 1, maxLength: 2 }),
  limit: fc.option(
    fc.nat(3).map((requestsPerUnit) => ({ requestsPerUnit, unit: unitByName(UNIT) })),
    { freq: 5, nil: undefined },
  ),
  hitsAddend: fc.oneof(fc.constant(NO_HITS_ADDEND), fc.nat(3)),
  isNegativeHits: fc.integer({ min: 0, max: 5 }).map((number) => number === 0),
});

/** Requests that often have the same counters. */
const someRequest: fc.Arbitrary<RateLimitRequest> = fc.record({
  domain: fc.constant('d'),
  descriptors: fc.array(someDescriptor, { minLength: 1, maxLength: 4 }),
  hitsAddend: fc.nat(2),
});

const someOptions: fc.Arbitrary<Partial<LimiterOptions>> = fc.record({
  localCacheBytes: fc.constantFrom(0, 10_000),
  stopIncrementWhenOverLimit: fc.boolean(),
  shadowMode: fc.boolean(),
  quotaMode: fc.boolean(),
  responseHeaders: fc.constantFrom(undefined, { limit: 'l', remaining: 'm', reset: 'r' }),
});

describe('an explanation', () => {
  /** What a decision would answer, according to an explanation. */
  function explained(service: TestService, asked: RateLimitRequest): Verdict {
    const trial = service.limiter.trial(asked, service.ruleset, service.now);
    const reads = trial.decision.operations.map(readOf);
    const stored = service.counters.applyNow(reads);
    return trial.verdict(new Map(reads.map(({ key }, index) => [key, stored[index]!])));
  }

  it('agrees with the decision that follows it, in windows and at once, and counts nothing', async () => {
    const requests = fc.array(someRequest, { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(someRules, someOptions, fc.boolean(), requests, async (descriptors, options, isClosed, all) => {
        const unmatched = isClosed ? DENY : undefined;
        const ruleset = buildRuleset([{ domain: 'd', descriptors, unmatched }]);
        const service = new TestService(ruleset, options);
        // A store in this process counts each request at once.
        const reference = new TestService(ruleset, options, service.now, 0);
        try {
          for (const each of all) {
            const expected = explained(service, each);
            expect(explained(service, each)).toEqual(expected);
            expect(service.moved()).toEqual({});
            const decided = service.decide(each);
            expect(expected).toEqual(decided);
            // Explanations between decisions change no decision and no statistic.
            expect(reference.decide(each)).toEqual(decided);
            expect(service.moved()).toEqual(reference.moved());
          }
        } finally {
          await service.close();
          await reference.close();
        }
      }),
      { numRuns: 60 },
    );
  });

  it('removes a counter from the local cache before hits that follow negative ones in the request', () => {
    const service = serve([{ key: 'k', rateLimit: limit(1, 'YEAR') }], { localCacheBytes: 10_000 });
    call(service, hits('k=v', 3));
    expect(explained(service, request('shop', ['k=v'])).overallCode).toBe(Code.OVER_LIMIT);
    const both = request('shop', [hits('k=v', -5), 'k=v']);
    const expected = explained(service, both);
    expect(expected.overallCode).toBe(Code.OK);
    expect(service.decide(both)).toEqual(expected);
  });
});
