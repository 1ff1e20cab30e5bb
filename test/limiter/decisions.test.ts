import { LARGEST_COUNT } from '../../src/counting/operation';
import type { LimiterOptions } from '../../src/limiter/options';
import { Code, type DescriptorStatus } from '../../src/limiter/verdict';
import type { RuleLimit } from '../../src/rules/rule-config';
import { buildRuleset } from '../../src/rules/ruleset';
import { unitByName } from '../../src/rules/unit';
import fc from '../support/data/properties';
import { descriptor, request } from '../support/data/requests';
import { type RuleSketch, atATime, domainConfig, limit, ruleConfig, unlimited } from '../support/data/rules';
import { NOW, call, codes, hits, overall, perMinute, remaining, rule, serve, shown } from './serve';

const HOUR = unitByName('HOUR');
const STOPPING = { stopIncrementWhenOverLimit: true };
const A_AND_B: readonly RuleSketch[] = [
  { key: 'a', rateLimit: perMinute(1) },
  { key: 'b', rateLimit: perMinute(10) },
];

describe('the verdict', () => {
  it('contains the limit, the remaining requests, and the seconds until the window ends', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(2, { name: 'two' }) }]);
    const currentLimit = { requestsPerUnit: 2, unit: unitByName('MINUTE'), unitMultiplier: 1, name: 'two' };
    const statuses = [{ code: Code.OK, currentLimit, limitRemaining: 1, secondsUntilReset: 50 }];
    expect(call(service, 'k=x')).toMatchObject({ overallCode: Code.OK, statuses, responseHeaders: [] });
  });

  it('is OVER_LIMIT from the first request above the limit until the window ends, then OK again', () => {
    const service = serve([rule(2)]);
    expect(overall(service, 'k=x', 'k=x', 'k=x', 'k=x')).toEqual(['OK', 'OK', 'OVER', 'OVER']);
    service.now += 49_999;
    expect(overall(service, 'k=x')).toEqual(['OVER']);
    service.now += 1;
    expect(overall(service, 'k=x')).toEqual(['OK']);
    expect(call(service, 'k=x').statuses[0]?.secondsUntilReset).toBe(60);
  });

  it('of a limit of the calendar is that of a window in its time zone, which ends with the day there', () => {
    const rateLimit = limit(1, 'DAY', { calendar: { timeZone: 'Europe/Berlin', startsOn: 1 } });
    const service = serve([{ key: 'k', rateLimit }], { localCacheBytes: 10_000 });
    // 10 s after 01:00 in Berlin.
    expect(call(service, 'k=x').statuses[0]).toMatchObject({ code: Code.OK, secondsUntilReset: 23 * 3600 - 10 });
    service.now += (23 * 3600 - 10) * 1000 - 1;
    expect(call(service, 'k=x').statuses[0]).toMatchObject({ code: Code.OVER_LIMIT, secondsUntilReset: 1 });
    expect([overall(service, 'k=x'), service.moved()]).toMatchObject([
      ['OVER'],
      { 'shop.k.over_limit_with_local_cache': 1 },
    ]);
    service.now += 1;
    expect(call(service, 'k=x').statuses[0]).toMatchObject({ code: Code.OK, secondsUntilReset: 24 * 3600 });
    expect(service.counters.size).toBe(2);
  });

  it('of two calls is that of the window of each, also when the later one is decided first', () => {
    const calendar = { timeZone: 'Asia/Tokyo', startsOn: 1 };
    const service = serve([{ key: 'k', rateLimit: limit(5, 'DAY', { calendar }) }]);
    const asked = request('shop', ['k=x']);
    const [before, after] = [0, 15 * 3600].map((later) => {
      const decision = service.limiter.begin(asked, service.ruleset, NOW + later * 1000);
      for (const operation of decision.operations) operation.countAfter = 1;
      return decision;
    });
    const statuses = [after, before].map((decision) => decision!.verdict().statuses[0]?.secondsUntilReset);
    expect(statuses).toEqual([24 * 3600 - 10, 15 * 3600 - 10]);
  });

  it('of an unknown domain is OK for every descriptor, which is counted once regardless of hits and overrides', () => {
    const service = serve([rule(1)]);
    const override = descriptor('k=z', { limit: { requestsPerUnit: 0, unit: undefined } });
    const verdict = service.decide(request('other', ['k=x', hits('k=y', 9), override]));
    expect(codes(verdict)).toEqual(['OK', 'OK', 'OK']);
    expect(service.moved()).toEqual({ 'other.domain_not_found': 3, 'ratelimit.service.unknown_domain': 1 });
  });

  it('of an unlimited rule is OK with the largest remainder and no limit; hits are counted without the store', () => {
    const service = serve([{ key: 'k', rateLimit: unlimited() }]);
    const [status] = call(service, hits('k=x', 3)).statuses;
    expect(status).toEqual({ code: Code.OK, limitRemaining: 4_294_967_295 });
    expect(service.moved()).toEqual({ 'shop.k.total_hits': 3, 'shop.k.within_limit': 3 });
    expect(service.counters.size).toBe(0);
  });
});

