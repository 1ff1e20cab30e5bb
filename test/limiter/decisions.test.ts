import { LARGEST_COUNT } from '../../src/limiter/counter-operation';
import { Code, type Verdict } from '../../src/limiter/verdict';
import { unitByName } from '../../src/rules/unit';
import { descriptor, request } from '../support/data/requests';
import { limit, type RuleSketch, rulesetOf, unlimited } from '../support/data/rules';
import { TestService } from '../support/data/service';
import type { LimiterOptions } from '../../src/limiter/options';

// 10 s into a minute, an hour and a day.
const NOW = 1_699_920_010_000;

const services: TestService[] = [];
function serve(rules: readonly RuleSketch[], options: Partial<LimiterOptions> = {}): TestService {
  const service = new TestService(rulesetOf('shop', ...rules), options, NOW);
  services.push(service);
  return service;
}
afterEach(() => Promise.all(services.splice(0).map((service) => service.close())));

function codes({ statuses }: Verdict) {
  return statuses.map(({ code }) => (code === Code.OK ? 'OK' : 'OVER'));
}
function perMinute(requests: number, more = {}) {
  return limit(requests, 'MINUTE', more);
}

describe('the verdict', () => {
  it('contains the limit, the remaining requests, and the seconds until the window ends', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(2, { name: 'two' }) }]);
    expect(service.decide(request('shop', ['k=x']))).toEqual({
      overallCode: Code.OK,
      statuses: [
        {
          code: Code.OK,
          currentLimit: { requestsPerUnit: 2, unit: unitByName('MINUTE'), name: 'two' },
          limitRemaining: 1,
          secondsUntilReset: 50,
        },
      ],
      responseHeaders: [],
      dynamicMetadata: undefined,
    });
  });

  it('is OVER_LIMIT from the first request above the limit until the window ends, then OK again', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(2) }]);
    function decide() {
      return service.decide(request('shop', ['k=x'])).overallCode;
    }
    expect([decide(), decide(), decide(), decide()]).toEqual([Code.OK, Code.OK, Code.OVER_LIMIT, Code.OVER_LIMIT]);
    service.now += 49_999;
    expect(decide()).toBe(Code.OVER_LIMIT);
    service.now += 1;
    expect(decide()).toBe(Code.OK);
  });

  it.each([
    ['SECOND', 1],
    ['MINUTE', 50],
    ['HOUR', 3590],
    ['DAY', 86_390],
  ] as const)('reports for a limit per %s that %i s remain', (unit, seconds) => {
    const service = serve([{ key: 'k', rateLimit: limit(1, unit) }]);
    expect(service.decide(request('shop', ['k=x'])).statuses[0]?.secondsUntilReset).toBe(seconds);
  });

  it('reports the full unit at the start of a window', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(1) }]);
    service.now = 1_699_920_000_000;
    expect(service.decide(request('shop', ['k=x'])).statuses[0]?.secondsUntilReset).toBe(60);
  });

  it('has the overall code OVER_LIMIT if any descriptor is over, and the status of each', () => {
    const service = serve([
      { key: 'a', rateLimit: perMinute(1) },
      { key: 'b', rateLimit: perMinute(5) },
    ]);
    service.decide(request('shop', ['a=x', 'b=x']));
    const verdict = service.decide(request('shop', ['a=x', 'b=x', 'none=x']));
    expect(verdict.overallCode).toBe(Code.OVER_LIMIT);
    expect(codes(verdict)).toEqual(['OVER', 'OK', 'OK']);
    expect(verdict.statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([0, 3, 0]);
    expect(verdict.statuses[2]?.currentLimit).toBeUndefined();
  });

  it('counts a key that occurs twice in one request twice, in order', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(1) }]);
    expect(codes(service.decide(request('shop', ['k=x', 'k=x'])))).toEqual(['OK', 'OVER']);
  });
});

describe('an unknown domain', () => {
  it('is OK for every descriptor, and counted once per descriptor regardless of hits', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(1) }]);
    const verdict = service.decide(request('other', ['k=x', descriptor('k=y', { hitsAddend: 9 })]));
    expect(codes(verdict)).toEqual(['OK', 'OK']);
    expect(service.moved()).toEqual({ 'other.domain_not_found': 2, 'ratelimit.service.unknown_domain': 1 });
  });

  it('ignores a limit override, valid or not', () => {
    const service = serve([]);
    const override = descriptor('k=x', { limit: { requestsPerUnit: 0, unit: undefined } });
    expect(service.decide(request('other', [override])).overallCode).toBe(Code.OK);
  });
});

