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

describe('the answer', () => {
  it('has the limit, what is left, and the seconds until the window ends', () => {
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

  it('is OVER_LIMIT from the first request beyond the limit until the window ends, then begins anew', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(2) }]);
    function ask() {
      return service.decide(request('shop', ['k=x'])).overallCode;
    }
    expect([ask(), ask(), ask(), ask()]).toEqual([Code.OK, Code.OK, Code.OVER_LIMIT, Code.OVER_LIMIT]);
    service.now += 49_999;
    expect(ask()).toBe(Code.OVER_LIMIT);
    service.now += 1;
    expect(ask()).toBe(Code.OK);
  });

  it.each([
    ['SECOND', 1],
    ['MINUTE', 50],
    ['HOUR', 3590],
    ['DAY', 86_390],
  ] as const)('counts a %s to its end: %i s left', (unit, seconds) => {
    const service = serve([{ key: 'k', rateLimit: limit(1, unit) }]);
    expect(service.decide(request('shop', ['k=x'])).statuses[0]?.secondsUntilReset).toBe(seconds);
  });

  it('gives the full unit on the boundary', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(1) }]);
    service.now = 1_699_920_000_000;
    expect(service.decide(request('shop', ['k=x'])).statuses[0]?.secondsUntilReset).toBe(60);
  });

  it('is over as a whole when any descriptor is over, each keeping its own status', () => {
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

  it('counts the same key twice in one request, the second seeing the first', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(1) }]);
    expect(codes(service.decide(request('shop', ['k=x', 'k=x'])))).toEqual(['OK', 'OVER']);
  });
});

describe('an unknown domain', () => {
  it('is OK for every descriptor, counted once for each and never by hits', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(1) }]);
    const verdict = service.decide(request('other', ['k=x', descriptor('k=y', { hitsAddend: 9 })]));
    expect(codes(verdict)).toEqual(['OK', 'OK']);
    expect(service.moved()).toEqual({ 'other.domain_not_found': 2 });
  });

  it('ignores a limit that the request brings along, whatever it says', () => {
    const service = serve([]);
    const override = descriptor('k=x', { limit: { requestsPerUnit: 0, unit: undefined } });
    expect(service.decide(request('other', [override])).overallCode).toBe(Code.OK);
  });
});

describe('rule 8: a limit of 0 bans', () => {
  const rules: RuleSketch[] = [{ key: 'k', rateLimit: perMinute(0) }];
  it('every request that counts a hit', () => {
    expect(serve(rules).decide(request('shop', ['k=x'])).overallCode).toBe(Code.OVER_LIMIT);
  });
  it('but not one that only asks on a fresh key', () => {
    const ask = descriptor('k=x', { hitsAddend: 0 });
    expect(serve(rules).decide(request('shop', [ask])).overallCode).toBe(Code.OK);
  });
});

describe('rule 9: an unlimited rule', () => {
  it('is OK with the largest remainder and no limit, counts its hits, and asks no store', () => {
    const service = serve([{ key: 'k', rateLimit: unlimited() }]);
    expect(service.decide(request('shop', [descriptor('k=x', { hitsAddend: 3 })])).statuses).toEqual([
      { code: Code.OK, currentLimit: undefined, limitRemaining: 4_294_967_295, secondsUntilReset: undefined },
    ]);
    expect(service.moved()).toEqual({ 'shop.k.total_hits': 3, 'shop.k.within_limit': 3 });
    expect(service.counters.size).toBe(0);
  });
});

