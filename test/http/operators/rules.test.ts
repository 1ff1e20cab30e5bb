import { setTimeout as pause } from 'node:timers/promises';
import { Limiter } from '../../../src/limiter/limiter';
import { NO_HITS_ADDEND } from '../../../src/limiter/request';
import { buildRuleset } from '../../../src/rules/ruleset';
import { Statistics } from '../../../src/statistics/statistics';
import { domainConfig, limit } from '../../support/data/rules';
import { DEFAULT_OPTIONS } from '../../support/data/service';
import { ServedApi, always, configOf, rulesetOf } from './served-api';

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
    rate_limit: { unit: day, requests_per_unit: 2 }
    quota_mode: true
`,
  'other.yaml': 'domain: a/b\ndescriptors:\n- key: k\n',
};

const FLAGS = {
  shadowMode: false,
  quotaMode: false,
  shareThreshold: false,
  detailedMetric: false,
  valueToMetric: false,
  metadata: null,
};
const NOTHING = { hits: 0, within: 0, near: 0, over: 0, overByLocalCache: 0, shadow: 0 };

it('/api/rules is the tree of the active rules with their places, limits and flags', async () => {
  await using api = await ServedApi.start({ config$: always(configOf(rulesetOf(RULES))) });
  expect(await api.json('/api/rules')).toEqual({
    loaded: { source: 'files in /rules', version: '7', at: '2026-02-03T04:05:06.000Z', rules: 5 },
    rejected: null,
    domains: [
      {
        domain: 'shop',
        descriptors: [
          {
            key: 'user',
            value: 'ann',
            place: { file: 'api/shop.yaml', line: 3, column: 10 },
            limit: { unlimited: false, unit: 'HOUR', requestsPerUnit: 3, name: 'ann', replaces: ['all'] },
            ...FLAGS,
            shadowMode: true,
            statisticsKey: 'shop.user_ann',
            totals: NOTHING,
            descriptors: [
              {
                key: 'path',
                value: '',
                place: { file: 'api/shop.yaml', line: 8, column: 14 },
                limit: { unlimited: true, unit: null, requestsPerUnit: null, name: '', replaces: [] },
                ...FLAGS,
                metadata: { team: 'web' },
                statisticsKey: 'shop.user_ann.path',
                totals: NOTHING,
                descriptors: [],
              },
            ],
          },
          {
            key: 'user',
            value: '',
            place: { file: 'api/shop.yaml', line: 15, column: 10 },
            limit: { unlimited: false, unit: 'DAY', requestsPerUnit: 2, name: '', replaces: [] },
            ...FLAGS,
            quotaMode: true,
            valueToMetric: true,
            statisticsKey: 'shop.user',
            totals: NOTHING,
            descriptors: [],
          },
          {
            key: 'path',
            value: '/api/*',
            place: { file: 'api/shop.yaml', line: 11, column: 10 },
            limit: { unlimited: false, unit: 'MINUTE', requestsPerUnit: 0, name: '', replaces: [] },
            ...FLAGS,
            shareThreshold: true,
            statisticsKey: 'shop.path_/api/*',
            totals: NOTHING,
            descriptors: [],
          },
        ],
      },
      {
        domain: 'a/b',
        descriptors: [
          {
            key: 'k',
            value: '',
            place: { file: 'other.yaml', line: 3, column: 8 },
            limit: null,
            ...FLAGS,
            statisticsKey: 'a/b.k',
            totals: null,
            descriptors: [],
          },
        ],
      },
    ],
  });
});

it('/api/rules/:domain has the rules of one domain', async () => {
  await using api = await ServedApi.start({ config$: always(configOf(rulesetOf(RULES))) });
  const all = await api.json('/api/rules');
  expect(await api.json('/api/rules/a%2Fb')).toEqual({
    ...Object(all),
    domains: [expect.objectContaining({ domain: 'a/b', descriptors: [expect.objectContaining({ key: 'k' })] })],
  });
});

it('/api/rules/:domain is 404 for a domain without rules', async () => {
  await using api = await ServedApi.start({ config$: always(configOf(rulesetOf(RULES))) });
  const response = await api.send('/api/rules/none');
  expect([response.status, response.headers.get('content-type')]).toEqual([404, 'application/problem+json']);
  expect(await response.json()).toMatchObject({ code: 'unknown_domain' });
});

it('/api/rules says that no rules are loaded, and why the last ones were rejected', async () => {
  const rejected = { reason: 'a.yaml: empty', at: Date.parse('2026-02-03T04:05:07.000Z') };
  await using api = await ServedApi.start({ config$: always({ loaded: undefined, rejected }) });
  expect(await api.json('/api/rules')).toEqual({
    loaded: null,
    rejected: { reason: 'a.yaml: empty', at: '2026-02-03T04:05:07.000Z' },
    domains: [],
  });
});

it('the totals of a rule include its keys with request values, whatever keys are rolled up', async () => {
  const ruleset = rulesetOf(RULES);
  // One key with a request value; further ones are rolled up into the rule.
  const statistics = new Statistics(1);
  const limiter = new Limiter(DEFAULT_OPTIONS, statistics);
  for (const value of ['bob', 'bob', 'bob', 'eve', 'joe']) {
    const descriptor = { entries: [{ key: 'user', value }], limit: undefined, hitsAddend: NO_HITS_ADDEND };
    const request = { domain: 'shop', descriptors: [{ ...descriptor, isNegativeHits: false }], hitsAddend: 2 };
    const decision = limiter.begin(request, ruleset, 0);
    for (const operation of decision.operations) operation.after = value === 'bob' ? 5 : 2;
    decision.verdict();
  }
  await using api = await ServedApi.start({ config$: always(configOf(ruleset)), statistics });
  expect(await api.json('/api/rules/shop')).toMatchObject({
    domains: [
      {
        descriptors: [
          { statisticsKey: 'shop.user_ann', totals: NOTHING },
          { statisticsKey: 'shop.user', totals: { hits: 10, within: 4, over: 6, shadow: 0 } },
          {},
        ],
      },
    ],
  });
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
  const descriptor = { entries: [{ key: 'path', value: '/api/x' }], limit: undefined, hitsAddend: NO_HITS_ADDEND };
  const request = { domain: 'shop', descriptors: [{ ...descriptor, isNegativeHits: false }], hitsAddend: 2 };
  const decision = new Limiter(DEFAULT_OPTIONS, statistics).begin(request, ruleset, 0);
  for (const operation of decision.operations) operation.after = 2;
  decision.verdict();
  await using api = await ServedApi.start({ config$: always(configOf(ruleset)), statistics });
  expect(await api.json('/api/rules/shop')).toMatchObject({
    domains: [{ descriptors: [{ statisticsKey, totals: { hits: 2, within: 2 } }] }],
  });
});

it('a listing of many rules is sent in parts, between which the event loop turns', async () => {
  const many = Array.from({ length: 20_000 }, (_, index) => ({ key: 'user', value: `user${index}` }));
  const ruleset = buildRuleset([domainConfig('shop', ...many)]);
  await using api = await ServedApi.start({ config$: always(configOf(ruleset)) });
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