describe('a limit of 0', () => {
  const rules: RuleSketch[] = [{ key: 'k', rateLimit: perMinute(0) }];
  it('rejects every request that counts a hit', () => {
    expect(serve(rules).decide(request('shop', ['k=x'])).overallCode).toBe(Code.OVER_LIMIT);
  });
  it('allows a request with 0 hits on a new key', () => {
    const check = descriptor('k=x', { hitsAddend: 0 });
    expect(serve(rules).decide(request('shop', [check])).overallCode).toBe(Code.OK);
  });
});

describe('an unlimited rule', () => {
  it('is OK with the largest remainder and no limit, counts its hits, and does not call the store', () => {
    const service = serve([{ key: 'k', rateLimit: unlimited() }]);
    expect(service.decide(request('shop', [descriptor('k=x', { hitsAddend: 3 })])).statuses).toEqual([
      { code: Code.OK, currentLimit: undefined, limitRemaining: 4_294_967_295, secondsUntilReset: undefined },
    ]);
    expect(service.moved()).toEqual({ 'shop.k.total_hits': 3, 'shop.k.within_limit': 3 });
    expect(service.counters.size).toBe(0);
  });
});

describe('replaces', () => {
  function named(name: string, replaces: readonly string[] = []) {
    return perMinute(5, { name, replaces });
  }
  it('disables the replaced rule: OK without limit, no counter, no statistics', () => {
    const service = serve([
      { key: 'a', rateLimit: named('general') },
      { key: 'b', rateLimit: named('special', ['general']) },
    ]);
    const verdict = service.decide(request('shop', ['a=x', 'b=x']));
    expect(verdict.statuses.map(({ currentLimit }) => currentLimit?.name)).toEqual([undefined, 'special']);
    expect(Object.keys(service.moved())).toEqual(['shop.b.total_hits', 'shop.b.within_limit']);
    expect(service.counters.size).toBe(1);
  });

  it.each<[what: string, rules: RuleSketch[], kept: (string | undefined)[]]>([
    [
      'replaces nothing if the replacing rule is not matched',
      [
        { key: 'a', rateLimit: named('one') },
        { key: 'c', rateLimit: named('x', ['one']) },
      ],
      ['one', undefined],
    ],
    [
      'replaces rules by an unlimited one',
      [
        { key: 'a', rateLimit: named('one') },
        { key: 'b', rateLimit: unlimited({ replaces: ['one'] }) },
      ],
      [undefined, undefined],
    ],
    [
      'replaces rules by a rule that is itself replaced',
      [
        { key: 'a', rateLimit: named('one', ['two']) },
        { key: 'b', rateLimit: named('two', ['one']) },
      ],
      [undefined, undefined],
    ],
    [
      'never replaces a rule without a name',
      [
        { key: 'a', rateLimit: named('') },
        { key: 'b', rateLimit: named('two', ['']) },
      ],
      ['', 'two'],
    ],
  ])('%s', (_what, rules, kept) => {
    const verdict = serve(rules).decide(request('shop', ['a=x', 'b=x']));
    expect(verdict.statuses.map(({ currentLimit }) => currentLimit?.name)).toEqual(kept);
  });

  it('never replaces an unlimited rule', () => {
    const service = serve([
      { key: 'a', rateLimit: unlimited({ name: 'free' }) },
      { key: 'b', rateLimit: named('b', ['free']) },
    ]);
    expect(service.decide(request('shop', ['a=x', 'b=x'])).statuses[0]?.limitRemaining).toBe(4_294_967_295);
  });
});

describe('shadow mode of a rule', () => {
  it('returns OK with no remaining requests when over, and counts it in shadow_mode', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(1), shadowMode: true }]);
    service.decide(request('shop', ['k=x']));
    service.moved();
    const { overallCode, statuses } = service.decide(request('shop', ['k=x']));
    expect(overallCode).toBe(Code.OK);
    expect(statuses[0]).toMatchObject({ code: Code.OK, limitRemaining: 0 });
    expect(service.moved()).toEqual({ 'shop.k.total_hits': 1, 'shop.k.over_limit': 1, 'shop.k.shadow_mode': 1 });
  });
});

describe('global shadow mode', () => {
  it('changes only the overall code, and counts the changed responses', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(1) }], { shadowMode: true });
    service.decide(request('shop', ['k=x']));
    expect(service.moved()['ratelimit.service.global_shadow_mode']).toBeUndefined();
    const verdict = service.decide(request('shop', ['k=x', 'k=x']));
    expect(verdict.overallCode).toBe(Code.OK);
    expect(codes(verdict)).toEqual(['OVER', 'OVER']);
    expect(service.moved()['ratelimit.service.global_shadow_mode']).toBe(1);
  });
});

