import { connect } from 'node:net';
import { join } from 'node:path';
import { once } from 'node:events';
import { RateLimitResponse_Code as Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { RateLimitClient } from '../support/clients/grpc-client';
import { WeirProcess } from '../support/processes/weir-process';
import { roomInMinute } from '../support/waiting/window-room';

const EXAMPLES = { RUNTIME_ROOT: join(__dirname, '../../examples'), RUNTIME_WATCH_ROOT: 'false' };

let weir: WeirProcess;
let client: RateLimitClient;
beforeAll(async () => {
  weir = await WeirProcess.start({ env: EXAMPLES });
  client = new RateLimitClient(weir.grpcAddress);
});
afterAll(async () => {
  client[Symbol.dispose]();
  await weir[Symbol.asyncDispose]();
});

function json(body: unknown) {
  return weir.http('/json', { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) });
}
function asJson(domain: string, key: string, value: string) {
  return {
    domain,
    descriptors: [{ entries: [{ key, value }] }],
  };
}

const HUNDRED_AND_ONE = Array.from({ length: 101 }, () => ({ key: 'user', value: 'x' }));

describe('the service on the example rules', () => {
  beforeEach(roomInMinute);

  it('counts each user separately, over gRPC and HTTP together, and answers OVER_LIMIT beyond the limit', async () => {
    for (let call = 1; call <= 5; call += 1) {
      const { statuses } = await client.shouldRateLimit('shop', ['user=both']);
      expect(statuses[0]).toMatchObject({ code: Code.OK, limitRemaining: 11 - 2 * call });
      const response = await json(asJson('shop', 'user', 'both'));
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json']);
    }
    expect((await client.shouldRateLimit('shop', ['user=both'])).overallCode).toBe(Code.OVER_LIMIT);
    const over = await json(asJson('shop', 'user', 'both'));
    expect(over.status).toBe(429);
    expect(await over.json()).toMatchObject({
      overallCode: 'OVER_LIMIT',
      statuses: [{ code: 'OVER_LIMIT', currentLimit: { requestsPerUnit: 10, unit: 'MINUTE' } }],
    });
    expect((await client.shouldRateLimit('shop', ['user=other'])).overallCode).toBe(Code.OK);
  });

  it('answers OVER_LIMIT for a counter that one call has filled to 2^53 - 1', async () => {
    const user = { entries: [{ key: 'user', value: 'huge' }], limit: undefined, hitsAddend: 1n, isNegativeHits: false };
    const most = { ...user, hitsAddend: 2n ** 53n - 1n };
    const calls = await Promise.all([most, user, most, user].map((each) => client.shouldRateLimit('shop', [each])));
    expect(calls.map(({ overallCode }) => overallCode)).toEqual([2, 2, 2, 2]);
    expect((await json(asJson('shop', 'user', 'huge'))).status).toBe(429);
  });

  it('bans with a limit of 0, gives the partner a higher limit, and does not limit what no rule matches', async () => {
    const { overallCode, statuses } = await client.shouldRateLimit('shop', [
      'user=mallory',
      'user=partner',
      'nothing=here',
    ]);
    expect(overallCode).toBe(Code.OVER_LIMIT);
    expect(statuses.map(({ code }) => code)).toEqual([Code.OVER_LIMIT, Code.OK, Code.OK]);
    expect(statuses[1]?.limitRemaining).toBe(999);
  });

  it('replaces the limit of the free plan during a trial', async () => {
    const { statuses } = await client.shouldRateLimit('api', ['plan=free,customer=7', 'trial=yes']);
    expect(statuses.map(({ currentLimit }) => currentLimit?.requestsPerUnit)).toEqual([undefined, 1000]);
  });

  it('shows the active rules and their statistics on the debug listener', async () => {
    await client.shouldRateLimit('shop', ['country=no']);
    expect(await weir.debug('/rlconfig')).toContain(
      'shop.country: unit=HOUR requests_per_unit=5000, shadow_mode: true, quota_mode: false\n',
    );
    expect((await weir.statistics()).get('ratelimit.service.rate_limit.shop.country.total_hits')).toBe(1);
  });

  it('reports that it is healthy', async () => {
    const response = await weir.http('/healthcheck');
    expect([response.status, await response.text()]).toEqual([200, 'OK']);
  });
});

