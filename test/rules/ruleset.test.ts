import { type RulesetChanges, compareRulesets } from '../../src/rules/compare-rulesets';
import { type Ruleset, buildRuleset, matchRule } from '../../src/rules/ruleset';
import { plainStatisticsKey, runtimeStatisticsLevels, statisticsKey } from '../../src/rules/statistics-key';
import { valueText } from '../../src/rules/values';
import { entries } from '../support/data/requests';
import { WEEKDAYS } from '../../src/rules/unit';
import { type RuleSketch, domainConfig, limit, linesOf, ruleConfig, rulesetOf, unlimited } from '../support/data/rules';

const OFFICE = { days: WEEKDAYS.slice(0, 5), from: '08:00', to: '18:00' };
const USER: RuleSketch = { key: 'user', rateLimit: limit(5, 'MINUTE') };

/** Runs a comparison to its end, and counts its interruptions. */
function compare(before: Ruleset, after: Ruleset) {
  const steps = compareRulesets(before, after);
  for (let interruptions = 0; ; interruptions += 1) {
    const { done, value } = steps.next();
    if (done === true) return { changes: value, interruptions };
  }
}

/** What has changed, without the kinds of changes that did not occur. */
function changed(before: Ruleset, after: Ruleset) {
  const changes: [string, RulesetChanges[keyof RulesetChanges]][] = Object.entries(compare(before, after).changes);
  return Object.fromEntries(
    changes.filter(([, { count }]) => count > 0).map(([kind, { names }]) => [kind, [...names].sort()]),
  );
}