describe('negative hits', () => {
  function negative(hits: number) {
    return descriptor('k=x', { hitsAddend: hits, isNegativeHits: true });
  }
  it('are subtracted from the counter, down to 0, and always OK', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(10) }]);
    function left(...descriptors: Parameters<typeof request>[1]) {
      return service.decide(request('shop', descriptors)).statuses[0]?.limitRemaining;
    }
    expect(left(descriptor('k=x', { hitsAddend: 8 }))).toBe(2);
    expect(left(negative(3))).toBe(5);
    expect(left(negative(100))).toBe(10);
    expect(left('k=x')).toBe(9);
  });

  it('are OK and do not change the over-limit statistics while the counter is above the limit', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(1) }]);
    service.decide(request('shop', [descriptor('k=x', { hitsAddend: 10 })]));
    service.moved();
    const { overallCode, statuses } = service.decide(request('shop', [negative(2)]));
    expect(overallCode).toBe(Code.OK);
    expect(statuses[0]?.limitRemaining).toBe(0);
    expect(service.moved()).toEqual({ 'shop.k.total_negative_hits': 2 });
  });

  it('create no counter', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(1) }]);
    service.decide(request('shop', [negative(2)]));
    expect(service.counters.size).toBe(0);
  });

  it.each([
    ['unlimited', 'u=x', {}],
    ['unmatched', 'none=x', { 'ratelimit.service.no_match': 1 }],
  ])('have no effect on an %s descriptor', (_what, entries, moved) => {
    const service = serve([{ key: 'u', rateLimit: unlimited() }]);
    service.decide(request('shop', [descriptor(entries, { hitsAddend: 2, isNegativeHits: true })]));
    expect(service.moved()).toEqual(moved);
  });
});

describe('hits_addend', () => {
  // the descriptor's own (undefined: absent), the request's, and the hits counted
  it.each([
    [undefined, 0, 1],
    [undefined, 5, 5],
    [3, 5, 3],
    [0, 5, 0],
  ])('of %p in the descriptor and %p in the request counts %p hits', (own, ofRequest, hits) => {
    const service = serve([{ key: 'k', rateLimit: perMinute(10) }]);
    const one = descriptor('k=x', own === undefined ? {} : { hitsAddend: own });
    expect(service.decide(request('shop', [one], ofRequest)).statuses[0]?.limitRemaining).toBe(10 - hits);
  });

  it('of 0 checks without counting and creates no counter', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(3) }]);
    const check = descriptor('k=x', { hitsAddend: 0 });
    expect(service.decide(request('shop', [check])).statuses[0]?.limitRemaining).toBe(3);
    expect(service.counters.size).toBe(0);
  });
});

describe('a limit override', () => {
  function override(requestsPerUnit: number) {
    return { limit: { requestsPerUnit, unit: unitByName('HOUR') } };
  }
  it('overrides the rule, without shadow mode, and is counted under the entries of the request', () => {
    const service = serve([{ key: 'k', value: 'x', rateLimit: perMinute(1), shadowMode: true }]);
    function decide() {
      return service.decide(request('shop', [descriptor('k=x', override(1))]));
    }
    expect(decide().statuses[0]).toMatchObject({
      currentLimit: { requestsPerUnit: 1, unit: unitByName('HOUR'), name: '' },
      secondsUntilReset: 3590,
    });
    expect(decide().overallCode).toBe(Code.OVER_LIMIT);
    expect(service.moved()).toMatchObject({ 'shop.k_x.over_limit': 1 });
  });

  it('applies to entries that no rule matches, and is not replaced', () => {
    const service = serve([{ key: 'b', rateLimit: perMinute(1, { replaces: [''] }) }]);
    const verdict = service.decide(request('shop', [descriptor('any=,thing=y', override(3)), 'b=x']));
    expect(verdict.statuses[0]?.limitRemaining).toBe(2);
    expect(service.moved()).toMatchObject({ 'shop.any.thing_y.total_hits': 1 });
  });

  it('without a known unit is rejected', () => {
    const service = serve([]);
    const wrong = descriptor('k=x', { limit: { requestsPerUnit: 1, unit: undefined } });
    expect(() => service.decide(request('shop', ['k=x', wrong]))).toThrow(
      'the limit of descriptor 2 has no valid unit',
    );
  });
});