describe('rule 10: replaces', () => {
  function named(name: string, replaces: readonly string[] = []) {
    return perMinute(5, { name, replaces });
  }
  it('drops the replaced rule: OK without limit, no counter, no statistic', () => {
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
      'nobody is replaced when the replacing rule is not matched',
      [
        { key: 'a', rateLimit: named('one') },
        { key: 'c', rateLimit: named('x', ['one']) },
      ],
      ['one', undefined],
    ],
    [
      'an unlimited rule replaces others',
      [
        { key: 'a', rateLimit: named('one') },
        { key: 'b', rateLimit: unlimited({ replaces: ['one'] }) },
      ],
      [undefined, undefined],
    ],
    [
      'a rule that is dropped replaces others all the same',
      [
        { key: 'a', rateLimit: named('one', ['two']) },
        { key: 'b', rateLimit: named('two', ['one']) },
      ],
      [undefined, undefined],
    ],
    [
      'a rule without a name is never replaced',
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

  it('leaves an unlimited rule its answer even when it is named', () => {
    const service = serve([
      { key: 'a', rateLimit: unlimited({ name: 'free' }) },
      { key: 'b', rateLimit: named('b', ['free']) },
    ]);
    expect(service.decide(request('shop', ['a=x', 'b=x'])).statuses[0]?.limitRemaining).toBe(4_294_967_295);
  });
});

describe('rule 11: shadow mode of a rule', () => {
  it('is OK with nothing left when it would be over, and says so in its statistic', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(1), shadowMode: true }]);
    service.decide(request('shop', ['k=x']));
    service.moved();
    const { overallCode, statuses } = service.decide(request('shop', ['k=x']));
    expect(overallCode).toBe(Code.OK);
    expect(statuses[0]).toMatchObject({ code: Code.OK, limitRemaining: 0 });
    expect(service.moved()).toEqual({ 'shop.k.total_hits': 1, 'shop.k.over_limit': 1, 'shop.k.shadow_mode': 1 });
  });
});

describe('rule 12: global shadow mode', () => {
  it('turns the overall code alone, and counts the responses that it changed', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(1) }], { shadowMode: true });
    service.decide(request('shop', ['k=x']));
    expect(service.moved()['ratelimit.service.global_shadow_mode']).toBeUndefined();
    const verdict = service.decide(request('shop', ['k=x', 'k=x']));
    expect(verdict.overallCode).toBe(Code.OK);
    expect(codes(verdict)).toEqual(['OVER', 'OVER']);
    expect(service.moved()['ratelimit.service.global_shadow_mode']).toBe(1);
  });
});

describe('rule 13: negative hits', () => {
  function negative(hits: number) {
    return descriptor('k=x', { hitsAddend: hits, isNegativeHits: true });
  }
  it('take away from the counter, down to 0, and are always OK', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(10) }]);
    function left(...descriptors: Parameters<typeof request>[1]) {
      return service.decide(request('shop', descriptors)).statuses[0]?.limitRemaining;
    }
    expect(left(descriptor('k=x', { hitsAddend: 8 }))).toBe(2);
    expect(left(negative(3))).toBe(5);
    expect(left(negative(100))).toBe(10);
    expect(left('k=x')).toBe(9);
  });

  it('are OK and move no over-limit statistic while the counter stays above the limit', () => {
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
    ['unlimited', 'u=x'],
    ['unmatched', 'none=x'],
  ])('do nothing on an %s descriptor', (_what, entries) => {
    const service = serve([{ key: 'u', rateLimit: unlimited() }]);
    service.decide(request('shop', [descriptor(entries, { hitsAddend: 2, isNegativeHits: true })]));
    expect(service.moved()).toEqual({});
  });
});

describe('hits_addend', () => {
  // the descriptor's own (undefined: not sent), the request's, and the hits that count
  it.each([
    [undefined, 0, 1],
    [undefined, 5, 5],
    [3, 5, 3],
    [0, 5, 0],
  ])('own %p beside %p of the request counts %p', (own, ofRequest, hits) => {
    const service = serve([{ key: 'k', rateLimit: perMinute(10) }]);
    const one = descriptor('k=x', own === undefined ? {} : { hitsAddend: own });
    expect(service.decide(request('shop', [one], ofRequest)).statuses[0]?.limitRemaining).toBe(10 - hits);
  });

  it('of 0 asks without counting, also where nothing was counted', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(3) }]);
    const ask = descriptor('k=x', { hitsAddend: 0 });
    expect(service.decide(request('shop', [ask])).statuses[0]?.limitRemaining).toBe(3);
    expect(service.counters.size).toBe(0);
  });
});