describe('the comparison of two rulesets', () => {
  it('finds added and removed rules, at every level, with all rules nested in them, and nothing in equal ones', () => {
    const free = { key: 'plan', value: 'free', metadata: { a: 1 }, descriptors: [{ key: 'a' }, { key: 'b' }] };
    const [before, after] = [
      [USER, free],
      [USER, { key: 'plan', value: 'paid' }, { key: 'user', value: 'x*' }],
    ];
    const paid = ['shop.plan_paid', 'shop.user_x*'];
    const gone = ['shop.plan_free', 'shop.plan_free.a', 'shop.plan_free.b'];
    const [one, other] = [rulesetOf('shop', ...before), rulesetOf('shop', ...after)];
    expect(changed(one, other)).toEqual({ rulesAdded: paid, rulesRemoved: gone });
    expect(changed(other, one)).toEqual({ rulesAdded: gone, rulesRemoved: paid });
    expect([changed(one, one), changed(one, rulesetOf('shop', ...before))]).toEqual([{}, {}]);
    expect([one.size, other.size, rulesetOf('shop').size]).toEqual([4, 3, 0]);
  });

  it('finds added and removed domains, and counts their rules', () => {
    const domains = { domainsAdded: ['edge'], domainsRemoved: ['shop'] };
    const rules = { rulesAdded: ['edge.user'], rulesRemoved: ['shop.user'] };
    expect(changed(rulesetOf('shop', USER), rulesetOf('edge', USER))).toEqual({ ...domains, ...rules });
  });

  const limits = [
    limit(6, 'MINUTE'),
    limit(5, 'MINUTE', { unitMultiplier: 2 }),
    limit(5, 'MINUTE', { algorithm: 'token_bucket' }),
    limit(5, 'MINUTE', { burst: 9 }),
    limit(5, 'MINUTE', { lease: true }),
    limit(5, 'MINUTE', { lease: false }),
    limit(5, 'MINUTE', { calendar: { timeZone: 'UTC', startsOn: 1 } }),
    limit(5, 'MINUTE', { active: { timeZone: 'UTC', ranges: [{ days: ['monday'], from: '08:00', to: '18:00' }] } }),
    limit(5, 'MINUTE', { blockFor: { first: 60, factor: 1, most: 60, forgottenAfter: 0 } }),
    limit(5, 'HOUR'),
    undefined,
    limit(5, 'MINUTE', { unlimited: true }),
  ];
  const named = [limit(5, 'MINUTE', { name: 'x' }), limit(5, 'MINUTE', { replaces: ['x'] })];
  it.each<Partial<RuleSketch>>([
    ...[...limits, ...named].map((rateLimit) => ({ rateLimit })),
    ...[{ shadowMode: true }, { quotaMode: true }, { detailedMetric: true }, { valueToMetric: true }],
    ...[{ shareThreshold: true }, { addressPrefix: { ipv4: 24, ipv6: 64 } }, { metadata: { plan: 'free' } }],
  ])('finds a rule that differs in %j', (difference) => {
    const changes = changed(rulesetOf('shop', USER), rulesetOf('shop', { ...USER, ...difference }));
    expect(changes).toEqual({ rulesChanged: ['shop.user'] });
  });

  it('compares metadata as JSON, where the order of keys has no meaning', () => {
    const [one, reordered, other] = [
      { a: [], b: null },
      { b: null, a: [] },
      { a: {}, b: null },
    ].map((metadata) => rulesetOf('shop', { ...USER, metadata }));
    expect([changed(one!, reordered!), changed(one!, other!)]).toEqual([{}, { rulesChanged: ['shop.user'] }]);
  });

  const several = { key: 'user', rateLimits: [limit(5, 'MINUTE'), limit(9, 'DAY')] };
  it.each<Partial<RuleSketch>>([
    { rateLimits: [limit(5, 'MINUTE')] },
    { rateLimits: [limit(9, 'DAY'), limit(5, 'MINUTE')] },
    { rateLimits: [limit(5, 'MINUTE'), limit(9, 'DAY', { algorithm: 'sliding_window' })] },
    { allOrNothing: true },
    { rateLimits: undefined, rateLimit: limit(5, 'MINUTE') },
  ])('finds a rule with rate_limits that differs in %j', (difference) => {
    const changes = changed(rulesetOf('shop', several), rulesetOf('shop', { ...several, ...difference }));
    expect(changes).toEqual({ rulesChanged: ['shop.user'] });
  });

  it('pairs lists, networks and regular expressions by their texts, and compares whole lists', () => {
    const long = Array.from({ length: 40 }, (_, index) => `value${index}`);
    const both = [
      { ...USER, value: 'a,b' },
      { ...USER, valueRegex: 'a' },
      { ...USER, valueCidr: '10.0.0.0/8' },
    ];
    const one = rulesetOf('shop', ...both, { ...USER, valueIn: ['b', 'a'] }, { ...USER, valueIn: long });
    const other = rulesetOf(
      'shop',
      ...both,
      { ...USER, valueIn: ['a', 'b'] },
      { ...USER, valueIn: [...long.slice(1), 'value0', 'x'] },
    );
    const lists = rulesetOf(
      'shop',
      ...both,
      { ...USER, valueIn: ['b', 'c'] },
      { ...USER, valueIn: [...long.slice(1), 'value0'] },
    );
    expect([changed(one, one), changed(one, lists)]).toEqual([
      {},
      { rulesAdded: ['shop.user_b,c'], rulesRemoved: ['shop.user_a,b'] },
    ]);
    expect(one.size).toBe(5);
    const text = 'shop.user_value0,value1,value10,value11,value12,value13,value14,value15,+';
    expect(changed(one, other)).toEqual({ rulesAdded: [`${text}33`], rulesRemoved: [`${text}32`] });
    const renamed = rulesetOf(
      'shop',
      ...both,
      { ...USER, valueIn: ['a', 'b'] },
      { ...USER, valueIn: [...long.slice(0, -1), 'x'] },
    );
    expect(changed(one, renamed)).toEqual({ rulesChanged: [`${text}32`] });
  });

  it('finds a default that was added, removed or changed', () => {
    const [none, one, other] = [undefined, 1, 2].map((number) => {
      const rateLimit = number === undefined ? undefined : limit(number, 'DAY');
      const unmatched = rateLimit && ruleConfig({ key: 'default_rate_limit', rateLimit });
      return buildRuleset([{ ...domainConfig('shop', USER), unmatched }]);
    });
    const names = ['shop.default_rate_limit'];
    expect(changed(none!, one!)).toEqual({ rulesAdded: names });
    expect(changed(one!, none!)).toEqual({ rulesRemoved: names });
    expect(changed(one!, other!)).toEqual({ rulesChanged: names });
    // Of a whole domain, too.
    const nothing = buildRuleset([]);
    expect(changed(nothing, one!)).toEqual({ domainsAdded: ['shop'], rulesAdded: [...names, 'shop.user'] });
    expect(changed(one!, nothing)).toEqual({ domainsRemoved: ['shop'], rulesRemoved: [...names, 'shop.user'] });
  });

  it('counts all changes, names the first three, and is interrupted every 500 rules', () => {
    function large(requests: number) {
      const rateLimit = limit(requests, 'DAY');
      return rulesetOf(
        'shop',
        ...Array.from({ length: 10_000 }, (_, index) => ({ key: 'user', value: `u${index}`, rateLimit })),
      );
    }
    const { changes, interruptions } = compare(large(1), large(2));
    expect(changes.rulesChanged).toEqual({ count: 10_000, names: ['shop.user_u0', 'shop.user_u1', 'shop.user_u2'] });
    expect(interruptions).toBe(40);
  });
});