describe('an invalid request', () => {
  const rules: RuleSketch[] = [{ key: 'k', rateLimit: perMinute(1) }];
  it.each([
    ['an empty domain', request('', ['k=x']), 'rate limit domain must not be empty'],
    ['no descriptors', request('shop', []), 'rate limit descriptor list must not be empty'],
    ['an entry without a key', request('shop', ['k=x', '=y']), 'descriptor 2 has an entry without a key'],
    [
      'more hits than a counter can hold',
      request('shop', [descriptor('k=x', { hitsAddend: 2 ** 53 })]),
      'hits_addend of descriptor 1 exceeds the largest count, 2^53 - 1',
    ],
    [
      'too many descriptors',
      request(
        'shop',
        Array.from({ length: 10_000 }, () => 'k=x'),
      ),
      'a request may have at most 1000 descriptors, this one has 10000',
    ],
    [
      'too many entries in a descriptor',
      request('shop', ['k=x', Array.from({ length: 101 }, () => 'k=x').join(',')]),
      'a descriptor may have at most 100 entries, descriptor 2 has 101',
    ],
    [
      'too many entries in all',
      request(
        'shop',
        Array.from({ length: 101 }, () => Array.from({ length: 100 }, () => 'k=x').join(',')),
      ),
      'the descriptors of a request may have at most 10000 entries, these have 10100',
    ],
  ])('with %s is rejected, and only the error is counted', (_what, wrong, message) => {
    const service = serve(rules);
    expect(() => service.decide(wrong)).toThrow(message);
    expect(service.moved()).toEqual({ 'ratelimit.service.call.should_rate_limit.service_error': 1 });
    expect(service.counters.size).toBe(0);
  });

  it('is rejected as such even if no configuration is loaded', () => {
    const service = serve([]);
    service.ruleset = undefined;
    expect(() => service.decide(request('', ['k=x']))).toThrow('rate limit domain must not be empty');
    expect(() => service.decide(request('shop', ['k=x']))).toThrow('no rate limit configuration loaded');
  });
});

describe('the statistics of a decision', () => {
  // limit 10, near threshold 8; hits already counted, hits of the call, expected changes
  it.each([
    [0, 1, { total_hits: 1, within_limit: 1 }],
    [0, 8, { total_hits: 8, within_limit: 8 }],
    [0, 9, { total_hits: 9, within_limit: 9, near_limit: 1 }],
    [8, 1, { total_hits: 1, within_limit: 1, near_limit: 1 }],
    [7, 3, { total_hits: 3, within_limit: 3, near_limit: 2 }],
    [9, 1, { total_hits: 1, within_limit: 1, near_limit: 1 }],
    [9, 3, { total_hits: 3, over_limit: 2, near_limit: 1 }],
    [5, 7, { total_hits: 7, over_limit: 2, near_limit: 2 }],
    [0, 12, { total_hits: 12, over_limit: 2, near_limit: 2 }],
    [10, 1, { total_hits: 1, over_limit: 1 }],
    [12, 4, { total_hits: 4, over_limit: 4 }],
    [12, 0, {}],
  ])('after %i hits, %i more change by %o', (before, hits, expected) => {
    const service = serve([{ key: 'k', rateLimit: perMinute(10) }]);
    if (before > 0) service.decide(request('shop', [descriptor('k=x', { hitsAddend: before })]));
    service.moved();
    service.decide(request('shop', [descriptor('k=x', { hitsAddend: hits })]));
    const moved = Object.fromEntries(Object.entries(expected).map(([stat, value]) => [`shop.k.${stat}`, value]));
    expect(service.moved()).toEqual(moved);
  });

  it('are separate per request value up to the maximum, then counted under the key of the rule', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(10), detailedMetric: true }]);
    for (let user = 0; user < 10_005; user += 1) service.decide(request('shop', [`k=${user}`]));
    const moved = service.moved();
    expect(moved['shop.k_9999.total_hits']).toBe(1);
    expect(moved['shop.k_10000.total_hits']).toBeUndefined();
    expect(moved['shop.k.total_hits']).toBe(5);
    expect(new Map(service.statistics.entries()).get('ratelimit.statistics.runtime_keys')).toBe(10_000);
  });

  it('are those of the values in the key in repeated calls, and every call above the maximum is counted', () => {
    const service = serve([
      { key: 'one', rateLimit: perMinute(10), detailedMetric: true },
      { key: 'a', descriptors: [{ key: 'b', rateLimit: perMinute(10), detailedMetric: true }] },
    ]);
    const calls = ['one=x', 'one=y', 'one=x', 'a=1,b=2', 'a=2,b=2', 'a=1,b=2'];
    for (const each of calls) service.decide(request('shop', [each]));
    expect(service.moved()).toMatchObject({
      'shop.one_x.total_hits': 2,
      'shop.one_y.total_hits': 1,
      'shop.a_1.b_2.total_hits': 2,
      'shop.a_2.b_2.total_hits': 1,
    });
    for (let user = 4; user < 10_000; user += 1) service.decide(request('shop', [`one=${user}`]));
    service.moved();
    for (const each of ['one=beyond', 'one=beyond', 'one=x']) service.decide(request('shop', [each]));
    expect(service.moved()).toMatchObject({ 'shop.one.total_hits': 2, 'shop.one_x.total_hits': 1 });
    expect(new Map(service.statistics.entries()).get('ratelimit.statistics.rolled_up')).toBe(2);
  });

  it('continue after a reload of the rules', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(1) }]);
    service.decide(request('shop', ['k=x']));
    service.ruleset = rulesetOf('shop', { key: 'k', rateLimit: perMinute(1) });
    expect(service.decide(request('shop', ['k=x'])).overallCode).toBe(Code.OVER_LIMIT);
    expect(service.moved()).toMatchObject({ 'shop.k.total_hits': 2, 'shop.k.over_limit': 1 });
  });
});