describe('the service answers bad input with a clear error and without counting', () => {
  /** What the rules have counted. */
  async function counted() {
    return [...(await weir.statistics())].filter(([name]) => name.startsWith('ratelimit.service.rate_limit.'));
  }

  const user = { entries: [{ key: 'user', value: 'x' }] };
  it.each<[what: string, body: unknown, status: number, message: string]>([
    ['broken JSON', '{"domain": "shop"', 400, 'expected "," or "}", got the end of the body'],
    ['a wrong type', { domain: 7, descriptors: [user] }, 400, 'domain'],
    ['an unknown field', { domain: 'shop', descriptors: [user], extra: 1 }, 400, 'extra'],
    ['an empty domain', { domain: '', descriptors: [user] }, 400, 'rate limit domain must not be empty'],
    ['no descriptors', { domain: 'shop' }, 400, 'rate limit descriptor list must not be empty'],
    [
      'an entry without a key',
      { domain: 'shop', descriptors: [{ entries: [{ value: 'x' }] }] },
      400,
      'entry without a key',
    ],
    ['10,000 descriptors', { domain: 'shop', descriptors: Array.from({ length: 10_000 }, () => user) }, 400, '10000'],
    ['20,000 descriptors', { descriptors: Array.from({ length: 20_000 }, () => user) }, 400, 'more than 10000'],
    ['101 entries', { domain: 'shop', descriptors: [{ entries: HUNDRED_AND_ONE }] }, 413, 'descriptor 1 has 101'],
    ['a body of 2 MiB', `"${'x'.repeat(2 * 1024 * 1024)}"`, 413, '1 MiB'],
  ])('over HTTP: %s', async (_what, body, status, message) => {
    const before = await counted();
    const response = await json(body);
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    expect([response.status, error.message]).toEqual([status, expect.stringContaining(message)]);
    expect(await counted()).toEqual(before);
    expect((await client.shouldRateLimit('shop', ['nothing=here'])).overallCode).toBe(Code.OK);
  });

  it.each<[what: string, call: () => Promise<unknown>, code: number, details: string]>([
    [
      'malformed protobuf',
      () => client.send(Buffer.from('0a05', 'hex')),
      13,
      'invalid RateLimitRequest: length beyond the end of the message at byte 2',
    ],
    ['an empty domain', () => client.shouldRateLimit('', ['user=x']), 3, 'rate limit domain must not be empty'],
    ['no descriptors', () => client.shouldRateLimit('shop', []), 3, 'rate limit descriptor list must not be empty'],
    [
      'an entry without a key',
      () => client.shouldRateLimit('shop', ['=x']),
      3,
      'descriptor 1 has an entry without a key',
    ],
    [
      '10,000 descriptors',
      () =>
        client.shouldRateLimit(
          'shop',
          Array.from({ length: 10_000 }, () => 'user=x'),
        ),
      3,
      'a request may have at most 1000 descriptors, this one has 10000',
    ],
    [
      '20,000 descriptors',
      () =>
        client.shouldRateLimit(
          '',
          Array.from({ length: 20_000 }, () => 'user=x'),
        ),
      3,
      'a request may have at most 1000 descriptors, this one has more than 10000',
    ],
    [
      '101 entries',
      () => client.shouldRateLimit('shop', [HUNDRED_AND_ONE.map(({ key, value }) => `${key}=${value}`).join(',')]),
      8,
      'a descriptor may have at most 100 entries, descriptor 1 has 101',
    ],
    [
      'hits that no counter holds',
      () =>
        client.shouldRateLimit('shop', [
          { entries: [{ key: 'user', value: 'x' }], limit: undefined, hitsAddend: 2n ** 60n, isNegativeHits: false },
        ]),
      3,
      'hits_addend of descriptor 1 exceeds the largest count, 2^53 - 1',
    ],
  ])('over gRPC: %s', async (_what, call, code, details) => {
    const before = await counted();
    await expect(call()).rejects.toMatchObject({ code, details });
    expect(await counted()).toEqual(before);
    expect((await client.shouldRateLimit('shop', ['nothing=here'])).overallCode).toBe(Code.OK);
  });

  it('over gRPC: a message of more than 4 MiB is RESOURCE_EXHAUSTED', async () => {
    await expect(client.send(Buffer.alloc(5 * 1024 * 1024))).rejects.toMatchObject({ code: 8 });
    expect((await client.shouldRateLimit('shop', ['nothing=here'])).overallCode).toBe(Code.OK);
  });

  it('counts each rejected call once as a service error, on both listeners', async () => {
    async function errors() {
      return (await weir.statistics()).get('ratelimit.service.call.should_rate_limit.service_error') ?? 0;
    }
    const before = await errors();
    await json('{');
    await json({ domain: 'shop' });
    await expect(client.send(Buffer.from('0a05', 'hex'))).rejects.toBeDefined();
    await expect(client.shouldRateLimit('', ['user=x'])).rejects.toBeDefined();
    expect(await errors()).toBe(before + 4);
  });

  it('on the gRPC port: bytes that are no HTTP/2', async () => {
    const socket = connect(weir.ports.grpc, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.end('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(socket.resume(), 'close');
    expect((await client.shouldRateLimit('shop', ['nothing=here'])).overallCode).toBe(Code.OK);
  });
});