describe('replaces', () => {
  function named(key: string, name: string, ...replaces: string[]): RuleSketch {
    return { key, rateLimit: perMinute(5, { name, replaces }) };
  }
  function free(key: string, name: string, ...replaces: string[]): RuleSketch {
    return { key, rateLimit: unlimited({ name, replaces }) };
  }

  it('disables the replaced rule: OK without limit, no counter, no statistics', () => {
    const service = serve([named('a', 'general'), named('b', 'special', 'general')]);
    expect(remaining(call(service, 'a=x', 'b=x'))).toEqual([0, 4]);
    expect(Object.keys(service.moved())).toEqual(['shop.b.total_hits', 'shop.b.within_limit']);
    expect(service.counters.size).toBe(1);
  });

  it.each<[what: string, rules: readonly RuleSketch[], left: readonly number[]]>([
    ['replaces nothing if the replacing rule is not matched', [named('a', 'x'), named('c', 'y', 'x')], [4, 0]],
    ['replaces rules by an unlimited one', [named('a', 'x'), free('b', 'y', 'x')], [0, 4_294_967_295]],
    ['replaces rules by a rule that is itself replaced', [named('a', 'x', 'y'), named('b', 'y', 'x')], [0, 0]],
    ['replaces only the rules that it names', [named('a', 'x'), named('b', 'y', 'z', 'w')], [4, 4]],
    ['never replaces a rule without a name', [named('a', ''), named('b', 'y', '')], [4, 4]],
    ['never replaces an unlimited rule', [free('a', 'x'), named('b', 'y', 'x')], [4_294_967_295, 4]],
  ])('%s', (_what, rules, left) => {
    expect(remaining(call(serve(rules), 'a=x', 'b=x'))).toEqual(left);
  });
});

describe('shadow mode', () => {
  it('of a rule returns OK with no remaining requests when over, and counts it', () => {
    const service = serve([rule(1, { shadowMode: true })]);
    call(service, 'k=x');
    service.moved();
    const verdict = call(service, hits('k=x', 2));
    expect([verdict.overallCode, shown(verdict)]).toEqual([Code.OK, 'OK 0']);
    expect(service.moved()).toEqual({ 'shop.k.total_hits': 2, 'shop.k.over_limit': 2, 'shop.k.shadow_mode': 2 });
  });

  it('of the service changes only the overall code, and counts the changed responses', () => {
    const service = serve([rule(1)], { shadowMode: true });
    call(service, 'k=x');
    expect(service.moved()['ratelimit.service.global_shadow_mode']).toBeUndefined();
    const verdict = call(service, 'k=x', 'k=x');
    expect([verdict.overallCode, codes(verdict)]).toEqual([Code.OK, ['OVER', 'OVER']]);
    expect(service.moved()['ratelimit.service.global_shadow_mode']).toBe(1);
  });
});

describe('a limit with enforce_percent', () => {
  const CALLERS = Array.from({ length: 2000 }, (_, index) => `k=customer-${index}`);

  function enforcedAt(percent: number): readonly string[] {
    const service = serve([rule(0, { enforcePercent: percent })]);
    return CALLERS.filter((caller) => overall(service, caller)[0] === 'OVER');
  }

  it('is enforced for that share of the callers, and for who was in when it was smaller', () => {
    let before: readonly string[] = [];
    for (const percent of [0, 1, 5, 50, 99, 100]) {
      const enforced = enforcedAt(percent);
      const all = new Set(enforced);
      expect(before.filter((caller) => !all.has(caller))).toEqual([]);
      const expected = CALLERS.length * (percent / 100);
      // Five standard deviations.
      expect(Math.abs(enforced.length - expected)).toBeLessThanOrEqual(5 * Math.sqrt(expected * (1 - percent / 100)));
      before = enforced;
    }
  });

  it('is enforced for the same callers in all instances, windows and versions, whatever its numbers', () => {
    const many = {
      limit: limit(0, 'HOUR', { unitMultiplier: 3 }),
      sliding: limit(0, 'DAY', { algorithm: 'sliding_window' }),
    };
    for (const rateLimit of [perMinute(0), many.limit, many.sliding]) {
      const service = serve([{ key: 'user', rateLimit, enforcePercent: 20 }]);
      service.now += 123_456_789;
      const callers = ['anna', 'ben', 'carl', 'dora', 'gil', 'ida', 'jon'].map((name) => `user=${name}`);
      expect(callers.filter((caller) => overall(service, caller)[0] === 'OVER')).toEqual(['user=dora', 'user=gil']);
    }
  });

  it('is in shadow mode for the others: they pass with no remaining requests when over, and are counted', () => {
    const service = serve([{ key: 'user', rateLimit: perMinute(1), enforcePercent: 20 }]);
    expect([1, 2, 3].map(() => shown(call(service, 'user=ben')))).toEqual(['OK 0', 'OK 0', 'OK 0']);
    expect(overall(service, 'user=dora', 'user=dora')).toEqual(['OK', 'OVER']);
    expect(service.moved()).toMatchObject({ 'shop.user.over_limit': 3, 'shop.user.shadow_mode': 2 });
  });
});