describe('quota', () => {
  function quota(requests: number): Partial<RuleSketch> {
    return { rateLimit: perMinute(requests), quotaMode: true };
  }
  it('is over if it is the only quota and over, but not next to one that is OK', () => {
    const service = serve([
      { key: 'a', ...quota(0) },
      { key: 'b', ...quota(5) },
    ]);
    expect(service.decide(request('shop', ['a=x'])).overallCode).toBe(Code.OVER_LIMIT);
    const both = service.decide(request('shop', ['a=x', 'b=x']));
    expect(both.overallCode).toBe(Code.OK);
    expect(codes(both)).toEqual(['OVER', 'OK']);
  });

  it('does not prevent OVER_LIMIT of a descriptor that is not a quota', () => {
    const service = serve([
      { key: 'a', rateLimit: perMinute(0) },
      { key: 'b', ...quota(5) },
    ]);
    expect(service.decide(request('shop', ['a=x', 'b=x'])).overallCode).toBe(Code.OVER_LIMIT);
  });

  it('is over regardless of descriptors that are not quotas', () => {
    const service = serve([
      { key: 'a', ...quota(0) },
      { key: 'b', rateLimit: perMinute(5) },
    ]);
    expect(service.decide(request('shop', ['a=x', 'b=x', 'none=x'])).overallCode).toBe(Code.OVER_LIMIT);
  });

  it('is OK if its rule is in shadow mode', () => {
    const service = serve([
      { key: 'a', ...quota(0), shadowMode: true },
      { key: 'b', ...quota(0) },
    ]);
    expect(service.decide(request('shop', ['a=x', 'b=x'])).overallCode).toBe(Code.OK);
  });

  it('applies with QUOTA_MODE to every descriptor that is not unlimited, even without a rule', () => {
    const service = serve(
      [
        { key: 'a', rateLimit: perMinute(0) },
        { key: 'u', rateLimit: unlimited() },
      ],
      { quotaMode: true },
    );
    function overall(...descriptors: string[]) {
      return service.decide(request('shop', descriptors)).overallCode;
    }
    expect(overall('a=x')).toBe(Code.OVER_LIMIT);
    expect(overall('a=x', 'u=x')).toBe(Code.OVER_LIMIT);
    expect(overall('a=x', 'none=x')).toBe(Code.OK);
  });
});

describe('a saturated counter', () => {
  const largest = 4294967295;
  const most = descriptor('k=x', { hitsAddend: LARGEST_COUNT });

  it.each<[what: string, options: Partial<LimiterOptions>]>([
    ['counted in the store', {}],
    ['in the local cache', { localCacheBytes: 10_000 }],
    ['under STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', { stopIncrementWhenOverLimit: true }],
  ])('is over the largest limit, for calls in one window and in later ones: %s', (_, options) => {
    const service = serve([{ key: 'k', rateLimit: perMinute(largest) }], options);
    const verdicts = service.decideTogether(request('shop', [most]), request('shop', ['k=x']), request('shop', [most]));
    for (const verdict of [...verdicts, service.decide(request('shop', ['k=x']))]) {
      expect(verdict.overallCode).toBe(Code.OVER_LIMIT);
      expect(verdict.statuses[0]?.limitRemaining).toBe(0);
    }
  });

  it('counts again from what negative hits leave', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(10) }]);
    service.decideTogether(request('shop', [most]), request('shop', [most]));
    const back = descriptor('k=x', { hitsAddend: LARGEST_COUNT - 3, isNegativeHits: true });
    expect(service.decide(request('shop', [back])).statuses[0]?.limitRemaining).toBe(7);
    expect(service.decide(request('shop', ['k=x'])).statuses[0]?.limitRemaining).toBe(6);
  });

  it('passes in shadow mode, and leaves unlimited and quota rules as they are', () => {
    const service = serve([
      { key: 'k', rateLimit: perMinute(1), shadowMode: true },
      { key: 'free', rateLimit: unlimited() },
      { key: 'quota', rateLimit: perMinute(1), quotaMode: true },
      { key: 'quota2', rateLimit: perMinute(1), quotaMode: true },
    ]);
    const hits = ['k=x', 'free=x', 'quota=x'].map((text) => descriptor(text, { hitsAddend: LARGEST_COUNT }));
    service.decide(request('shop', hits));
    const verdict = service.decide(request('shop', [...hits, 'quota2=x']));
    expect(codes(verdict)).toEqual(['OK', 'OK', 'OVER', 'OK']);
    expect(verdict.overallCode).toBe(Code.OK);
  });

  it('keeps the statistics finite', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(1), shadowMode: true }]);
    const back = descriptor('k=x', { hitsAddend: LARGEST_COUNT, isNegativeHits: true });
    for (let call = 0; call < 5; call += 1) service.decide(request('shop', [most, most, back]));
    const moved = service.moved();
    expect(Object.keys(moved)).toEqual(expect.arrayContaining(['shop.k.over_limit', 'shop.k.shadow_mode']));
    for (const hits of Object.values(moved)) expect([Number.isFinite(hits), hits >= 0]).toEqual([true, true]);
  });
});

