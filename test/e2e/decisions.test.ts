import { connect } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { RateLimitResponse_Code as Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { RateLimitClient } from '../support/clients/grpc-client';
import { WeirProcess } from '../support/processes/weir-process';
import { roomInMinute } from '../support/waiting/window-room';
import { Shop } from './shop';

let weir: WeirProcess;
let client: RateLimitClient;
beforeAll(async () => {
  const root = join(__dirname, '../../examples');
  weir = await WeirProcess.start({ env: { RUNTIME_ROOT: root, RUNTIME_WATCH_ROOT: 'false' } });
  client = new RateLimitClient(weir.grpcAddress);
});
afterAll(async () => {
  client[Symbol.dispose]();
  await weir[Symbol.asyncDispose]();
});

function json(body: unknown) {
  return weir.http('/json', { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) });
}

describe('the service on the example rules', () => {
  it('counts each user separately, over gRPC and HTTP together, and answers OVER_LIMIT beyond the limit', async () => {
    await roomInMinute();
    const body = { domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'both' }] }] };
    for (let call = 1; call <= 5; call += 1) {
      const { statuses } = await client.shouldRateLimit('shop', ['user=both']);
      expect(statuses[0]).toMatchObject({ code: Code.OK, limitRemaining: 11 - 2 * call });
      const response = await json(body);
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json']);
    }
    expect((await client.shouldRateLimit('shop', ['user=both'])).overallCode).toBe(Code.OVER_LIMIT);
    const over = await json(body);
    expect([over.status, await over.json()]).toMatchObject([
      429,
      {
        overallCode: 'OVER_LIMIT',
        statuses: [{ code: 'OVER_LIMIT', currentLimit: { requestsPerUnit: 10, unit: 'MINUTE' } }],
      },
    ]);
    expect((await client.shouldRateLimit('shop', ['user=other'])).overallCode).toBe(Code.OK);
  });

  it('bans, gives a partner a higher limit, replaces a limit, and does not limit what no rule matches', async () => {
    const { overallCode, statuses } = await client.shouldRateLimit('shop', [
      ...['user=mallory', 'user=partner', 'nothing=here'],
    ]);
    expect(overallCode).toBe(Code.OVER_LIMIT);
    expect(statuses.map(({ code }) => code)).toEqual([Code.OVER_LIMIT, Code.OK, Code.OK]);
    expect(statuses[1]?.limitRemaining).toBe(999);
    const trial = await client.shouldRateLimit('api', ['plan=free,customer=7', 'trial=yes']);
    expect(trial.statuses.map(({ currentLimit }) => currentLimit?.requestsPerUnit)).toEqual([undefined, 1000]);
  });

  it('shows the active rules and their statistics on the debug listener, and its health', async () => {
    await client.shouldRateLimit('shop', ['country=no']);
    expect(await weir.debug('/rlconfig')).toContain(
      'shop.country: unit=HOUR requests_per_unit=5000, shadow_mode: true, quota_mode: false\n',
    );
    expect((await weir.statistics()).get('ratelimit.service.rate_limit.shop.country.total_hits')).toBe(1);
    const response = await weir.http('/healthcheck');
    expect([response.status, await response.text()]).toEqual([200, 'OK']);
  });
});