describe('hits', () => {
  // the descriptor's own (undefined: absent), the request's, and the hits counted
  it.each([
    [undefined, 0, 1],
    [undefined, 5, 5],
    [3, 5, 3],
    [0, 5, 0],
  ])('of the descriptor, %p, and of the request, %p, count as %p', (own, ofRequest, counted) => {
    const service = serve([rule(10)]);
    const one = own === undefined ? 'k=x' : hits('k=x', own);
    expect(remaining(service.decide(request('shop', [one], ofRequest)))).toEqual([10 - counted]);
    expect(service.counters.size).toBe(counted === 0 ? 0 : 1);
  });

  it('that are negative are subtracted from the counter, down to 0, are always OK, and change no other statistic', () => {
    const service = serve([rule(10)]);
    const left = [8, -3, -100, 20].map((count) => remaining(call(service, hits('k=x', count)))[0]);
    expect(left).toEqual([2, 5, 10, 0]);
    service.moved();
    expect(shown(call(service, hits('k=x', -2)))).toBe('OK 0');
    expect(service.moved()).toEqual({ 'shop.k.total_negative_hits': 2 });
  });

  it('that are negative create no counter, and have no effect on an unlimited or unmatched descriptor', () => {
    const service = serve([rule(1), { key: 'u', rateLimit: unlimited() }]);
    for (const key of ['k', 'u', 'none']) call(service, hits(`${key}=x`, -2));
    expect(service.counters.size).toBe(0);
    expect(service.moved()).toEqual({ 'shop.k.total_negative_hits': 2, 'ratelimit.service.no_match': 1 });
  });
});

describe('a limit override', () => {
  function override(text: string, requestsPerUnit: number) {
    return descriptor(text, { limit: { requestsPerUnit, unit: HOUR } });
  }

  it('overrides the rule, without shadow mode and quota mode, and is counted under the entries of the request', () => {
    const service = serve([rule(5, { value: 'x', shadowMode: true, quotaMode: true })]);
    const currentLimit = { requestsPerUnit: 1, unit: HOUR, name: '' };
    expect(call(service, override('k=x', 1)).statuses).toMatchObject([{ currentLimit, secondsUntilReset: 3590 }]);
    expect(call(service, override('k=x', 1), 'k=x').overallCode).toBe(Code.OVER_LIMIT);
    expect(service.moved()).toMatchObject({ 'shop.k_x.over_limit': 1 });
  });

  it('applies to entries that no rule matches, and is not replaced', () => {
    const service = serve([{ key: 'b', rateLimit: perMinute(1, { replaces: [''] }) }]);
    expect(remaining(call(service, override('any=,thing=y', 3), 'b=x'))).toEqual([2, 0]);
    expect(service.moved()).toMatchObject({ 'shop.any.thing_y.total_hits': 1 });
  });
});