describe('a limit that the request brings along', () => {
  function override(requestsPerUnit: number) {
    return { limit: { requestsPerUnit, unit: unitByName('HOUR') } };
  }
  it('replaces the rule, is never in shadow mode, and counts under the entries of the request', () => {
    const service = serve([{ key: 'k', value: 'x', rateLimit: perMinute(1), shadowMode: true }]);
    function ask() {
      return service.decide(request('shop', [descriptor('k=x', override(1))]));
    }
    expect(ask().statuses[0]).toMatchObject({
      currentLimit: { requestsPerUnit: 1, unit: unitByName('HOUR'), name: '' },
      secondsUntilReset: 3590,
    });
    expect(ask().overallCode).toBe(Code.OVER_LIMIT);
    expect(service.moved()).toMatchObject({ 'shop.k_x.over_limit': 1 });
  });

  it('limits entries that no rule matches, and is not replaced', () => {
    const service = serve([{ key: 'b', rateLimit: perMinute(1, { replaces: [''] }) }]);
    const verdict = service.decide(request('shop', [descriptor('any=,thing=y', override(3)), 'b=x']));
    expect(verdict.statuses[0]?.limitRemaining).toBe(2);
    expect(service.moved()).toMatchObject({ 'shop.any.thing_y.total_hits': 1 });
  });

  it('without a unit that is known is refused', () => {
    const service = serve([]);
    const wrong = descriptor('k=x', { limit: { requestsPerUnit: 1, unit: undefined } });
    expect(() => service.decide(request('shop', ['k=x', wrong]))).toThrow(
      'the limit of descriptor 2 has no valid unit',
    );
  });
});