it('the list of rules has the lines of the Go service, a comment on unlimited rules, and the units of longer windows', () => {
  const rules: RuleSketch[] = [
    { key: 'user', rateLimit: limit(10, 'MINUTE'), quotaMode: true },
    { key: 'staff', rateLimit: unlimited() },
    { key: 'banned', rateLimit: limit(0, 'DAY'), shadowMode: true },
    { key: 'long', rateLimit: limit(5, 'DAY', { unitMultiplier: 3 }) },
    { key: 'slide', rateLimit: limit(5, 'DAY', { algorithm: 'sliding_window' }) },
    { key: 'bucket', rateLimit: limit(5, 'DAY', { algorithm: 'token_bucket', burst: 9 }) },
    { key: 'monthly', rateLimit: limit(5, 'MONTH', { calendar: { timeZone: 'Asia/Tokyo', startsOn: 15 } }) },
    { key: 'part', rateLimit: limit(5, 'DAY'), enforcePercent: 7, onStoreFailure: 'deny' },
    { key: 'two', rateLimits: [limit(5, 'SECOND'), limit(9, 'DAY')] },
    { key: 'both', rateLimits: [limit(5, 'SECOND')], allOrNothing: true },
    { key: 'leased', rateLimit: limit(5, 'DAY', { algorithm: 'token_bucket', lease: true }) },
    { key: 'exact', rateLimit: limit(5, 'DAY', { lease: false }) },
    {
      key: 'hours',
      addressPrefix: { ipv4: 24, ipv6: 64 },
      rateLimit: limit(5, 'DAY', { active: { timeZone: 'UTC', ranges: [OFFICE, { ...OFFICE, days: WEEKDAYS }] } }),
    },
    {
      key: 'blocks',
      rateLimit: limit(5, 'DAY', { blockFor: { first: 86_400, factor: 1, most: 86_400, forgottenAfter: 0 } }),
    },
    {
      key: 'blocks_longer',
      rateLimit: limit(5, 'MINUTE', { blockFor: { first: 90, factor: 2, most: 3600, forgottenAfter: 86_400 } }),
    },
    { key: 'exempt' },
  ];
  const unmatched = ruleConfig({ key: 'on_unmatched', value: 'deny', rateLimit: unlimited({ unlimited: false }) });
  expect(linesOf(buildRuleset([domainConfig('shop', ...rules), { ...domainConfig('closed'), unmatched }]))).toEqual([
    'closed.on_unmatched_deny: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false # denied',
    'shop.banned: unit=DAY requests_per_unit=0, shadow_mode: true, quota_mode: false',
    'shop.blocks: unit=DAY requests_per_unit=5 block_for=24h, shadow_mode: false, quota_mode: false',
    'shop.blocks_longer: unit=MINUTE requests_per_unit=5 block_for=1m30s factor=2 most=1h ' +
      'forgotten_after=24h, shadow_mode: false, quota_mode: false',
    'shop.both: unit=SECOND requests_per_unit=5, shadow_mode: false, quota_mode: false, all_or_nothing: true',
    'shop.bucket: unit=DAY requests_per_unit=5 algorithm=token_bucket burst=9, shadow_mode: false, quota_mode: false',
    'shop.exact: unit=DAY requests_per_unit=5 lease=false, shadow_mode: false, quota_mode: false',
    'shop.hours: unit=DAY requests_per_unit=5 active=monday-friday 08:00-18:00,08:00-18:00 UTC, ' +
      'shadow_mode: false, quota_mode: false, address_prefix of hours: 24/64',
    'shop.leased: unit=DAY requests_per_unit=5 algorithm=token_bucket lease=true, shadow_mode: ' +
      'false, quota_mode: false',
    'shop.long: unit=DAY unit_multiplier=3 requests_per_unit=5, shadow_mode: false, quota_mode: false',
    'shop.monthly: unit=MONTH time_zone=Asia/Tokyo starts_on=15 requests_per_unit=5, shadow_mode: ' +
      'false, quota_mode: false',
    'shop.part: unit=DAY requests_per_unit=5, shadow_mode: false, quota_mode: false, ' +
      'enforce_percent: 7, on_store_failure: deny',
    'shop.slide: unit=DAY requests_per_unit=5 algorithm=sliding_window, shadow_mode: false, quota_mode: false',
    'shop.staff: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false # unlimited',
    'shop.two: unit=DAY requests_per_unit=9, shadow_mode: false, quota_mode: false',
    'shop.two: unit=SECOND requests_per_unit=5, shadow_mode: false, quota_mode: false',
    'shop.user: unit=MINUTE requests_per_unit=10, shadow_mode: false, quota_mode: true',
  ]);
});