describe('STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', () => {
  const rules: RuleSketch[] = [
    { key: 'a', rateLimit: perMinute(1) },
    { key: 'b', rateLimit: perMinute(10) },
  ];
  function remaining({ statuses }: Verdict) {
    return statuses.map(({ limitRemaining }) => limitRemaining);
  }

  it('adds to no other key if one would exceed its limit', () => {
    const service = serve(rules, { stopIncrementWhenOverLimit: true });
    expect(remaining(service.decide(request('shop', ['a=x', 'b=x'])))).toEqual([0, 9]);
    expect(remaining(service.decide(request('shop', ['a=x', 'b=x'])))).toEqual([0, 9]);
    expect(remaining(service.decide(request('shop', ['b=x'])))).toEqual([8]);
  });

  it('judges the descriptors of a request in order when some of them have negative hits', () => {
    const service = serve(
      [
        { key: 'a', rateLimit: perMinute(10) },
        { key: 'b', rateLimit: perMinute(10) },
      ],
      {
        stopIncrementWhenOverLimit: true,
      },
    );
    service.decide(request('shop', ['a=x'], 10));
    const verdict = service.decide(
      request('shop', [
        descriptor('a=x', { hitsAddend: 5, isNegativeHits: true }),
        descriptor('a=x', { hitsAddend: 2 }),
        descriptor('b=x', { hitsAddend: 2 }),
      ]),
    );
    expect([codes(verdict), remaining(verdict)]).toEqual([
      ['OK', 'OK', 'OK'],
      [5, 3, 8],
    ]);
  });

  it('updates the statistics of a key that was not incremented as if it had been', () => {
    const service = serve(rules, { stopIncrementWhenOverLimit: true });
    service.decide(request('shop', ['a=x', 'b=x']));
    service.moved();
    service.decide(request('shop', ['a=x', 'b=x']));
    expect(service.moved()).toEqual({
      'shop.a.total_hits': 1,
      'shop.a.over_limit': 1,
      'shop.b.total_hits': 1,
      'shop.b.within_limit': 1,
    });
  });

  it('treats a count below the hits that were not added as above every threshold', () => {
    const service = serve(
      [
        { key: 'a', rateLimit: perMinute(0) },
        { key: 'b', rateLimit: perMinute(0) },
        { key: 'c', rateLimit: perMinute(10) },
      ],
      {
        stopIncrementWhenOverLimit: true,
        nearLimitRatio: 0,
      },
    );
    service.decide(request('shop', [descriptor('c=x', { hitsAddend: 2 })]));
    service.moved();
    service.decide(request('shop', ['a=x', descriptor('c=x', { hitsAddend: 5 })]));
    expect(service.moved()).toMatchObject({ 'shop.c.within_limit': 5, 'shop.c.near_limit': 5 });
  });

  it('adds to no key if one is over according to the local cache', () => {
    const service = serve(rules, { stopIncrementWhenOverLimit: true, localCacheBytes: 10_000 });
    service.decide(request('shop', [descriptor('a=x', { hitsAddend: 5 })]));
    const verdict = service.decide(request('shop', ['a=x', 'b=x']));
    expect(codes(verdict)).toEqual(['OVER', 'OK']);
    expect(remaining(verdict)).toEqual([0, 10]);
    expect(remaining(service.decide(request('shop', ['b=x'])))).toEqual([9]);
  });

  it('does not affect negative hits', () => {
    const service = serve(rules, { stopIncrementWhenOverLimit: true });
    service.decide(request('shop', [descriptor('b=x', { hitsAddend: 6 })]));
    service.decide(request('shop', ['a=x']));
    const back = descriptor('b=x', { hitsAddend: 4, isNegativeHits: true });
    expect(remaining(service.decide(request('shop', [back, 'a=x', 'b=y'])))).toEqual([8, 0, 10]);
  });

  it('is not caused by negative hits, not even by 0 of them on a key over its limit', () => {
    const service = serve(rules, { stopIncrementWhenOverLimit: true });
    service.decide(request('shop', [descriptor('b=x', { hitsAddend: 11 })]));
    const back = descriptor('b=x', { hitsAddend: 0, isNegativeHits: true });
    service.decide(request('shop', [back, 'b=y', 'b=z']));
    expect(remaining(service.decide(request('shop', ['b=y'])))).toEqual([8]);
  });
});

