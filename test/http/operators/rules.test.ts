import { setTimeout as pause } from 'node:timers/promises';
import { DEFAULT_OPTIONS } from '../../../src/limiter/options';
import { Limiter } from '../../../src/limiter/limiter';
import { NO_HITS_ADDEND } from '../../../src/limiter/request';
import { type Ruleset, buildRuleset } from '../../../src/rules/ruleset';
import { Statistics } from '../../../src/statistics/statistics';
import { type RuleSketch, domainConfig, limit } from '../../support/data/rules';
import { ServedApi, always, rulesetOf } from './served-api';

const RULES = {
  'api/shop.yaml': `domain: shop
descriptors:
  - key: user
    value: ann
    shadow_mode: true
    rate_limit: { unit: hour, requests_per_unit: 3, name: ann, replaces: [{ name: all }] }
    descriptors:
      - key: path
        rate_limit: { unlimited: true }
        metadata: { team: web }
  - key: path
    value: /api/*
    share_threshold: true
    rate_limit: { unit: minute, requests_per_unit: 0 }
  - key: user
    value_to_metric: true
    rate_limit: { unit: day, unit_multiplier: 3, requests_per_unit: 2, algorithm: token_bucket, burst: 5, lease: true }
    quota_mode: true
    enforce_percent: 20
    on_store_failure: deny
`,
  'other.yaml': `domain: a/b
descriptors:
- key: k
on_unmatched: deny
`,
  'values.yaml': `domain: values
descriptors:
- key: k
  value_in: [b, a]
  rate_limit: { unit: month, requests_per_unit: 1, calendar: { time_zone: Asia/Tokyo, starts_on: 15 } }
- { key: k, value_cidr: ::FFFF:10.0.0.0/104 }
- key: k
  value_regex: ^x
  all_or_nothing: true
  rate_limits: [{ unit: second, requests_per_unit: 3 }, { unit: day, requests_per_unit: 9 }]
`,
};

const FLAGS = {
  allOrNothing: false,
  shadowMode: false,
  enforcePercent: null,
  quotaMode: false,
  onStoreFailure: null,
  shareThreshold: false,
  addressPrefix: null,
  detailedMetric: false,
  valueToMetric: false,
  metadata: null,
};
const NOTHING = { calls: 0, hits: 0, within: 0, near: 0, over: 0, overByLocalCache: 0, shadow: 0 };

/** A rule in the answer, without limit, flags and nested rules unless they are given. */
function ruleOf(place: string, fields: Readonly<Record<string, unknown>>) {
  const [file, line, column] = place.split(':');
  const values = { value: '', valueIn: null, valueCidr: null, valueRegex: null };
  const described = { ...values, limit: null, limits: null, totals: NOTHING, descriptors: [], ...FLAGS, ...fields };
  return { place: { file, line: Number(line), column: Number(column) }, ...described };
}

function limitOf(requestsPerUnit: number | null, unit: string | null, fields = {}) {
  return {
    unlimited: false,
    unit,
    unitMultiplier: unit === null ? null : 1,
    calendar: null,
    active: null,
    activity: null,
    blockFor: null,
    postpaid: false,
    requestsPerUnit,
    algorithm: null,
    burst: null,
    lease: null,
    name: '',
    replaces: [],
    ...fields,
  };
}