describe('the service answers bad input with a clear error, counts it as an error only, and serves on', () => {
  const user = { entries: [{ key: 'user', value: 'x' }], limit: undefined, isNegativeHits: false };
  function users(count: number) {
    return Array.from({ length: count }, () => 'user=x');
  }
  const ERRORS = 'ratelimit.service.call.should_rate_limit.service_error';

  /** Fails a call, and expects that it is an error in the statistics, and nothing else. */
  async function expectError(fail: () => Promise<void>): Promise<void> {
    async function statistics() {
      const all = await weir.statistics();
      const rules = [...all].filter(([name]) => name.startsWith('ratelimit.service.rate_limit.'));
      return { rules, errors: all.get(ERRORS) ?? 0 };
    }
    const { rules, errors } = await statistics();
    await fail();
    expect(await statistics()).toEqual({ rules, errors: errors + 1 });
    expect((await client.shouldRateLimit('shop', ['nothing=here'])).overallCode).toBe(Code.OK);
  }

  it.each<[what: string, body: unknown, status: number, message: string]>([
    ['broken JSON', '{"domain": "shop"', 400, 'expected "," or "}", got the end of the body'],
    ['an unknown field', { domain: 'shop', descriptors: [user], extra: 1 }, 400, 'extra'],
    ['no descriptors', { domain: 'shop' }, 400, 'rate limit descriptor list must not be empty'],
    ['20,000 descriptors', { descriptors: Array.from({ length: 20_000 }, () => ({})) }, 400, 'more than 10000'],
    ['101 entries', { domain: 'd', descriptors: [{ entries: users(101).map((key) => ({ key })) }] }, 413, 'has 101'],
  ])('over HTTP: %s', (_what, body, status, message) =>
    expectError(async () => {
      const response = await json(body);
      const { error } = (await response.json()) as { error: { message: string } };
      expect([response.status, error.message]).toEqual([status, expect.stringContaining(message)]);
    }),
  );

  it.each<[what: string, call: () => Promise<unknown>, code: number, details: string]>([
    [
      'malformed protobuf',
      () => client.send(Buffer.from('0a05', 'hex')),
      13,
      'beyond the end of the message at byte 2',
    ],
    ['an empty domain', () => client.shouldRateLimit('', ['user=x']), 3, 'rate limit domain must not be empty'],
    ['an entry without a key', () => client.shouldRateLimit('d', ['=x']), 3, 'descriptor 1 has an entry without a key'],
    ['20,000 descriptors', () => client.shouldRateLimit('', users(20_000)), 3, 'this one has more than 10000'],
    ['101 entries', () => client.shouldRateLimit('d', [users(101).join()]), 8, 'descriptor 1 has 101'],
    [
      'hits that no counter holds',
      () => client.shouldRateLimit('shop', [{ ...user, hitsAddend: 2n ** 60n }]),
      3,
      'hits_addend of descriptor 1 exceeds the largest count, 2^53 - 1',
    ],
  ])('over gRPC: %s', (_what, call, code, details) =>
    expectError(async () => {
      await expect(call()).rejects.toMatchObject({ code, details: expect.stringContaining(details) });
    }),
  );

  it('a body and a message that are too large, and bytes that are no HTTP/2', async () => {
    expect((await json(`"${'x'.repeat(2 * 1024 * 1024)}"`)).status).toBe(413);
    await expect(client.send(Buffer.alloc(5 * 1024 * 1024))).rejects.toMatchObject({ code: 8 });
    const socket = connect(weir.ports.grpc, '127.0.0.1').on('error', () => undefined);
    socket.end('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(socket.resume(), 'close');
    expect((await client.shouldRateLimit('shop', ['nothing=here'])).overallCode).toBe(Code.OK);
  });
});

describe('the settings of decisions have their effects', () => {
  const RULES = `domain: shop
descriptors:
  - { key: banned, rate_limit: { unit: day, requests_per_unit: 0 } }
  - { key: ten, rate_limit: { unit: day, requests_per_unit: 10 }, metadata: { tier: gold } }
`;
  const METADATA = {
    domain: 'shop',
    descriptors: [{ entries: ['banned=x'] }, { entries: ['ten=x'] }],
    hitsAddend: 4,
    metadata: { tier: 'gold' },
  };

  /** Two descriptors, one of them over the limit; requested twice. */
  async function answer(env: Record<string, string>) {
    await using shop = await Shop.start({ env }, RULES);
    await shop.client.shouldRateLimit('shop', ['banned=x', 'ten=x'], 4);
    const response = await shop.client.shouldRateLimit('shop', ['banned=x', 'ten=x'], 4);
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

  it('with STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT, and the metadata, headers and names of settings of the Go service', async () => {
    const { overallCode, statuses, statistics, dynamicMetadata, headers } = await answer({
      STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true',
      RESPONSE_DYNAMIC_METADATA: 'true',
      RESPONSE_DYNAMIC_METADATA_DECISIONS: 'false',
      LIMIT_RESPONSE_HEADERS_ENABLED: 'true',
      LocalCacheSizeInBytes: '0',
    });
    expect([overallCode, statuses[1]?.limitRemaining]).toEqual([Code.OVER_LIMIT, 10]);
    expect(dynamicMetadata).toEqual(METADATA);
    expect(headers.map((header) => header.split(': ')[0])).toEqual([
      ...['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'],
    ]);
    expect(statistics.has('ratelimit.localcache.entryCount')).toBe(false);
  });

  it('with QUOTA_MODE', async () => {
    expect((await answer({ QUOTA_MODE: 'true' })).overallCode).toBe(Code.OK);
  });
});

it('a service whose clock jumps ahead and back logs each jump once, and counts in the windows of the time', async () => {
  const env = {
    NODE_OPTIONS: `--require ${join(__dirname, '../support/processes/jumping-clock.cjs')}`,
    LOCAL_CACHE_SIZE_IN_BYTES: '100000',
  };
  const rules = `domain: shop
descriptors:
  - { key: user, rate_limit: { unit: year, requests_per_unit: 1000 } }
  - { key: path, rate_limit: { unit: hour, requests_per_unit: 1 } }
`;
  await using shop = await Shop.start({ env }, rules);
  async function path(hits = 1): Promise<Code> {
    return (await shop.client.shouldRateLimit('shop', ['path=/'], hits)).overallCode;
  }
  async function jump(direction: 'ahead' | 'back') {
    shop.weir.signal('SIGUSR2');
    const line = `level=warning msg="the system clock jumped ${direction}; .*" by="?(?:7199|7200)\\.`;
    await shop.weir.line(new RegExp(line));
  }
  async function statistic(name: string) {
    return (await shop.weir.statistics()).get(name);
  }
  expect(await shop.hit('regular', 900)).toBe(100);
  await jump('ahead');
  expect([await path(5), await path()]).toEqual([Code.OVER_LIMIT, Code.OVER_LIMIT]);
  expect(await statistic('ratelimit.localcache.entryCount')).toBe(1);
  await jump('back');
  expect(await path()).toBe(Code.OK);
  expect(await statistic('ratelimit.localcache.entryCount')).toBe(0);
  expect(await shop.hit('regular')).toBe(99);
  // The key that was created ahead is removed.
  await shop.weir.until('two keys', async () => (await statistic('ratelimit.memory.keys')) === 2);
  expect(shop.weir.output.match(/the system clock jumped/g)).toHaveLength(2);
});