describe('the local cache', () => {
  const rules: RuleSketch[] = [{ key: 'k', rateLimit: perMinute(1) }];
  const full = descriptor('k=x', { hitsAddend: 5 });

  it('decides for a key that is over without the store', () => {
    const service = serve(rules, { localCacheBytes: 10_000 });
    service.decide(request('shop', [full]));
    service.moved();
    const { statuses } = service.decide(request('shop', [descriptor('k=x', { hitsAddend: 3 })]));
    expect(statuses[0]).toMatchObject({ code: Code.OVER_LIMIT, limitRemaining: 0, secondsUntilReset: 50 });
    expect(service.moved()).toEqual({
      'shop.k.total_hits': 3,
      'shop.k.over_limit': 3,
      'shop.k.over_limit_with_local_cache': 3,
    });
  });

  it('ignores a key after its window ends, hits are subtracted, or its limit is raised', () => {
    const service = serve(rules, { localCacheBytes: 10_000 });
    service.decide(request('shop', [full]));
    service.ruleset = rulesetOf('shop', { key: 'k', rateLimit: perMinute(100) });
    expect(service.decide(request('shop', ['k=x'])).overallCode).toBe(Code.OK);
    service.ruleset = rulesetOf('shop', ...rules);
    service.decide(request('shop', ['k=x']));
    service.decide(request('shop', [descriptor('k=x', { hitsAddend: 100, isNegativeHits: true })]));
    expect(service.decide(request('shop', ['k=x'])).overallCode).toBe(Code.OK);
    service.decide(request('shop', [full]));
    service.now += 50_000;
    expect(service.decide(request('shop', ['k=x'])).overallCode).toBe(Code.OK);
  });

  it('does not keep a key that is over its limit before hits are subtracted by the same request', () => {
    const service = serve(rules, { localCacheBytes: 10_000 });
    service.decide(request('shop', [full, descriptor('k=x', { hitsAddend: 5, isNegativeHits: true })]));
    expect(service.decide(request('shop', ['k=x'])).overallCode).toBe(Code.OK);
  });

  it('does not keep a key from which hits were subtracted before its verdict', () => {
    const service = serve(rules, { localCacheBytes: 10_000 });
    function begin(sketch: Parameters<typeof request>[1][number]) {
      return service.limiter.begin(request('shop', [sketch]), service.ruleset, service.now);
    }
    const over = begin(full);
    for (const operation of over.operations) operation.after = 5;
    begin(descriptor('k=x', { hitsAddend: 5, isNegativeHits: true })).verdict();
    expect(over.verdict().overallCode).toBe(Code.OVER_LIMIT);
    const next = begin('k=x');
    expect(next.operations).toHaveLength(1);
    // The subtraction from its own key was before it.
    begin(descriptor('k=other', { hitsAddend: 5, isNegativeHits: true })).verdict();
    for (const operation of next.operations) operation.after = 5;
    next.verdict();
    expect(begin('k=x').operations).toEqual([]);
  });

  it('supports shadow mode', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(1), shadowMode: true }], { localCacheBytes: 10_000 });
    service.decide(request('shop', [full]));
    service.moved();
    expect(service.decide(request('shop', ['k=x'])).overallCode).toBe(Code.OK);
    expect(service.moved()).toMatchObject({ 'shop.k.shadow_mode': 1, 'shop.k.over_limit_with_local_cache': 1 });
  });

  it('evicts the oldest keys above its size limit', () => {
    const service = serve(rules, { localCacheBytes: 1000 });
    for (let user = 0; user < 100; user += 1) {
      service.decide(request('shop', [descriptor(`k=${user}`, { hitsAddend: 5 })]));
    }
    const gauges = new Map(service.statistics.entries());
    expect(gauges.get('ratelimit.localcache.entryCount')).toBe(7);
    expect(gauges.get('ratelimit.localcache.evacuateCount')).toBe(93);
  });
});