it('/api/rules is the tree of the active rules with their places, limits and flags, of all domains or one', async () => {
  await using api = await ServedApi.start({ ruleset: rulesetOf(RULES) });
  const nested = ruleOf('api/shop.yaml:8:14', {
    key: 'path',
    limit: limitOf(null, null, { unlimited: true }),
    metadata: { team: 'web' },
    statisticsKey: 'shop.user_ann.path',
  });
  const shop = [
    ruleOf('api/shop.yaml:3:10', {
      key: 'user',
      value: 'ann',
      limit: limitOf(3, 'HOUR', { name: 'ann', replaces: ['all'] }),
      shadowMode: true,
      statisticsKey: 'shop.user_ann',
      descriptors: [nested],
    }),
    ruleOf('api/shop.yaml:15:10', {
      key: 'user',
      limit: limitOf(2, 'DAY', { unitMultiplier: 3, algorithm: 'token_bucket', burst: 5, lease: true }),
      enforcePercent: 20,
      quotaMode: true,
      onStoreFailure: 'deny',
      valueToMetric: true,
      statisticsKey: 'shop.user',
    }),
    ruleOf('api/shop.yaml:11:10', {
      key: 'path',
      value: '/api/*',
      limit: limitOf(0, 'MINUTE'),
      shareThreshold: true,
      statisticsKey: 'shop.path_/api/*',
    }),
  ];
  const other = [ruleOf('other.yaml:3:8', { key: 'k', statisticsKey: 'a/b.k', totals: null })];
  const values = [
    ruleOf('values.yaml:3:8', {
      key: 'k',
      value: 'a,b',
      valueIn: ['b', 'a'],
      limit: limitOf(1, 'MONTH', { calendar: { timeZone: 'Asia/Tokyo', startsOn: 15 } }),
      statisticsKey: 'values.k_a,b',
    }),
    ruleOf('values.yaml:6:10', {
      key: 'k',
      value: '10.0.0.0/8',
      valueCidr: '10.0.0.0/8',
      statisticsKey: 'values.k_10_0_0_0/8',
      totals: null,
    }),
    ruleOf('values.yaml:7:8', {
      key: 'k',
      value: '^x',
      valueRegex: '^x',
      limit: limitOf(3, 'SECOND'),
      limits: [limitOf(3, 'SECOND'), limitOf(9, 'DAY')],
      allOrNothing: true,
      statisticsKey: 'values.k_^x',
    }),
  ];
  const unmatched = ruleOf('other.yaml:4:1', {
    key: 'on_unmatched',
    value: 'deny',
    statisticsKey: 'a/b.on_unmatched_deny',
  });
  const info = {
    loaded: { source: 'files in /rules', version: '7', at: '2026-02-03T04:05:06.000Z', rules: 8 },
    rejected: null,
  };
  const domains = [
    { domain: 'shop', unmatched: null, descriptors: shop },
    { domain: 'a/b', unmatched, descriptors: other },
    { domain: 'values', unmatched: null, descriptors: values },
  ];
  expect(await api.json('/api/rules')).toEqual({ ...info, domains });
  expect(await api.json('/api/rules/a%2Fb')).toEqual({ ...info, domains: domains.slice(1, 2) });
  const response = await api.send('/api/rules/none');
  expect([response.status, response.headers.get('content-type')]).toEqual([404, 'application/problem+json']);
  expect(await response.json()).toMatchObject({
    code: 'unknown_domain',
    detail: 'the active rules have no such domain; their domains are shop, a/b, values',
  });
});

it('/api/rules reports that no rules are loaded, and why the last ones were rejected', async () => {
  const rejected = { reason: 'a.yaml: empty', at: Date.parse('2026-02-03T04:05:07.000Z') };
  await using api = await ServedApi.start({ config$: always({ loaded: undefined, rejected }) });
  expect(await api.json('/api/rules')).toEqual({
    loaded: null,
    rejected: { reason: 'a.yaml: empty', at: '2026-02-03T04:05:07.000Z' },
    domains: [],
  });
});

it('with perKey, /api/rules has the first rules of each key at each level, and none that is nested in one left out', async () => {
  function ruleOfKey(key: string, value: string, ...descriptors: readonly RuleSketch[]) {
    return { key, value, rateLimit: limit(5, 'MINUTE'), descriptors };
  }
  const [ann, bob, joe] = ['ann', 'bob', 'joe'].map((user) =>
    ruleOfKey('user', user, ...['/a', '/b', '/c'].map((path) => ruleOfKey('path', path))),
  );
  const rules = [ann!, ruleOfKey('plan', 'x'), bob!, joe!, ruleOfKey('plan', 'y')];
  const ruleset = buildRuleset([domainConfig('shop', ...rules), domainConfig('other', ann!)]);
  await using api = await ServedApi.start({ ruleset });
  const nested = [{ value: '/a' }, { value: '/b' }];
  const listed = [
    { value: 'ann', descriptors: nested },
    { value: 'bob', descriptors: nested },
    { value: 'x', descriptors: [] },
    { value: 'y', descriptors: [] },
  ];
  const shop = { domain: 'shop', descriptors: listed };
  const other = { domain: 'other', descriptors: [{ value: 'ann', descriptors: nested }] };
  expect(await api.json('/api/rules?perKey=2')).toMatchObject({ domains: [shop, other] });
  expect(await api.json('/api/rules/shop?perKey=2')).toMatchObject({ domains: [shop] });
  for (const perKey of ['0', '1000', 'x', '2&perKey=3']) {
    const response = await api.send(`/api/rules?perKey=${perKey}`);
    expect([perKey, response.status]).toEqual([perKey, 400]);
    expect(await response.json()).toMatchObject({ detail: 'perKey must be a number from 1 to 999' });
  }
});