describe('the statistics of a decision', () => {
  // limit 10, near threshold 8; hits already counted, hits of the call, expected changes
  it.each([
    [0, 8, { total_hits: 8, within_limit: 8 }],
    [0, 9, { total_hits: 9, within_limit: 9, near_limit: 1 }],
    [8, 1, { total_hits: 1, within_limit: 1, near_limit: 1 }],
    [8, 2, { total_hits: 2, within_limit: 2, near_limit: 2 }],
    [9, 3, { total_hits: 3, over_limit: 2, near_limit: 1, near_limit_partial: 1 }],
    [0, 12, { total_hits: 12, over_limit: 2, near_limit: 2, near_limit_partial: 2 }],
    [10, 1, { total_hits: 1, over_limit: 1 }],
    [12, 0, {}],
  ])('after %i hits, %i more change by %o', (before, more, expected) => {
    const service = serve([rule(10)]);
    if (before > 0) call(service, hits('k=x', before));
    service.moved();
    call(service, hits('k=x', more));
    const moved = Object.fromEntries(Object.entries(expected).map(([stat, value]) => [`shop.k.${stat}`, value]));
    expect(service.moved()).toEqual(moved);
  });

  it('are separate per request value up to the maximum; every call above it is counted under the key of the rule', () => {
    const nested = { key: 'b', rateLimit: perMinute(10), detailedMetric: true };
    const service = serve([rule(10, { detailedMetric: true }), { key: 'a', descriptors: [nested] }]);
    for (const each of ['k=x', 'k=y', 'k=x', 'a=1,b=2', 'a=2,b=2']) call(service, each);
    const separate = { 'shop.k_x.total_hits': 2, 'shop.k_y.total_hits': 1, 'shop.a_1.b_2.total_hits': 1 };
    expect(service.moved()).toMatchObject({ ...separate, 'shop.a_2.b_2.total_hits': 1 });
    for (let user = 4; user < 10_000; user += 1) call(service, `k=${user}`);
    service.moved();
    for (const each of ['k=beyond', 'k=beyond', 'k=x']) call(service, each);
    expect(service.moved()).toMatchObject({ 'shop.k.total_hits': 2, 'shop.k_x.total_hits': 1 });
    const values = new Map(service.statistics.entries());
    const names = ['runtime_keys', 'rolled_up'].map((name) => values.get(`ratelimit.statistics.${name}`));
    expect(names).toEqual([10_000, 2]);
  });
});

describe('a quota', () => {
  const rules: readonly RuleSketch[] = [
    { key: 'q0', rateLimit: perMinute(0), quotaMode: true },
    { key: 'q5', rateLimit: perMinute(5), quotaMode: true },
    { key: 'qs', rateLimit: perMinute(0), quotaMode: true, shadowMode: true },
    { key: 'r0', rateLimit: perMinute(0) },
    { key: 'r5', rateLimit: perMinute(5) },
    { key: 'u', rateLimit: unlimited() },
  ];
  it.each<[what: string, quotaMode: boolean, keys: string, overallCode: string]>([
    ['is OK next to one that is OK', false, 'q0 q5', 'OK'],
    ['does not prevent OVER_LIMIT of a descriptor that is not a quota', false, 'r0 q5', 'OVER'],
    ['is over regardless of descriptors that are not quotas', false, 'q0 r5 none', 'OVER'],
    ['is OK if its rule is in shadow mode', false, 'qs q0', 'OK'],
    ['is every descriptor with QUOTA_MODE', true, 'r0', 'OVER'],
    ['is not an unlimited descriptor with QUOTA_MODE', true, 'r0 u', 'OVER'],
    ['is a descriptor without a rule, too, with QUOTA_MODE', true, 'r0 none', 'OK'],
  ])('%s', (_what, quotaMode, keys, overallCode) => {
    const verdict = call(serve(rules, { quotaMode }), ...keys.split(' ').map((key) => `${key}=x`));
    expect(verdict.overallCode).toBe(overallCode === 'OK' ? Code.OK : Code.OVER_LIMIT);
  });
});

describe('a saturated counter', () => {
  const most = hits('k=x', LARGEST_COUNT);

  it.each<[what: string, options: Partial<LimiterOptions>]>([
    ['counted in the store', {}],
    ['in the local cache', { localCacheBytes: 10_000 }],
    ['under STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', STOPPING],
  ])('is over the largest limit, for calls in one window and in later ones: %s', (_, options) => {
    const service = serve([rule(1e15)], options);
    const requests = [most, 'k=x', most].map((each) => request('shop', [each]));
    for (const verdict of [...service.decideTogether(...requests), call(service, 'k=x')]) {
      expect([verdict.overallCode, remaining(verdict)]).toEqual([Code.OVER_LIMIT, [0]]);
    }
  });

  it('keeps the statistics finite, and passes in shadow mode', () => {
    const service = serve([rule(1, { shadowMode: true })]);
    const back = hits('k=x', -LARGEST_COUNT);
    for (let made = 0; made < 5; made += 1) expect(codes(call(service, most, most, back))).toEqual(['OK', 'OK', 'OK']);
    const moved = service.moved();
    expect(moved).toMatchObject({ 'shop.k.over_limit': expect.any(Number), 'shop.k.shadow_mode': expect.any(Number) });
    expect(Object.values(moved).every((value) => Number.isFinite(value) && value >= 0)).toBe(true);
  });
});