describe('response headers', () => {
  const names = { limit: 'X-Limit', remaining: 'X-Left', reset: 'X-Reset' };
  const rules: RuleSketch[] = [
    { key: 'a', rateLimit: perMinute(5) },
    { key: 'b', rateLimit: perMinute(3) },
    { key: 'c', rateLimit: perMinute(3, { name: 'c' }) },
    { key: 'ban', rateLimit: limit(0, 'HOUR') },
    { key: 'quota', rateLimit: limit(0, 'DAY'), quotaMode: true },
  ];
  it.each([
    ['the limit with the fewest remaining requests', ['a=x', 'b=x'], ['3', '2', '50']],
    ['the first of equal limits', ['b=x', 'c=x', 'a=x'], ['3', '2', '50']],
    ['a limit that is over before all others', ['ban=x', 'b=x'], ['0', '0', '3590']],
    ['the last limit that is over', ['a=x', 'ban=x', 'ban=y'], ['0', '0', '3590']],
    ['an over quota like a limit with no remaining requests', ['a=x', 'quota=x', 'b=x'], ['0', '0', '86390']],
    ['a limit before a descriptor that has none', ['none=x', 'a=x'], ['5', '4', '50']],
  ])('are those of %s', (_what, descriptors, values) => {
    const { responseHeaders } = serve(rules, { responseHeaders: names }).decide(request('shop', descriptors));
    expect(responseHeaders).toEqual([
      { key: 'X-Limit', value: values[0] },
      { key: 'X-Left', value: values[1] },
      { key: 'X-Reset', value: values[2] },
    ]);
  });

  it('are absent if no descriptor has a limit', () => {
    const service = serve([{ key: 'u', rateLimit: unlimited() }], { responseHeaders: names });
    expect(service.decide(request('shop', ['u=x', 'none=x'])).responseHeaders).toEqual([]);
  });
});

describe('dynamic metadata', () => {
  it('contains the decoded request, and the metadata of the rules that allowed it', () => {
    const service = serve(
      [
        { key: 'a', rateLimit: perMinute(5), metadata: { tier: 'gold', nested: { one: 1 }, list: [1] } },
        {
          key: 'b',
          rateLimit: perMinute(5),
          metadata: { tier: 'silver', nested: { one: 2, two: 2 }, list: [2], more: true },
        },
        { key: 'over', rateLimit: perMinute(0), metadata: { never: 1 } },
        { key: 'u', rateLimit: unlimited(), metadata: { never: 2 } },
      ],
      { dynamicMetadata: true },
    );
    const override = descriptor('x=y', { limit: { requestsPerUnit: 7, unit: unitByName('WEEK') }, hitsAddend: 0 });
    expect(
      service.decide(request('shop', ['a=1,', 'b=2', 'over=3', 'u=4', override].slice(1), 2)).dynamicMetadata,
    ).toEqual({
      domain: 'shop',
      hitsAddend: 2,
      descriptors: [
        { entries: ['b=2'] },
        { entries: ['over=3'] },
        { entries: ['u=4'] },
        { entries: ['x=y'], limit: 'requests_per_unit:7 unit:WEEK', hitsAddend: 0 },
      ],
      metadata: { tier: 'silver', nested: { one: 2, two: 2 }, list: [2], more: true },
    });
    expect(service.decide(request('shop', ['a=1', 'b=2'])).dynamicMetadata).toEqual({
      domain: 'shop',
      descriptors: [{ entries: ['a=1'] }, { entries: ['b=2'] }],
      metadata: { tier: 'gold', nested: { one: 1, two: 2 }, list: [1], more: true },
    });
  });

  it('does not modify the metadata of a rule in a merge', () => {
    const inner = { one: 1 };
    const rules: RuleSketch[] = [
      { key: 'a', rateLimit: perMinute(5), metadata: { nested: inner } },
      { key: 'b', rateLimit: perMinute(5), metadata: { nested: { two: 2 } } },
    ];
    serve(rules, { dynamicMetadata: true }).decide(request('shop', ['a=1', 'b=2']));
    expect(inner).toEqual({ one: 1 });
  });

  it('has no metadata if no rule has any', () => {
    const service = serve([], { dynamicMetadata: true });
    expect(service.decide(request('shop', ['a=1'])).dynamicMetadata).toEqual({
      domain: 'shop',
      descriptors: [{ entries: ['a=1'] }],
    });
  });
});
