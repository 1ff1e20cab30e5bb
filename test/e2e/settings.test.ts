import { RateLimitResponse_Code as Code, type RateLimitResponse } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const RULES = {
  'shop.yaml': `domain: shop
descriptors:
  - { key: banned, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: ten, rate_limit: { unit: day, requests_per_unit: 10 }, metadata: { tier: gold } }
`,
};

/** Two descriptors, one of them over the limit; requested twice. */
async function answers(env: Record<string, string>): Promise<[RateLimitResponse, ReadonlyMap<string, number>]> {
  await using rules = await RuleFolder.with(RULES);
  await using weir = await WeirProcess.start({ env: { ...rules.env, ...env } });
  using client = new RateLimitClient(weir.grpcAddress);
  await client.shouldRateLimit('shop', ['banned=x', 'ten=x'], 4);
  return [await client.shouldRateLimit('shop', ['banned=x', 'ten=x'], 4), await weir.statistics()];
}

function of(key: string) {
  return `ratelimit.service.rate_limit.shop.${key}`;
}

describe('decisions follow the setting', () => {
  it.each<
    [
      name: string,
      value: string,
      expectAct: (answer: RateLimitResponse, statistics: ReadonlyMap<string, number>) => void,
    ]
  >([
    ['SHADOW_MODE', 'false', ({ overallCode }) => expect(overallCode).toBe(Code.OVER_LIMIT)],
    [
      'SHADOW_MODE',
      'true',
      ({ overallCode, statuses }, statistics) => {
        expect([overallCode, statuses[0]?.code]).toEqual([Code.OK, Code.OVER_LIMIT]);
        expect(statistics.get('ratelimit.service.global_shadow_mode')).toBe(2);
      },
    ],
    ['QUOTA_MODE', 'true', ({ overallCode }) => expect(overallCode).toBe(Code.OK)],
    ['NEAR_LIMIT_RATIO', '0.5', (_answer, statistics) => expect(statistics.get(of('ten.near_limit'))).toBe(3)],
    [
      'RESPONSE_DYNAMIC_METADATA',
      'true',
      ({ dynamicMetadata }) =>
        expect(dynamicMetadata).toEqual({
          domain: 'shop',
          descriptors: [{ entries: ['banned=x'] }, { entries: ['ten=x'] }],
          hitsAddend: 4,
          metadata: { tier: 'gold' },
          decisions: [
            expect.objectContaining({ code: 'OVER_LIMIT', reason: 'over_limit', rule: 'shop.banned', count: 8 }),
            expect.objectContaining({ code: 'OK', reason: 'within_limit', rule: 'shop.ten', count: 8 }),
          ],
        }),
    ],
    [
      'LIMIT_NAME_FROM_RULE',
      'true',
      ({ statuses }) =>
        expect(statuses.map(({ currentLimit }) => currentLimit?.name)).toEqual(['shop.banned', 'shop.ten']),
    ],
    [
      'LIMIT_RESPONSE_HEADERS_ENABLED',
      'true',
      ({ responseHeadersToAdd }) =>
        expect(responseHeadersToAdd.map(({ key }) => key)).toEqual([
          'RateLimit-Limit',
          'RateLimit-Remaining',
          'RateLimit-Reset',
        ]),
    ],
    ['STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', 'true', ({ statuses }) => expect(statuses[1]?.limitRemaining).toBe(10)],
    [
      'LOCAL_CACHE_SIZE_IN_BYTES',
      '100000',
      (_answer, statistics) => expect(statistics.get(of('banned.over_limit_with_local_cache'))).toBe(4),
    ],
    [
      'LocalCacheSizeInBytes',
      '0',
      (_answer, statistics) => expect(statistics.has('ratelimit.localcache.entryCount')).toBe(false),
    ],
  ])('%s=%s', async (name, value, expectAct) => {
    expectAct(...(await answers({ [name]: value })));
  });
});

test('the dynamic metadata is that of the Go service with RESPONSE_DYNAMIC_METADATA_DECISIONS=false', async () => {
  const env = { RESPONSE_DYNAMIC_METADATA: 'true', RESPONSE_DYNAMIC_METADATA_DECISIONS: 'false' };
  const [{ dynamicMetadata }] = await answers(env);
  expect(dynamicMetadata).toEqual({
    domain: 'shop',
    descriptors: [{ entries: ['banned=x'] }, { entries: ['ten=x'] }],
    hitsAddend: 4,
    metadata: { tier: 'gold' },
  });
});

describe('the response headers', () => {
  it('have the names of LIMIT_LIMIT_HEADER, LIMIT_REMAINING_HEADER and LIMIT_RESET_HEADER', async () => {
    await using rules = await RuleFolder.with(RULES);
    await using weir = await WeirProcess.start({
      env: {
        ...rules.env,
        LIMIT_RESPONSE_HEADERS_ENABLED: 'true',
        LIMIT_LIMIT_HEADER: 'X-Allowed',
        LIMIT_REMAINING_HEADER: 'X-Left',
        LIMIT_RESET_HEADER: 'X-Seconds-To-Go',
      },
    });
    using client = new RateLimitClient(weir.grpcAddress);
    const { statuses, responseHeadersToAdd } = await client.shouldRateLimit('shop', ['ten=x'], 4);
    const reset = String(statuses[0]?.durationUntilReset?.seconds);
    expect(responseHeadersToAdd.map(({ key, value }) => [key, value])).toEqual([
      ['X-Allowed', '10'],
      ['X-Left', '6'],
      ['X-Seconds-To-Go', reset],
    ]);
    expect(Number(reset)).toBeGreaterThan(0);
  });
});