describe('STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', () => {
  it('adds to no other key if one would exceed its limit, and updates the statistics as if it had', () => {
    const service = serve(A_AND_B, STOPPING);
    expect(remaining(call(service, 'a=x', 'b=x'))).toEqual([0, 9]);
    service.moved();
    expect(remaining(call(service, 'a=x', 'b=x'))).toEqual([0, 9]);
    const ofA = { 'shop.a.total_hits': 1, 'shop.a.over_limit': 1 };
    expect(service.moved()).toEqual({ ...ofA, 'shop.b.total_hits': 1, 'shop.b.within_limit': 1 });
    call(service, hits('a=x', 0), 'b=x');
    expect(remaining(call(service, 'b=x'))).toEqual([8]);
  });

  it('treats a count below the hits that were not added as above every threshold', () => {
    const rules = [{ key: 'a', rateLimit: perMinute(0) }, ...A_AND_B.slice(1)];
    const service = serve(rules, { ...STOPPING, nearLimitRatio: 0 });
    call(service, hits('b=x', 2));
    service.moved();
    call(service, 'a=x', hits('b=x', 5));
    expect(service.moved()).toMatchObject({ 'shop.b.within_limit': 5, 'shop.b.near_limit': 5 });
  });

  it('is not caused by a bucket that is over, also where the local cache has it', () => {
    const bucket = { key: 'k', rateLimit: perMinute(1, { algorithm: 'token_bucket' }) } as const;
    const service = serve([bucket, ...A_AND_B], { ...STOPPING, localCacheBytes: 10_000 });
    const answers = ['OK 0, OK 9', 'OVER 0, OK 8', 'OVER 0, OK 7'];
    expect(answers.map(() => shown(call(service, 'k=x', 'b=x')))).toEqual(answers);
    expect(service.moved()).toMatchObject({ 'shop.k.over_limit_with_local_cache': 1 });
  });
});

describe('a rule with several values', () => {
  it.each<[what: string, sketch: Partial<RuleSketch>, values: readonly string[], key: string]>([
    ['list', { valueIn: ['silver', 'gold'] }, ['gold', 'silver'], 'gold,silver'],
    ['network', { valueCidr: '10.0.0.0/8' }, ['10.0.0.1', '::ffff:10.0.0.2'], '10_0_0_0/8'],
    ['regular expression', { valueRegex: '^/v[0-9]+/' }, ['/v1/a', '/v2/b'], '^/v[0-9]+/'],
  ])('of a %s counts each of them, or all together with share_threshold', (_, sketch, [one, other], text) => {
    const keys = [`k=${one}`, `k=${other}`];
    const limited = { ...rule(5, sketch), value: '' };
    const each = serve([limited]);
    expect([...remaining(call(each, ...keys)), ...remaining(call(each, keys[0]!))]).toEqual([4, 4, 3]);
    const shared = serve([{ ...limited, shareThreshold: true }]);
    expect([...remaining(call(shared, ...keys)), ...remaining(call(shared, keys[0]!))]).toEqual([4, 3, 2]);
    expect(each.moved()).toMatchObject({ [`shop.k_${text}.total_hits`]: 3 });
    expect([each.counters.size, shared.counters.size]).toEqual([2, 1]);
  });
});