describe('a request that cannot be decided is refused, and counts nothing but the error', () => {
  const rules: RuleSketch[] = [{ key: 'k', rateLimit: perMinute(1) }];
  it.each([
    ['an empty domain', request('', ['k=x']), 'rate limit domain must not be empty'],
    ['no descriptors', request('shop', []), 'rate limit descriptor list must not be empty'],
    ['an entry without a key', request('shop', ['k=x', '=y']), 'descriptor 2 has an entry without a key'],
    [
      'hits that no counter holds',
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
  ])('%s', (_what, wrong, message) => {
    const service = serve(rules);
    expect(() => service.decide(wrong)).toThrow(message);
    expect(service.moved()).toEqual({ 'ratelimit.service.call.should_rate_limit.service_error': 1 });
    expect(service.counters.size).toBe(0);
  });

  it('says that no configuration is loaded only for a request that is right otherwise', () => {
    const service = serve([]);
    service.ruleset = undefined;
    expect(() => service.decide(request('', ['k=x']))).toThrow('rate limit domain must not be empty');
    expect(() => service.decide(request('shop', ['k=x']))).toThrow('no rate limit configuration loaded');
  });
});

describe('statistics of a decision', () => {
  // limit 10, near threshold 8; hits already counted, hits of the call, what moves
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
  ])('after %i hits, %i more move %o', (before, hits, expected) => {
    const service = serve([{ key: 'k', rateLimit: perMinute(10) }]);
    if (before > 0) service.decide(request('shop', [descriptor('k=x', { hitsAddend: before })]));
    service.moved();
    service.decide(request('shop', [descriptor('k=x', { hitsAddend: hits })]));
    const moved = Object.fromEntries(Object.entries(expected).map(([stat, value]) => [`shop.k.${stat}`, value]));
    expect(service.moved()).toEqual(moved);
  });

  it('are kept per runtime value up to the bound, then in the key of the rule', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(10), detailedMetric: true }]);
    for (let user = 0; user < 10_005; user += 1) service.decide(request('shop', [`k=${user}`]));
    const moved = service.moved();
    expect(moved['shop.k_9999.total_hits']).toBe(1);
    expect(moved['shop.k_10000.total_hits']).toBeUndefined();
    expect(moved['shop.k.total_hits']).toBe(5);
    expect(new Map(service.statistics.entries()).get('ratelimit.statistics.runtime_keys')).toBe(10_000);
  });

  it('are those of the values in the key, again and again, and every hit beyond the bound says so', () => {
    const service = serve([
      { key: 'one', rateLimit: perMinute(10), detailedMetric: true },
      { key: 'a', descriptors: [{ key: 'b', rateLimit: perMinute(10), detailedMetric: true }] },
    ]);
    const asked = ['one=x', 'one=y', 'one=x', 'a=1,b=2', 'a=2,b=2', 'a=1,b=2'];
    for (const each of asked) service.decide(request('shop', [each]));
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

  it('go on across a reload of the rules', () => {
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
  it('over alone among quotas is over; beside one that passes it is not', () => {
    const service = serve([
      { key: 'a', ...quota(0) },
      { key: 'b', ...quota(5) },
    ]);
    expect(service.decide(request('shop', ['a=x'])).overallCode).toBe(Code.OVER_LIMIT);
    const both = service.decide(request('shop', ['a=x', 'b=x']));
    expect(both.overallCode).toBe(Code.OK);
    expect(codes(both)).toEqual(['OVER', 'OK']);
  });

  it('does not excuse a descriptor that is no quota', () => {
    const service = serve([
      { key: 'a', rateLimit: perMinute(0) },
      { key: 'b', ...quota(5) },
    ]);
    expect(service.decide(request('shop', ['a=x', 'b=x'])).overallCode).toBe(Code.OVER_LIMIT);
  });

  it('is not rescued by descriptors that are no quota', () => {
    const service = serve([
      { key: 'a', ...quota(0) },
      { key: 'b', rateLimit: perMinute(5) },
    ]);
    expect(service.decide(request('shop', ['a=x', 'b=x', 'none=x'])).overallCode).toBe(Code.OVER_LIMIT);
  });

  it('passes when its rule is in shadow mode', () => {
    const service = serve([
      { key: 'a', ...quota(0), shadowMode: true },
      { key: 'b', ...quota(0) },
    ]);
    expect(service.decide(request('shop', ['a=x', 'b=x'])).overallCode).toBe(Code.OK);
  });

  it('under QUOTA_MODE is every descriptor but unlimited ones, also one without a rule', () => {
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

describe('STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', () => {
  const rules: RuleSketch[] = [
    { key: 'a', rateLimit: perMinute(1) },
    { key: 'b', rateLimit: perMinute(10) },
  ];
  function remaining({ statuses }: Verdict) {
    return statuses.map(({ limitRemaining }) => limitRemaining);
  }

  it('adds to no other key when one would go over', () => {
    const service = serve(rules, { stopIncrementWhenOverLimit: true });
    expect(remaining(service.decide(request('shop', ['a=x', 'b=x'])))).toEqual([0, 9]);
    expect(remaining(service.decide(request('shop', ['a=x', 'b=x'])))).toEqual([0, 9]);
    expect(remaining(service.decide(request('shop', ['b=x'])))).toEqual([8]);
  });

  it('moves the statistics of a key that was not added as if it had been', () => {
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

  it('takes a count that the hits were not added to for beyond every threshold below them', () => {
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

  it('adds to nothing when the local cache knows a key to be over', () => {
    const service = serve(rules, { stopIncrementWhenOverLimit: true, localCacheBytes: 10_000 });
    service.decide(request('shop', [descriptor('a=x', { hitsAddend: 5 })]));
    const verdict = service.decide(request('shop', ['a=x', 'b=x']));
    expect(codes(verdict)).toEqual(['OVER', 'OK']);
    expect(remaining(verdict)).toEqual([0, 10]);
    expect(remaining(service.decide(request('shop', ['b=x'])))).toEqual([9]);
  });

  it('neither checks nor stops negative hits', () => {
    const service = serve(rules, { stopIncrementWhenOverLimit: true });
    service.decide(request('shop', [descriptor('b=x', { hitsAddend: 6 })]));
    service.decide(request('shop', ['a=x']));
    const back = descriptor('b=x', { hitsAddend: 4, isNegativeHits: true });
    expect(remaining(service.decide(request('shop', [back, 'a=x', 'b=y'])))).toEqual([8, 0, 10]);
  });
});

describe('the local cache', () => {
  const rules: RuleSketch[] = [{ key: 'k', rateLimit: perMinute(1) }];
  const full = descriptor('k=x', { hitsAddend: 5 });

  it('answers for a key that is over, without the store', () => {
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

  it('forgets a key when its window ends, when hits are taken back, and when its limit was raised', () => {
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

  it('honours shadow mode', () => {
    const service = serve([{ key: 'k', rateLimit: perMinute(1), shadowMode: true }], { localCacheBytes: 10_000 });
    service.decide(request('shop', [full]));
    service.moved();
    expect(service.decide(request('shop', ['k=x'])).overallCode).toBe(Code.OK);
    expect(service.moved()).toMatchObject({ 'shop.k.shadow_mode': 1, 'shop.k.over_limit_with_local_cache': 1 });
  });

  it('stays within its bytes: the oldest keys leave', () => {
    const service = serve(rules, { localCacheBytes: 1000 });
    for (let user = 0; user < 100; user += 1) {
      service.decide(request('shop', [descriptor(`k=${user}`, { hitsAddend: 5 })]));
    }
    const gauges = new Map(service.statistics.entries());
    expect(gauges.get('ratelimit.localcache.entryCount')).toBe(8);
    expect(gauges.get('ratelimit.localcache.evacuateCount')).toBe(92);
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
    ['the fewest left', ['a=x', 'b=x'], ['3', '2', '50']],
    ['the first of equals', ['b=x', 'c=x', 'a=x'], ['3', '2', '50']],
    ['one that is over before any other', ['ban=x', 'b=x'], ['0', '0', '3590']],
    ['the last one that is over', ['a=x', 'ban=x', 'ban=y'], ['0', '0', '3590']],
    ['a quota that is over as one with nothing left', ['a=x', 'quota=x', 'b=x'], ['0', '0', '86390']],
    ['a limit before a descriptor that has none', ['none=x', 'a=x'], ['5', '4', '50']],
  ])('are of %s', (_what, descriptors, values) => {
    const { responseHeaders } = serve(rules, { responseHeaders: names }).decide(request('shop', descriptors));
    expect(responseHeaders).toEqual([
      { key: 'X-Limit', value: values[0] },
      { key: 'X-Left', value: values[1] },
      { key: 'X-Reset', value: values[2] },
    ]);
  });

  it('are left out when no descriptor has a limit', () => {
    const service = serve([{ key: 'u', rateLimit: unlimited() }], { responseHeaders: names });
    expect(service.decide(request('shop', ['u=x', 'none=x'])).responseHeaders).toEqual([]);
  });
});

describe('dynamic metadata', () => {
  it('tells the request as it was understood, and the metadata of the rules that let it pass', () => {
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

  it('never changes the metadata of a rule by a merge', () => {
    const inner = { one: 1 };
    const rules: RuleSketch[] = [
      { key: 'a', rateLimit: perMinute(5), metadata: { nested: inner } },
      { key: 'b', rateLimit: perMinute(5), metadata: { nested: { two: 2 } } },
    ];
    serve(rules, { dynamicMetadata: true }).decide(request('shop', ['a=1', 'b=2']));
    expect(inner).toEqual({ one: 1 });
  });

  it('has no metadata when no rule gives any', () => {
    const service = serve([], { dynamicMetadata: true });
    expect(service.decide(request('shop', ['a=1'])).dynamicMetadata).toEqual({
      domain: 'shop',
      descriptors: [{ entries: ['a=1'] }],
    });
  });
});