/** Decides requests of the domain shop with one descriptor and 2 hits each, whose counts are given. */
function decideWith(
  statistics: Statistics,
  ruleset: Ruleset,
  counts: readonly (readonly [value: string, count: number])[],
) {
  const limiter = new Limiter(DEFAULT_OPTIONS, statistics);
  for (const [value, count] of counts) {
    const entries = [{ key: value.startsWith('/') ? 'path' : 'user', value }];
    const descriptor = { entries, limit: undefined, hitsAddend: NO_HITS_ADDEND, isNegativeHits: false };
    const decision = limiter.begin({ domain: 'shop', descriptors: [descriptor], hitsAddend: 2 }, ruleset, 0);
    for (const operation of decision.operations) operation.countAfter = count;
    decision.verdict();
  }
}

it('the totals of a rule include its keys with request values, whatever keys are rolled up', async () => {
  const ruleset = rulesetOf(RULES);
  // One key with a request value; further ones are rolled up into the rule.
  const statistics = new Statistics(1);
  decideWith(statistics, ruleset, [...Array(3).fill(['bob', 5]), ['eve', 2], ['joe', 2]]);
  await using api = await ServedApi.start({ ruleset, statistics });
  const totals = { calls: 5, hits: 10, within: 4, over: 6, shadow: 6 };
  const descriptors = [{ statisticsKey: 'shop.user_ann', totals: NOTHING }, { statisticsKey: 'shop.user', totals }, {}];
  expect(await api.json('/api/rules/shop')).toMatchObject({ domains: [{ descriptors }] });
});

it('the totals of a rule are at most the largest number of the schema', async () => {
  const ruleset = rulesetOf(RULES);
  const statistics = new Statistics(10);
  Object.assign(statistics.rule('shop.user'), { totalHits: 2 ** 60, withinLimit: 2 ** 60, calls: 9 });
  await using api = await ServedApi.start({ ruleset, statistics });
  const totals = { calls: 9, hits: Number.MAX_SAFE_INTEGER, within: Number.MAX_SAFE_INTEGER, over: 0 };
  expect(await api.json('/api/rules/shop')).toMatchObject({ domains: [{ descriptors: [{}, { totals }, {}] }] });
});

it.each([
  [{ shareThreshold: true, valueToMetric: true }, 'shop.path_/api/'],
  [{ shareThreshold: true, detailedMetric: true }, 'shop.path_/api/'],
  [{ shareThreshold: true }, 'shop.path_/api/*'],
  [{ valueToMetric: true }, 'shop.path_/api/*'],
])('a rule with %j has the totals of its key or keys, and is listed as %s', async (flags, statisticsKey) => {
  const rule = { key: 'path', value: '/api/*', rateLimit: limit(5, 'MINUTE'), ...flags };
  const ruleset = buildRuleset([domainConfig('shop', rule)]);
  const statistics = new Statistics(10);
  decideWith(statistics, ruleset, [['/api/x', 2]]);
  await using api = await ServedApi.start({ ruleset, statistics });
  const descriptors = [{ statisticsKey, totals: { hits: 2, within: 2 } }];
  expect(await api.json('/api/rules/shop')).toMatchObject({ domains: [{ descriptors }] });
});

it('a listing of many rules is sent in parts, between which the event loop turns', async () => {
  const many = Array.from({ length: 20_000 }, (_, index) => ({ key: 'user', value: `user${index}` }));
  const ruleset = buildRuleset([domainConfig('shop', ...many)]);
  await using api = await ServedApi.start({ ruleset });
  let turns = 0;
  let isDone = false;
  async function countTurns() {
    while (!isDone) {
      await pause(0);
      turns += 1;
    }
  }
  const counting = countTurns();
  const response = await api.send('/api/rules');
  const text = await response.text();
  isDone = true;
  await counting;
  expect(Object(JSON.parse(text)).domains[0].descriptors).toHaveLength(20_000);
  expect(response.headers.get('transfer-encoding')).toBe('chunked');
  // One part has 200 rules: without turns between them, the timers of this thread would not run.
  expect(turns).toBeGreaterThan(20);
});