describe('a descriptor that matches no rule', () => {
  const rules = [
    { key: 'k', value: 'x', rateLimit: perMinute(9) },
    { key: 'free', descriptors: [{ key: 'in' }] },
  ];
  function serveWith(unmatched: RuleSketch, options: Partial<LimiterOptions> = {}) {
    const service = serve([], options);
    service.ruleset = buildRuleset([{ ...domainConfig('shop', ...rules), unmatched: ruleConfig(unmatched) }]);
    return service;
  }
  function defaultOf(rateLimit: RuleLimit, options: Partial<LimiterOptions> = {}) {
    return serveWith({ key: 'default_rate_limit', rateLimit }, options);
  }
  const DENY: RuleSketch = { key: 'on_unmatched', value: 'deny', rateLimit: unlimited({ unlimited: false }) };

  it('has the default of its domain, per full descriptor, also with an entry too many and without entries', () => {
    const service = defaultOf(perMinute(2, { name: 'rest' }));
    expect(shown(call(service, 'a=x', 'a=y', 'a=x,b=1', 'k=x,b=1', '', 'k=x'))).toBe(
      'OK 1, OK 1, OK 1, OK 1, OK 1, OK 8',
    );
    expect(overall(service, 'a=x', 'a=x', 'a=y', 'k=z', 'k=x,b=1')).toEqual(['OK', 'OVER', 'OK', 'OK', 'OK']);
    expect(call(service, 'a=x').statuses[0]).toMatchObject({ currentLimit: { name: 'rest' }, secondsUntilReset: 50 });
    expect(service.moved()).toMatchObject({
      'shop.default_rate_limit.total_hits': 11,
      'shop.default_rate_limit.over_limit': 2,
      'shop.k_x.total_hits': 1,
    });
  });

  it('is not one that matches a rule without a limit, nor one with a limit of its own, nor one of an unknown domain', () => {
    const own = descriptor('a=x', { limit: { requestsPerUnit: 5, unit: HOUR } });
    for (const service of [defaultOf(perMinute(0)), serveWith(DENY)]) {
      expect(codes(call(service, 'free=x', 'free=x,in=1', own))).toEqual(['OK', 'OK', 'OK']);
      expect(service.decide(request('forum', ['a=x'])).overallCode).toBe(Code.OK);
    }
  });

  it('may be unlimited by default, and is not limited when a rule of the request replaces the default', () => {
    expect(remaining(call(defaultOf(unlimited()), 'a=x'))).toEqual([4_294_967_295]);
    const service = defaultOf(perMinute(0, { name: 'rest' }));
    const other = { key: 'o', rateLimit: perMinute(5, { replaces: ['rest'] }) };
    const unmatched = ruleConfig({ key: 'default_rate_limit', rateLimit: perMinute(0, { name: 'rest' }) });
    service.ruleset = buildRuleset([{ ...domainConfig('shop', other), unmatched }]);
    expect([overall(service, 'a=x'), codes(call(service, 'a=x', 'o=x'))]).toEqual([['OVER'], ['OK', 'OK']]);
  });

  it('is denied by on_unmatched without limit and reset, counted in the statistics, and not in the store', () => {
    const service = serveWith(DENY);
    const denied = { code: Code.OVER_LIMIT, currentLimit: undefined, limitRemaining: 0, secondsUntilReset: undefined };
    expect(call(service, hits('a=x', 3), 'k=x')).toMatchObject({
      overallCode: Code.OVER_LIMIT,
      statuses: [denied, { code: Code.OK }],
    });
    expect(overall(service, hits('a=x', 0), hits('a=x', -1))).toEqual(['OVER', 'OK']);
    const name = 'shop.on_unmatched_deny';
    expect(service.moved()).toMatchObject({ [`${name}.total_hits`]: 3, [`${name}.over_limit`]: 3 });
    expect(new Map(service.statistics.entries()).get('ratelimit.service.no_match')).toBe(0);
    expect(service.counters.size).toBe(1);
  });
});

