import { join } from 'node:path';
import { RateLimitResponse_Code as Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { RateLimitClient } from '../support/clients/grpc-client';
import { WeirProcess } from '../support/processes/weir-process';
import { roomInMinute } from '../support/waiting/window-room';
import { Shop } from './shop';

test('the example rules count each user separately, over gRPC and HTTP together, up to the limit', async () => {
  const root = join(__dirname, '../../examples');
  await using weir = await WeirProcess.start({ env: { RUNTIME_ROOT: root, RUNTIME_WATCH_ROOT: 'false' } });
  using client = new RateLimitClient(weir.grpcAddress);
  const body = JSON.stringify({ domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'both' }] }] });
  await roomInMinute();
  for (let call = 1; call <= 5; call += 1) {
    const { statuses } = await client.shouldRateLimit('shop', ['user=both']);
    expect(statuses[0]).toMatchObject({ code: Code.OK, limitRemaining: 11 - 2 * call });
    const response = await weir.http('/json', { method: 'POST', body });
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json']);
  }
  expect((await client.shouldRateLimit('shop', ['user=both'])).overallCode).toBe(Code.OVER_LIMIT);
  const over = await weir.http('/json', { method: 'POST', body });
  const currentLimit = { requestsPerUnit: 10, unit: 'MINUTE' };
  const limited = { overallCode: 'OVER_LIMIT', statuses: [{ code: 'OVER_LIMIT', currentLimit }] };
  expect([over.status, await over.json()]).toMatchObject([429, limited]);
  expect((await client.shouldRateLimit('shop', ['user=other'])).overallCode).toBe(Code.OK);
});

test('rules match by list, network and regular expression, by the calendar, for some callers, and by default', async () => {
  const limit = 'rate_limit: { unit: year, requests_per_unit: 1000 }';
  const rules = `domain: shop
descriptors:
  - { key: user, value_in: [anna, bert], ${limit} }
  - { key: ip, value_cidr: 10.0.0.0/8, ${limit} }
  - { key: path, value_regex: "^/v[0-9]+/", share_threshold: true, ${limit} }
  - { key: zone, rate_limit: { unit: year, calendar: { time_zone: Asia/Tokyo }, requests_per_unit: 1000 } }
  - { key: part, enforce_percent: 10, rate_limit: { unit: year, requests_per_unit: 0 } }
default_rate_limit: { unit: year, requests_per_unit: 5 }
`;
  // Larger than what is loaded without a thread, and loaded by two workers.
  const padding = `# ${'-'.repeat(40_000)}\n`;
  await using shop = await Shop.start({ env: { WORKERS: '2' } }, rules + padding);
  async function left(...descriptors: readonly string[]): Promise<readonly number[]> {
    const { statuses } = await shop.client.shouldRateLimit('shop', descriptors);
    return statuses.map(({ limitRemaining }) => limitRemaining);
  }
  expect(await left('user=anna', 'user=carl', 'ip=10.1.1.1', 'ip=11.0.0.1')).toEqual([999, 4, 999, 4]);
  expect(await left('user=bert', 'path=/v1/a', 'path=/v22/b', 'path=/w', 'user=carl')).toEqual([999, 999, 998, 4, 3]);
  expect([await left('zone=x'), await left('zone=x')]).toEqual([[999], [998]]);
  const parts = await shop.client.shouldRateLimit('shop', ['part=anna', 'part=dora', 'part=eva', 'part=finn']);
  expect(parts.statuses.map(({ code }) => code)).toEqual([Code.OK, Code.OVER_LIMIT, Code.OVER_LIMIT, Code.OK]);
  expect(await shop.weir.debug('/rlconfig')).toContain('shop.default_rate_limit: unit=YEAR requests_per_unit=5');
});

test('a network is one caller, limits apply at their hours, and a block lasts across windows, over two workers', async () => {
  const day = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'][
    (new Date().getUTCDay() + 3) % 7
  ];
  const never = `{ time_zone: UTC, ranges: [{ days: [${day}] }] }`;
  const always = '{ time_zone: UTC, ranges: [{ to: "12:00" }, { from: "12:00" }] }';
  const rules = `domain: shop
descriptors:
  - { key: ip, address_prefix: { ipv4: 24 }, rate_limit: { unit: year, requests_per_unit: 1000 } }
  - { key: never, rate_limit: { unit: year, requests_per_unit: 0, active: ${never} } }
  - { key: always, rate_limit: { unit: year, requests_per_unit: 0, active: ${always} } }
  - { key: login, rate_limit: { unit: second, requests_per_unit: 2, block_for: 4s } }
`;
  await using shop = await Shop.start({ env: { WORKERS: '2' } }, rules);
  async function ask(...descriptors: readonly string[]) {
    return (await shop.client.shouldRateLimit('shop', descriptors)).statuses;
  }
  const ipv4 = ['198.51.100.1', '::ffff:198.51.100.2', '198.51.100.3:443', '::FFFF:c633:6404'];
  const ipv6 = ['2001:db8::1', '2001:DB8:0:0::2', '[2001:db8::3]:443', '2001:0db8:0000:0000:0:0:0:4'];
  const left = (await ask(...[...ipv4, ...ipv6].map((address) => `ip=${address}`))).map((each) => each.limitRemaining);
  expect(left).toEqual([999, 998, 997, 996, 999, 998, 997, 996]);
  expect((await ask('never=x', 'always=x')).map(({ code }) => code)).toEqual([Code.OK, Code.OVER_LIMIT]);
  const [, , over] = await ask('login=x', 'login=x', 'login=x');
  expect(over).toMatchObject({ code: Code.OVER_LIMIT, durationUntilReset: { seconds: 4n } });
  // A window later, too.
  await shop.weir.until('the block to be half over', async () => {
    const [status] = await ask('login=x');
    expect(status?.code).toBe(Code.OVER_LIMIT);
    return status!.durationUntilReset!.seconds <= 2n;
  });
  await shop.weir.until('the block to end', async () => (await ask('login=x'))[0]?.code === Code.OK);
});

