import { status } from '@grpc/grpc-js';
import { RateLimitResponse_Code as Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { requestMessage } from '../support/clients/grpc-client';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { Shop } from './shop';

const RULES = `domain: shop
descriptors:
  - {key: fixed, rate_limit: {unit: day, requests_per_unit: 100}}
  - {key: sliding, rate_limit: {unit: day, requests_per_unit: 100, algorithm: sliding_window}}
  - {key: bucket, rate_limit: {unit: year, requests_per_unit: 100, algorithm: token_bucket}}
  - {key: leased, rate_limit: {unit: day, requests_per_unit: 100, lease: true}}
  - {key: banned, rate_limit: {unit: day, requests_per_unit: 0}}
  - {key: postpaid, rate_limit: {unit: day, requests_per_unit: 100, algorithm: sliding_window, postpaid: true}}
  - key: several
    rate_limits:
      - {unit: day, requests_per_unit: 100}
      - {unit: year, requests_per_unit: 1000, algorithm: sliding_window}
  - key: together
    all_or_nothing: true
    rate_limits:
      - {unit: day, requests_per_unit: 100}
      - {unit: year, requests_per_unit: 1000, algorithm: sliding_window}
`;
const KINDS = ['fixed', 'sliding', 'bucket', 'leased', 'postpaid', 'several', 'together'];

type Step = readonly [what: 'check' | 'report', hits: number, answer: string];

/** Code and what is left. */
type Call = (what: Step[0], key: string, hits: number) => Promise<string>;

/** A call over gRPC. */
function overGrpc({ client }: Shop): Call {
  return async (what, key, hits) => {
    const method = what === 'check' ? 'CheckRateLimit' : 'Report';
    const { overallCode, statuses } = await client.kuadrant(method, requestMessage('shop', [`${key}=grpc`], hits));
    expect(statuses[0]?.currentLimit?.requestsPerUnit).toBeGreaterThan(0);
    return `${Code[overallCode]} ${statuses[0]?.limitRemaining}`;
  };
}

interface Answer {
  readonly overallCode: string;
  readonly statuses: readonly { readonly limitRemaining?: number }[];
}

function post({ weir }: Shop, path: string, body: object): Promise<Response> {
  return weir.http(path, { method: 'POST', body: JSON.stringify(body) });
}

function overHttp(shop: Shop): Call {
  return async (what, key, hits) => {
    const descriptors = [{ entries: [{ key, value: 'http' }] }];
    const response = await post(shop, `/v1/${what}`, { domain: 'shop', descriptors, hitsAddend: hits });
    const { overallCode, statuses } = (await response.json()) as Answer;
    expect(response.status).toBe(overallCode === 'OVER_LIMIT' && what === 'check' ? 429 : 200);
    return `${overallCode} ${statuses[0]?.limitRemaining ?? 0}`;
  };
}

const STEPS: readonly Step[] = [
  ['check', 0, 'OK 100'],
  ['check', 5_000, 'OK 100'],
  ['report', 98, 'OK 2'],
  ['check', 3, 'OK 2'],
  // Without hits, and with 0, it is 1.
  ['report', 0, 'OK 1'],
  ['check', 1, 'OK 1'],
  ['report', 60, 'OK 0'],
  ['check', 0, 'OVER_LIMIT 0'],
  ['report', 1, 'OVER_LIMIT 0'],
];

async function expectSteps(call: Call, key: string): Promise<void> {
  for (const [index, [what, hits, answer]] of STEPS.entries()) {
    expect([key, index, await call(what, key, hits)]).toEqual([key, index, answer]);
  }
}

describe.each([
  ['in memory', {}],
  ['in memory, of two workers,', { WORKERS: '2' }],
])('checks and reports on counters %s', (_, env) => {
  let shop: Shop;
  beforeAll(async () => {
    shop = await Shop.start({ env: { LEASES: 'rules', LOCAL_CACHE_SIZE_IN_BYTES: '100000', ...env } }, RULES);
  });
  afterAll(() => shop[Symbol.asyncDispose]());

  it.each(KINDS)('find the limit over when nothing is left, and count in full: %s', async (key) => {
    await expectSteps(overGrpc(shop), key);
    await expectSteps(overHttp(shop), key);
  });

  it('deny by a limit of 0', async () => {
    const call = overHttp(shop);
    expect(await call('check', 'banned', 0)).toBe('OVER_LIMIT 0');
    expect(await call('report', 'banned', 5)).toBe('OVER_LIMIT 0');
  });
});

describe('checks and reports', () => {
  let redis: RedisProcess;
  let shop: Shop;
  beforeAll(async () => {
    redis = await RedisProcess.start();
    shop = await Shop.start(
      { env: { BACKEND_TYPE: 'kvstore', KVSTORE_URL: redis.address, LOG_LEVEL: 'debug' } },
      RULES,
    );
  });
  afterAll(async () => {
    await shop[Symbol.asyncDispose]();
    await redis[Symbol.asyncDispose]();
  });

  it.each(KINDS)('are the same on counters in Redis: %s', (key) => expectSteps(overGrpc(shop), key));

  it('create no key when nothing is reported', async () => {
    await redis.control.flushall();
    for (const key of KINDS) await overHttp(shop)('check', key, 7);
    expect(await redis.control.dbsize()).toBe(0);
  });

  it('take the hits of a descriptor before those of the request, and count negative ones back in reports only', async () => {
    const entries = [{ key: 'fixed', value: 'own' }];
    async function left(path: string, own: object): Promise<number> {
      const response = await post(shop, path, { domain: 'shop', hitsAddend: 9, descriptors: [{ entries, ...own }] });
      return ((await response.json()) as Answer).statuses[0]?.limitRemaining ?? 0;
    }
    expect(await left('/v1/report', { hitsAddend: 130 })).toBe(0);
    expect(await left('/v1/check', { hitsAddend: 50, isNegativeHits: true })).toBe(0);
    expect(await left('/v1/report', { hitsAddend: 40, isNegativeHits: true })).toBe(10);
    expect(await left('/v1/report', { hitsAddend: 0 })).toBe(9);
  });

  it('have the hits of the request over gRPC, as with Limitador, whatever a descriptor has', async () => {
    const own = { entries: [{ key: 'fixed', value: 'limitador' }], limit: undefined, hitsAddend: 50n };
    const { client } = shop;
    for (const isNegativeHits of [false, true]) {
      await client.kuadrant('Report', requestMessage('shop', [{ ...own, isNegativeHits }], 10));
    }
    const { statuses } = await client.kuadrant('CheckRateLimit', requestMessage('shop', ['fixed=limitador']));
    expect(statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([80]);
  });

  it('are over when one of the descriptors is, and count on all of them', async () => {
    await overGrpc(shop)('report', 'fixed', 0);
    const descriptors = ['fixed=both', 'sliding=both', 'none=x'];
    const { client } = shop;
    await client.kuadrant('Report', requestMessage('shop', ['fixed=both'], 100));
    const codes = [Code.OVER_LIMIT, Code.OK, Code.OK];
    for (const method of ['Report', 'CheckRateLimit'] as const) {
      const { overallCode, statuses } = await client.kuadrant(method, requestMessage('shop', descriptors, 10));
      expect([overallCode, statuses.map(({ code }) => code)]).toEqual([Code.OVER_LIMIT, codes]);
      expect(statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([0, 90, 0]);
    }
  });

  it('reject what ShouldRateLimit rejects, in its words, and count and log it as there', async () => {
    const before = await shop.weir.statistics();
    const { client } = shop;
    for (const method of ['CheckRateLimit', 'Report'] as const) {
      await expect(client.kuadrant(method, requestMessage('', ['fixed=x']))).rejects.toMatchObject({
        code: status.INVALID_ARGUMENT,
        details: 'rate limit domain must not be empty',
      });
      await expect(client.kuadrant(method, requestMessage('shop', []))).rejects.toMatchObject({
        details: 'rate limit descriptor list must not be empty',
      });
      await expect(client.kuadrant(method, Buffer.of(0x0a, 0xff))).rejects.toMatchObject({ code: status.INTERNAL });
    }
    for (const path of ['/v1/check', '/v1/report']) {
      expect((await post(shop, path, { domain: '', descriptors: [] })).status).toBe(400);
      const malformed = await post(shop, path, { purpose: 'ask' });
      expect([malformed.status, await malformed.text()]).toEqual([400, expect.stringContaining('unknown field')]);
      expect((await shop.weir.http(path)).headers.get('allow')).toBe('POST');
      await shop.weir.until('it is logged', () => shop.weir.output.includes(`via=${path} `));
    }
    const after = await shop.weir.statistics();
    function grown(name: string): number {
      return (after.get(name) ?? 0) - (before.get(name) ?? 0);
    }
    expect(grown('ratelimit.service.call.should_rate_limit.service_error')).toBe(10);
    expect(grown('ratelimit_server.CheckRateLimit.total_requests')).toBe(3);
    expect(grown('ratelimit_server.Report.total_requests')).toBe(3);
  });

  it('an unknown domain allows them', async () => {
    for (const method of ['CheckRateLimit', 'Report'] as const) {
      const { overallCode } = await shop.client.kuadrant(method, requestMessage('none', ['fixed=x'], 9));
      expect(overallCode).toBe(Code.OK);
    }
  });

  it('a report counts once although its caller has given up while the store stood still', async () => {
    redis.signal('SIGSTOP');
    const report = requestMessage('shop', ['fixed=late'], 60);
    await expect(shop.client.kuadrant('Report', report, Date.now() + 100)).rejects.toMatchObject({
      code: status.DEADLINE_EXCEEDED,
    });
    redis.signal('SIGCONT');
    await shop.weir.until('the report is counted', async () => {
      const { statuses } = await shop.client.kuadrant('CheckRateLimit', requestMessage('shop', ['fixed=late']));
      return statuses[0]?.limitRemaining === 40;
    });
  });

  // The last one: the store is gone.
  it('that are lost are logged once, and again when none was for 5 s', async () => {
    await redis.crash();
    const lost = requestMessage('shop', ['fixed=lost'], 60);
    for (let report = 0; report < 2; report += 1) {
      await expect(shop.client.kuadrant('Report', lost)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    }
    await shop.weir.line(/no report of hits was lost in the last 5 s" calls=2/);
    expect(shop.weir.output.match(/reports of hits are not counted/g)).toHaveLength(1);
  });
});