it('top-level rules of one domain from several files are joined in their order; of equal ones the first counts', () => {
  const files = ['x*', '*', 'x*'].map((value, index) =>
    domainConfig('shop', { key: 'a', value, rateLimit: limit(index, 'MINUTE') }),
  );
  const ruleset = buildRuleset(files);
  const found = matchRule(ruleset.domains.get('shop')!, entries('a=xy'))?.limit?.requestsPerUnit;
  expect([ruleset.size, found]).toEqual([2, 0]);
});

describe('the statistics key of a rule', () => {
  const [D, V, S] = [{ detailedMetric: true }, { valueToMetric: true }, { shareThreshold: true }];
  const { rateLimit } = USER;

  function keysOf(rule: RuleSketch, text: string) {
    const matched = matchRule(rulesetOf('shop', rule).domains.get('shop')!, entries(text))!;
    const key = statisticsKey(matched, entries(text));
    return { key, plain: plainStatisticsKey(matched), isRuntime: runtimeStatisticsLevels(matched).length > 0 };
  }

  // configured value, flags, request value, expected key, whether it contains the request value
  it.each<[value: string, flags: Partial<RuleSketch>, sent: string, key: string, isRuntime: boolean]>([
    ['', {}, 'x', 'shop.k', false],
    ['', D, 'x', 'shop.k_x', true],
    ['', V, 'x', 'shop.k_x', true],
    ['', V, '', 'shop.k', true],
    ['', { ...D, ...V }, '', 'shop.k_', true],
    ['x', {}, 'x', 'shop.k_x', false],
    ['x', D, 'x', 'shop.k_x', false],
    ['a*', {}, 'abc', 'shop.k_a*', false],
    ['a*', D, 'abc', 'shop.k_abc', true],
    ['a*', S, 'abc', 'shop.k_a*', false],
    ['a*', { ...S, ...V }, 'abc', 'shop.k_a', false],
    ['a*c*', { ...S, ...D }, 'abcd', 'shop.k_a', false],
    ['*c', { ...S, ...V }, 'abc', 'shop.k_', false],
    ['', { valueIn: ['b', 'a'] }, 'b', 'shop.k_a,b', false],
    ['', { valueIn: ['b', 'a'], ...V }, 'b', 'shop.k_b', true],
    ['', { valueIn: ['b', 'a'], ...S, ...V }, 'b', 'shop.k_a,b', false],
    ['', { valueCidr: '10.0.0.0/8', ...S, ...D }, '10.1.1.1', 'shop.k_10.0.0.0/8', false],
    ['', { valueRegex: 'a*b', ...S, ...D }, 'b', 'shop.k_a*b', false],
    ['', { valueRegex: 'a*b', ...D }, 'b', 'shop.k_b', true],
  ])('with the value %p and %o for the request value %p is %s', (value, flags, sent, key, isRuntime) => {
    const text = valueText({ value, ...flags });
    const plain = text === '' ? 'shop.k' : `shop.k_${text}`;
    expect(keysOf({ key: 'k', value, rateLimit, ...flags }, `k=${sent}`)).toEqual({ key, plain, isRuntime });
  });

  it.each<[name: string, outer: Partial<RuleSketch>, inner: Partial<RuleSketch>, key: string]>([
    ['each level adds its key', {}, {}, 'shop.a.b'],
    ['detailed_metric of the last rule includes the value of every level', {}, D, 'shop.a_x.b_y'],
    ['detailed_metric of an outer rule alone has no effect', D, {}, 'shop.a.b'],
    ['value_to_metric of the outer level includes its value', V, {}, 'shop.a_x.b'],
    ['a shared outer level keeps its pattern', { value: 'x*', ...S }, V, 'shop.a_x*.b_y'],
    ['a shared outer level under detailed_metric shows its prefix', { value: 'x*', ...S }, D, 'shop.a_x.b_y'],
    ['a shared outer level with value_to_metric shows its prefix', { value: 'x*', ...S, ...V }, {}, 'shop.a_x.b'],
  ])('of two levels: %s', (_name, outer, inner, key) => {
    const nested = { key: 'a', ...outer, descriptors: [{ key: 'b', rateLimit, ...inner }] };
    expect(keysOf(nested, 'a=x,b=y').key).toBe(key);
  });
});