describe('the settings of decisions have their effects', () => {
  const RULES = `domain: shop
descriptors:
  - { key: banned, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: ten, rate_limit: { unit: day, requests_per_unit: 10 }, metadata: { tier: gold } }
`;
  const DESCRIPTORS = ['banned=x', 'ten=x'];
  const entries = DESCRIPTORS.map((entry) => ({ entries: [entry] }));
  const METADATA = { domain: 'shop', descriptors: entries, hitsAddend: 4, metadata: { tier: 'gold' } };

  /** Two descriptors, one of them over the limit; requested twice. */
  async function answer(env: Record<string, string>) {
    await using shop = await Shop.start({ env }, RULES);
    await shop.client.shouldRateLimit('shop', DESCRIPTORS, 4);
    const response = await shop.client.shouldRateLimit('shop', DESCRIPTORS, 4);
    const headers = response.responseHeadersToAdd.map(({ key, value }) => `${key}: ${value}`);
    return { ...response, headers, statistics: await shop.weir.statistics() };
  }

  it('with SHADOW_MODE, a ratio of near limits, metadata, names and headers in the response, and a local cache', async () => {
    const { overallCode, statuses, statistics, dynamicMetadata, headers } = await answer({
      SHADOW_MODE: 'true',
      NEAR_LIMIT_RATIO: '0.5',
      RESPONSE_DYNAMIC_METADATA: 'true',
      LIMIT_NAME_FROM_RULE: 'true',
      LIMIT_RESPONSE_HEADERS_ENABLED: 'true',
      LIMIT_LIMIT_HEADER: 'X-Allowed',
      LIMIT_REMAINING_HEADER: 'X-Left',
      LIMIT_RESET_HEADER: 'X-Seconds-To-Go',
      LIMIT_RETRY_AFTER_ENABLED: 'true',
      LOCAL_CACHE_SIZE_IN_BYTES: '100000',
    });
    expect([overallCode, statuses[0]?.code]).toEqual([Code.OK, Code.OVER_LIMIT]);
    expect(statuses.map(({ currentLimit }) => currentLimit?.name)).toEqual(['shop.banned', 'shop.ten']);
    expect(dynamicMetadata).toEqual({
      ...METADATA,
      decisions: [
        expect.objectContaining({ code: 'OVER_LIMIT', reason: 'over_limit_in_local_cache', rule: 'shop.banned' }),
        expect.objectContaining({ code: 'OK', reason: 'within_limit', rule: 'shop.ten', count: 8 }),
      ],
    });
    expect(headers).toEqual(['X-Allowed: 0', 'X-Left: 0', expect.stringMatching(/^X-Seconds-To-Go: [1-9]\d*$/)]);
    expect(statistics.get('ratelimit.service.global_shadow_mode')).toBe(2);
    expect(statistics.get('ratelimit.service.rate_limit.shop.ten.near_limit')).toBe(3);
    expect(statistics.get('ratelimit.service.rate_limit.shop.banned.over_limit_with_local_cache')).toBe(4);
  });

  it('with QUOTA_MODE and stopped increments, by the metadata, headers and names of settings of the Go service', async () => {
    const { overallCode, statuses, statistics, dynamicMetadata, headers } = await answer({
      QUOTA_MODE: 'true',
      STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true',
      RESPONSE_DYNAMIC_METADATA: 'true',
      RESPONSE_DYNAMIC_METADATA_DECISIONS: 'false',
      LIMIT_RESPONSE_HEADERS_ENABLED: 'true',
      LocalCacheSizeInBytes: '0',
    });
    expect([overallCode, statuses[0]?.code, statuses[1]?.limitRemaining]).toEqual([Code.OK, Code.OVER_LIMIT, 10]);
    expect(dynamicMetadata).toEqual(METADATA);
    expect(headers.join()).toMatch(/^RateLimit-Limit: 0,RateLimit-Remaining: 0,RateLimit-Reset: \d+$/);
    expect(statistics.has('ratelimit.localcache.entryCount')).toBe(false);
  });

  it('with the headers of both drafts, the reset as a time, and when to retry', async () => {
    const began = Date.now() / 1_000;
    const { headers } = await answer({
      LIMIT_RESPONSE_HEADERS: 'both',
      LIMIT_RESET_HEADER_FORMAT: 'timestamp',
      LIMIT_RETRY_AFTER_ENABLED: 'true',
    });
    const number = String.raw`(\d+)`;
    const [, reset, , , retryAfter] = new RegExp(
      [
        '^RateLimit-Limit: 0,RateLimit-Remaining: 0',
        `RateLimit-Reset: ${number}`,
        'RateLimit-Policy: "0-per-day";q=0;qu="requests";w=86400, "10-per-day";q=10;qu="requests";w=86400',
        `RateLimit: "0-per-day";r=0;t=${number}, "10-per-day";r=2;t=${number}`,
        `Retry-After: ${number}$`,
      ].join(','),
    ).exec(headers.join())!;
    expect(Number(reset) % 86_400).toBe(0);
    expect(Number(reset) - Number(retryAfter)).toBeGreaterThanOrEqual(Math.floor(began));
  });
});