describe('response headers', () => {
  const responseHeaders = { limit: 'X-Limit', remaining: 'X-Left', reset: 'X-Reset' };
  const rules: RuleSketch[] = [
    { key: 'a', rateLimit: perMinute(5) },
    { key: 'b', rateLimit: perMinute(3) },
    { key: 'c', rateLimit: limit(3, 'HOUR') },
    { key: 'ban', rateLimit: limit(0, 'HOUR') },
    { key: 'last', rateLimit: limit(0, 'SECOND') },
    { key: 'quota', rateLimit: limit(0, 'DAY'), quotaMode: true },
    { key: 'five', rateLimit: perMinute(2, { unitMultiplier: 5 }) },
    { key: 'u', rateLimit: unlimited() },
    {
      key: 'month',
      rateLimits: [perMinute(9), limit(2, 'MONTH', { calendar: { timeZone: 'UTC', startsOn: 1 } }), limit(9, 'YEAR')],
    },
    { key: 'large', rateLimit: limit(5, 'HOUR', { algorithm: 'sliding_window' }), quotaMode: true },
    { key: 'hard', rateLimit: limit(5, 'HOUR', { algorithm: 'sliding_window' }) },
    { key: 'shadow', rateLimit: limit(0, 'DAY'), shadowMode: true },
    { key: 'tight', rateLimit: perMinute(2), shadowMode: true },
    { key: 'partly', rateLimit: limit(0, 'DAY'), enforcePercent: 0 },
    { key: 'most', rateLimit: limit(1e15, 'HOUR') },
    { key: 'billions', rateLimit: limit(5e9, 'DAY') },
    { key: 'shadows', rateLimits: [limit(0, 'SECOND'), limit(0, 'HOUR')], shadowMode: true },
  ];
  it.each([
    ['the limit with the fewest remaining requests, and the first of equal ones,', 'a b c', ['3', '2', '50']],
    ['the last limit that is over', 'a ban last', ['0', '0', '1']],
    ['an over quota like a limit with no remaining requests', 'a quota b', ['0', '0', '86390']],
    ['a limit that is over before a later quota', 'ban quota', ['0', '0', '3590']],
    ['a quota that is over, also with hits left for a smaller call,', 'b large c', ['5', '5', '1']],
    ['a limit that is over, also with hits left, before a later one with fewer', 'hard b', ['5', '5', '1']],
    ['a limit before a descriptor that has none', 'none a', ['5', '4', '50']],
    ['a limit of several units, with the length of its window,', 'a five', ['2, 2;w=300', '1', '290']],
    ['a month of the calendar as 30 days', 'month', ['2, 9;w=60, 2;w=2592000, 9;w=31536000', '1', '1468790']],
    ['no limit, which are none,', 'u none', []],
    ['a limit in shadow mode with the fewest remaining requests', 'a tight b', ['2', '1', '50']],
    [
      'a limit in shadow mode that the call is over, like one with no remaining requests',
      'a shadow b',
      ['0', '0', '86390'],
    ],
    ['a limit that is over before one in shadow mode', 'shadow ban shadow', ['0', '0', '3590']],
    ['a limit before one in shadow mode with as many remaining requests', 'c shadow shadow tight', ['0', '0', '86390']],
    ['a limit that is not enforced for the caller', 'a partly', ['0', '0', '86390']],
    [
      'the limit with the fewest remaining requests of those above 32 bits',
      'most billions',
      ['5000000000', '4999999999', '86390'],
    ],
    ['several limits in shadow mode', 'shadows', ['0, 0;w=1, 0;w=3600', '0', '3590']],
  ])('are those of %s', (_what, keys, values) => {
    const descriptors = keys.split(' ').map((key) => hits(`${key}=x`, ['large', 'hard'].includes(key) ? 6 : 1));
    const verdict = call(serve(rules, { responseHeaders }), ...descriptors);
    const names = ['X-Limit', 'X-Left', 'X-Reset'];
    expect(verdict.responseHeaders).toEqual(values.map((value, index) => ({ key: names[index], value })));
  });

  it('are those of the status that the Go service selects, whichever rules the call matches', () => {
    const keys = ['a', 'b', 'c', 'ban', 'last', 'quota', 'u', 'none', 'shadow', 'tight', 'partly', 'shadows'];
    const calls = fc.array(fc.array(fc.constantFrom(...keys), { minLength: 1, maxLength: 5 }), { maxLength: 8 });
    fc.assert(
      fc.property(calls, (all) => {
        const service = serve(rules, { responseHeaders });
        for (const asked of all) {
          const verdict = call(service, ...asked.map((key) => `${key}=x`));
          let [selected, fewest]: [DescriptorStatus | undefined, number] = [undefined, 2 ** 32 - 1];
          for (const [index, status] of verdict.statuses.entries()) {
            const left = status.limitRemaining;
            if (status.currentLimit !== undefined && left < fewest) [selected, fewest] = [status, left];
            if (status.code === Code.OVER_LIMIT && asked[index] !== 'quota') [selected, fewest] = [status, 0];
          }
          const expected =
            selected === undefined ? [] : [selected.limitRemaining, selected.secondsUntilReset].map(String);
          expect([asked, verdict.responseHeaders.slice(1).map(({ value }) => value)]).toEqual([asked, expected]);
        }
      }),
    );
  });

  const several: RuleSketch[] = [
    ...rules,
    { key: 'named', rateLimit: perMinute(7, { name: 'a "b" \\ ü' }) },
    { key: 'bucket', rateLimit: perMinute(6, { algorithm: 'token_bucket', burst: 9 }) },
    { key: 'both', rateLimits: [limit(2, 'SECOND'), limit(9, 'MONTH', { unitMultiplier: 2 })] },
    { key: 'calendar', rateLimit: limit(4, 'MONTH', { calendar: { timeZone: 'UTC', startsOn: 1 } }) },
    { key: 'first', rateLimit: limit(0, 'HOUR'), quotaMode: true },
    { key: 'jobs', rateLimits: [limit(9, 'HOUR'), atATime(3)] },
  ];
  function headersOf(options: Partial<LimiterOptions>, keys: string): Readonly<Record<string, string>> {
    const verdict = call(serve(several, options), ...keys.split(' ').map((key) => `${key}=x`));
    return Object.fromEntries(verdict.responseHeaders.map(({ key, value }) => [key, value]));
  }

  it.each([
    ['a', '"5-per-minute";q=5;qu="requests";w=60', '"5-per-minute";r=4;t=50'],
    [
      'five b b',
      '"2-per-5-minute";q=2;qu="requests";w=300, "3-per-minute";q=3;qu="requests";w=60, ' +
        '"3-per-minute-2";q=3;qu="requests";w=60',
      '"2-per-5-minute";r=1;t=290, "3-per-minute";r=2;t=50, "3-per-minute-2";r=1;t=50',
    ],
    ['named', String.raw`"a \"b\" \\ %C3%BC";q=7;qu="requests";w=60`, String.raw`"a \"b\" \\ %C3%BC";r=6;t=50`],
    ['bucket', '"6-per-minute";q=6;qu="requests";w=60;weir-burst=9', '"6-per-minute";r=8;t=10'],
    [
      'both',
      '"2-per-second";q=2;qu="requests";w=1, "9-per-2-month";q=9;qu="requests";w=5184000',
      expect.stringMatching(/^"2-per-second";r=1;t=1, "9-per-2-month";r=8;t=\d+$/),
    ],
    // Integers of structured fields have 15 digits.
    [
      'most',
      '"1000000000000000-per-hour";q=999999999999999;qu="requests";w=3600',
      '"1000000000000000-per-hour";r=999999999999999;t=3590',
    ],
    ['ban u none', '"0-per-hour";q=0;qu="requests";w=3600', '"0-per-hour";r=0;t=3590'],
    [
      'jobs',
      '"9-per-hour";q=9;qu="requests";w=3600, "3-at-a-time";q=3;qu="concurrent-requests"',
      '"9-per-hour";r=8;t=3590, "3-at-a-time";r=3',
    ],
    ['u none', undefined, undefined],
  ])('of the IETF draft have an item for each limit of a call: %s', (keys, policy, state) => {
    const headers = headersOf({ hasStructuredHeaders: true }, keys);
    expect([headers['RateLimit-Policy'], headers['RateLimit']]).toEqual([policy, state]);
  });

  it('of draft 03 have the windows of several limits, and not how many run at a time', () => {
    expect(headersOf({ responseHeaders }, 'jobs')).toEqual({ 'X-Limit': '3, 9;w=3600', 'X-Left': '3', 'X-Reset': '0' });
  });

  it('of the IETF draft have the length of the current month where a window is one of the calendar', () => {
    const february = Date.UTC(2026, 1, 10);
    const service = serve(several, { hasStructuredHeaders: true }, february);
    const value = `"4-per-month";q=4;qu="requests";w=${28 * 86_400}`;
    expect(call(service, 'calendar=x').responseHeaders[0]).toEqual({ key: 'RateLimit-Policy', value });
  });

  it('of the IETF draft have at most ten limits', () => {
    const { RateLimit: state = '' } = headersOf({ hasStructuredHeaders: true }, Array<string>(100).fill('a').join(' '));
    expect(state.split(', ')).toHaveLength(10);
  });

  it.each(['shadow', 'partly', 'shadows'])('of the IETF draft have nothing of a rule in shadow mode: %s', (key) => {
    const options = { hasStructuredHeaders: true, hasRetryAfter: true };
    expect(headersOf(options, key)).toEqual({});
    expect(headersOf(options, `${key} a ${key}`)).toEqual(headersOf(options, 'a'));
  });

  it('have the reset of draft 03 as a Unix time on request', () => {
    const reset = Number(headersOf({ responseHeaders }, 'a')['X-Reset']);
    const timestamp = Number(headersOf({ responseHeaders: { ...responseHeaders, isResetTime: true } }, 'a')['X-Reset']);
    expect([timestamp % 60, timestamp - reset]).toEqual([0, serve(several).now / 1000]);
  });

  it.each([
    ['a', undefined],
    ['ban a', '3590'],
    ['ban last', '3590'],
    // One of the two quotas is enough.
    ['quota first', '3590'],
    ['first quota', '3590'],
    ['quota last', '86390'],
    ['quota large last', '1'],
    ['quota a', '86390'],
    ['shadow', undefined],
  ])('have when to retry in a denial only: %s', (keys, seconds) => {
    expect(headersOf({ hasRetryAfter: true }, keys)).toEqual(seconds === undefined ? {} : { 'Retry-After': seconds });
    expect(headersOf({ hasRetryAfter: true, shadowMode: true }, keys)).toEqual({});
  });
});
