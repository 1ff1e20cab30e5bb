import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, type ServiceError, credentials, status } from '@grpc/grpc-js';
import { Ajv } from 'ajv';
import { RateLimitRequest, RateLimitResponse_Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import {
  CancelRequest,
  EndedReservation,
  EndedReservation_State,
  OnExpiry,
  ReserveRequest,
  ReserveResponse,
  SettleRequest,
} from '../../src/gen/weir/v1/reservations';
import type { Explanation } from '../../src/explain/explanation';
import { ADMIN } from '../../src/cli/admin/admin';
import { runOf } from '../cli/run-program';
import { requestMessage } from '../support/clients/grpc-client';
import { MemcachedProcess } from '../support/processes/memcached-process';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { Shop } from './shop';

const RULES = `domain: shop
descriptors:
  - {key: partner, rate_limit: {unlimited: true}}
  - {key: user, rate_limit: {unit: day, requests_per_unit: 100}}
  - {key: team, rate_limit: {unit: day, requests_per_unit: 150}}
`;

function body(hitsAddend: number, more: object = {}) {
  const descriptors = ['user', 'team'].map((key) => ({ entries: [{ key, value: 'x' }] }));
  return { domain: 'shop', descriptors, hitsAddend, ttl: '60s', ...more };
}

interface Body {
  readonly id?: string;
  readonly expiresAt?: string;
  readonly decision?: {
    readonly overallCode: string;
    readonly statuses: readonly { readonly limitRemaining: number }[];
  };
}

const API = join(__dirname, '../../schema/reservations-api.json');
const ajv = new Ajv({ strict: false, formats: { 'date-time': true } });
ajv.addSchema(JSON.parse(readFileSync(API, 'utf8')) as object, 'api');
const SCHEMAS: Readonly<Record<number, string>> = { 200: 'Ended', 201: 'Reserved' };

/** The status and the answer of a call, which is as `schema/reservations-api.json` says. */
async function call({ weir }: Shop, method: string, path: string, content?: unknown) {
  const init = content === undefined ? { method } : { method, body: JSON.stringify(content) };
  const response = await weir.http(`/v1/reservations${path}`, init);
  const answer = (await response.json()) as Body;
  const schema = SCHEMAS[response.status] ?? (answer.decision === undefined ? 'Error' : 'Denied');
  if (!ajv.validate({ $ref: `api#/components/schemas/${schema}` }, answer)) throw new Error(ajv.errorsText());
  return [response.status, answer] as const;
}

/** The hits that are left of both limits. */
async function left({ client }: Shop): Promise<readonly (number | undefined)[]> {
  const { statuses } = await client.shouldRateLimit('shop', ['user=x', 'team=x'], 1);
  return statuses.map(({ limitRemaining }) => limitRemaining);
}

function error(code: string): object {
  return { error: { code, message: expect.any(String) } };
}

const ALGORITHMS = `domain: shop
descriptors:
  - {key: sliding, rate_limit: {unit: day, requests_per_unit: 100, algorithm: sliding_window}}
  - {key: bucket, rate_limit: {unit: day, requests_per_unit: 100, algorithm: token_bucket}}
  - key: all
    all_or_nothing: true
    rate_limits: [{unit: week, requests_per_unit: 100}, {unit: year, requests_per_unit: 100}]
  - {key: job, rate_limit: {max_concurrent: 1}}
`;

it.each(['memory', 'Redis'])(
  'reservations by algorithms are denied, given back and shown with WORKERS=2 and counters in %s',
  async (kind) => {
    await using redis = kind === 'Redis' ? await RedisProcess.start() : undefined;
    const store = redis && { BACKEND_TYPE: 'kvstore', KVSTORE_URL: redis.address };
    await using shop = await Shop.start({ env: { WORKERS: '2', ...store } }, ALGORITHMS);
    function reserve(key: string, id: string, ttl = '60s') {
      const descriptors = [{ entries: [{ key, value: 'x' }] }];
      return call(shop, 'POST', '', { domain: 'shop', descriptors, hitsAddend: 60, ttl, id, onExpiry: 'cancel' });
    }
    for (const key of ['sliding', 'bucket', 'all', 'job']) {
      expect((await reserve(key, `${key}-1`))[0]).toBe(201);
      expect((await reserve(key, `${key}-2`))[0]).toBe(429);
      const shown = JSON.parse(await shop.weir.debug(`/api/counters?domain=shop&descriptor=${key}=x`)) as object;
      const own = { id: `${key}-1`, hits: key === 'job' ? 1 : 60, onExpiry: 'cancel' };
      expect(shown).toMatchObject({ openReservations: { count: 1, first: [own] } });
      const of = ['-domain', 'shop', '-descriptors', `${key}=x`, '-address', `127.0.0.1:${shop.weir.ports.debug}`];
      const listed = `  1 open reservation\n    ${key}-1: ${own.hits === 1 ? '1 hit' : '60 hits'}, given back at 20`;
      expect((await runOf(ADMIN, ['counter', 'get', ...of])).stdout).toContain(listed);
      expect((await call(shop, 'DELETE', `/${key}-1`))[0]).toBe(200);
      // Its owner is lost.
      expect((await reserve(key, `${key}-3`, '1s'))[0]).toBe(201);
    }
    for (const key of ['sliding', 'bucket', 'all', 'job']) {
      await shop.weir.until(`${key} is given back`, async () => (await reserve(key, `${key}-4`))[0] === 201);
    }
    await shop.weir.until('the statistic says so', async () => {
      return (await shop.weir.statistics()).get('ratelimit.reservations.given_back') === 4;
    });
  },
);

describe('reservations over HTTP', () => {
  it.each(['1', '2'])(
    'are made and ended with WORKERS=%s, and repeated calls are answered as before',
    async (WORKERS) => {
      await using shop = await Shop.start({ env: { WORKERS } }, RULES);
      const [made201, made] = await call(shop, 'POST', '', body(60, { id: 'req_1' }));
      expect([made201, made]).toEqual([
        201,
        {
          id: 'req_1',
          expiresAt: expect.stringMatching(/^\d{4}-.*Z$/),
          decision: {
            overallCode: 'OK',
            statuses: [
              expect.objectContaining({ limitRemaining: 40 }),
              expect.objectContaining({ limitRemaining: 90 }),
            ],
          },
        },
      ]);
      const [deniedStatus, denied] = await call(shop, 'POST', '', body(41));
      expect([deniedStatus, Object.keys(denied), denied.decision?.overallCode]).toEqual([
        429,
        ['decision'],
        'OVER_LIMIT',
      ]);
      const [, again] = await call(shop, 'POST', '', body(60, { id: 'req_1' }));
      expect([again.id, again.expiresAt, again.decision?.statuses[1]?.limitRemaining]).toEqual([
        'req_1',
        made.expiresAt,
        90,
      ]);
      expect(await call(shop, 'POST', '', body(59, { id: 'req_1' }))).toEqual([409, error('reservation_conflict')]);
      expect(await left(shop)).toEqual([39, 89]);
      const counter = JSON.parse(await shop.weir.debug('/api/counters?domain=shop&descriptor=user=x')) as object;
      const open = { id: 'req_1', hits: 60, expiresAt: made.expiresAt, onExpiry: 'settle' };
      expect(counter).toMatchObject({ count: 61, openReservations: { count: 1, first: [open] } });
      const asked = { method: 'POST', body: JSON.stringify({ domain: 'shop', descriptors: body(1).descriptors }) };
      const { descriptors } = JSON.parse(await shop.weir.debug('/api/explanations', asked)) as Explanation;
      expect(descriptors.map((each) => [each.counter?.openReservations, each.reason])).toEqual([
        [1, 'the count would be 62 after 1 hit, with 1 open reservation, within the limit of 100'],
        [1, 'the count would be 62 after 1 hit, with 1 open reservation, within the limit of 150'],
      ]);

      const settled = {
        id: 'req_1',
        state: 'settled',
        descriptors: [
          { reserved: '60', hits: '10', added: '-50' },
          { reserved: '60', hits: '70', added: '10' },
        ],
      };
      for (let time = 0; time < 2; time += 1) {
        expect(await call(shop, 'POST', '/req_1/settle', { hits: ['10', 70] })).toEqual([200, settled]);
      }
      expect(await call(shop, 'DELETE', '/req_1')).toEqual([409, error('reservation_conflict')]);
      expect(await left(shop)).toEqual([88, 78]);

      const [, { id }] = await call(shop, 'POST', '', body(5, { on_expiry: 'cancel' }));
      expect(id).toMatch(/^[0-9a-f-]{36}$/);
      for (let time = 0; time < 2; time += 1) {
        expect(await call(shop, 'DELETE', `/${id}`)).toMatchObject([200, { id, state: 'cancelled' }]);
      }
      expect(await left(shop)).toEqual([87, 77]);

      // Holds no hits; each call has a connection of its own, and reaches any of the processes.
      const free = { domain: 'shop', descriptors: [{ entries: [{ key: 'partner', value: 'x' }] }], ttl: '60s' };
      const [, { id: freeId }] = await call(shop, 'POST', '', free);
      for (let time = 0; time < 4; time += 1) {
        expect(await call(shop, 'POST', `/${freeId}/settle`, { hits: 7 })).toMatchObject([200, { state: 'settled' }]);
        expect(await call(shop, 'POST', `/${freeId}/settle`, { hits: 8 })).toEqual([
          409,
          error('reservation_conflict'),
        ]);
        expect(await call(shop, 'DELETE', `/${freeId}`)).toEqual([409, error('reservation_conflict')]);
      }
      const statistics = await shop.weir.statistics();
      const counted = { reserved: 3, denied: 1, repeated: 6, settled: 2, cancelled: 1, rejected: 10 };
      for (const [name, count] of Object.entries(counted)) {
        expect([name, statistics.get(`ratelimit.reservations.${name}`)]).toEqual([name, count]);
      }
    },
  );

  it.each(['memory', 'Redis'])('are three at a time over two workers, by max_concurrent, in %s', async (kind) => {
    await using redis = kind === 'Redis' ? await RedisProcess.start() : undefined;
    const env = redis === undefined ? {} : { BACKEND_TYPE: 'kvstore', KVSTORE_URL: redis.address };
    const rules = 'domain: shop\ndescriptors: [{ key: job, rate_limit: { max_concurrent: 3 } }]\n';
    await using shop = await Shop.start({ env: { ...env, WORKERS: '2' } }, rules);
    function job(more: object = {}) {
      return { domain: 'shop', descriptors: [{ entries: [{ key: 'job', value: 'x' }] }], ttl: '60s', ...more };
    }
    async function ask(hits: number) {
      const { overallCode, statuses } = await shop.client.shouldRateLimit('shop', ['job=x'], hits);
      const { currentLimit, limitRemaining, durationUntilReset } = statuses[0]!;
      expect([currentLimit?.unit, currentLimit?.requestsPerUnit, durationUntilReset?.seconds ?? 0n]).toEqual([
        0,
        3,
        0n,
      ]);
      return [overallCode, limitRemaining];
    }
    expect(await ask(7)).toEqual([RateLimitResponse_Code.OK, 3]);
    for (const id of ['a', 'b', 'c']) expect((await call(shop, 'POST', '', job({ id, hitsAddend: 9 })))[0]).toBe(201);
    expect((await call(shop, 'POST', '', job()))[0]).toBe(429);
    expect(await ask(7)).toEqual([RateLimitResponse_Code.OVER_LIMIT, 0]);
    expect(await ask(1)).toEqual([RateLimitResponse_Code.OVER_LIMIT, 0]);
    expect((await call(shop, 'DELETE', '/b'))[0]).toBe(200);
    expect(await ask(7)).toEqual([RateLimitResponse_Code.OK, 1]);
    expect((await call(shop, 'POST', '', job({ ttl: '1s', onExpiry: 'cancel' })))[0]).toBe(201);
    expect((await call(shop, 'POST', '/a/settle', { hits: 5 }))[0]).toBe(200);
    await shop.weir.until('the lost one to be free', async () => (await ask(1))[1] === 2);
    const counter = JSON.parse(await shop.weir.debug('/api/counters?domain=shop&descriptor=job=x')) as object;
    expect(counter).toMatchObject({ count: 1, openReservations: { count: 1, first: [{ id: 'c', hits: 1 }] } });
    const asked = { method: 'POST', body: JSON.stringify({ domain: 'shop', descriptors: job().descriptors }) };
    const { descriptors } = JSON.parse(await shop.weir.debug('/api/explanations', asked)) as Explanation;
    expect(descriptors[0]?.reason).toBe('1 of at most 3 reservations are open');
    expect(await shop.weir.debug('/rlconfig')).toContain(
      'shop.job: unit=UNKNOWN requests_per_unit=3 algorithm=max_concurrent',
    );
  });

  it('reject what is malformed, unknown or of another method', async () => {
    await using shop = await Shop.start({}, RULES);
    const { ttl: _, ...withoutTtl } = body(1);
    for (const [content, message] of [
      [withoutTtl, '$: ttl is missing, for example "60s"'],
      [body(1, { ttl: '1m' }), '$.ttl: expected a duration in seconds such as "60s", got "1m"'],
      [body(1, { ttl: '0.5s' }), 'ttl must be from 1 s to 3600 s'],
      [body(1, { onExpiry: 'x' }), '$.onExpiry: expected "settle" or "cancel", got "x"'],
      [body(1, { x: 1 }), '$.x: unknown field; allowed fields: domain, descriptors, hitsAddend, ttl, id, onExpiry'],
      [body(1, { domain: '' }), 'rate limit domain must not be empty'],
    ] as const) {
      expect(await call(shop, 'POST', '', content)).toEqual([400, { error: { code: 'invalid_request', message } }]);
    }
    const [, { id }] = await call(shop, 'POST', '', body(1));
    for (const content of [
      {},
      { hits: -1 },
      { hits: [1] },
      { hits: Array.from({ length: 1001 }, () => 1) },
      { x: 1 },
    ]) {
      expect(await call(shop, 'POST', `/${id}/settle`, content)).toEqual([400, error('invalid_request')]);
    }
    expect(await call(shop, 'POST', '/other/settle', { hits: 1 })).toEqual([404, error('unknown_reservation')]);
    expect(await call(shop, 'DELETE', '/%C3%A9')).toEqual([404, error('unknown_reservation')]);
    expect(await call(shop, 'POST', `/${id}/settle/x`, {})).toEqual([404, error('not_found')]);
    for (const [method, path] of [
      ['GET', ''],
      ['GET', `/${id}`],
      ['DELETE', `/${id}/settle`],
    ] as const) {
      expect(await call(shop, method, path)).toEqual([405, error('method_not_allowed')]);
    }
    expect(await left(shop)).toEqual([98, 148]);
  });

  it('are settled by another instance when the first was killed, and rejected while Redis is away', async () => {
    await using redis = await RedisProcess.start();
    const env = { BACKEND_TYPE: 'kvstore', KVSTORE_URL: redis.address };
    await using other = await Shop.start({ env: { ...env, WORKERS: '2' } }, RULES);
    {
      await using first = await Shop.start({ env }, RULES);
      expect((await call(first, 'POST', '', body(60, { id: 'r' })))[0]).toBe(201);
      process.kill(first.weir.pid!, 'SIGKILL');
      await first.weir.exited;
    }
    expect((await call(other, 'POST', '', body(60, { id: 'r' })))[0]).toBe(201);
    expect((await call(other, 'POST', '', body(60)))[0]).toBe(429);
    expect((await call(other, 'POST', '/r/settle', { hits: 90 }))[0]).toBe(200);
    expect(await left(other)).toEqual([9, 59]);
    await redis.crash();
    expect(await call(other, 'POST', '', body(1))).toEqual([503, error('store_failed')]);
    expect(await call(other, 'DELETE', '/r')).toEqual([503, error('store_failed')]);
  });

  it('are rejected where the store or its user cannot make them in one step', async () => {
    await using memcached = await MemcachedProcess.start();
    const env = { BACKEND_TYPE: 'plaincache', PLAINCACHE_HOST_PORT: memcached.address };
    await using shop = await Shop.start({ env }, RULES);
    expect(await call(shop, 'POST', '', body(1))).toEqual([501, error('not_supported')]);
    expect(await call(shop, 'DELETE', '/r')).toEqual([501, error('not_supported')]);

    await using redis = await RedisProcess.start();
    await redis.control.acl('SETUSER', 'default', '-@scripting');
    await using plain = await Shop.start({ env: { BACKEND_TYPE: 'kvstore', KVSTORE_URL: redis.address } }, RULES);
    expect(await call(plain, 'POST', '', body(1))).toEqual([
      501,
      { error: { code: 'not_supported', message: 'reservations need scripts, and the counter store rejects them' } },
    ]);
    expect(await left(plain)).toEqual([99, 149]);
  });
});

describe('weir.v1.Reservations', () => {
  const UNARY = {
    Reserve: [ReserveRequest, ReserveResponse],
    Settle: [SettleRequest, EndedReservation],
    Cancel: [CancelRequest, EndedReservation],
  } as const;
  type Name = keyof typeof UNARY;
  type In<N extends Name> = Parameters<(typeof UNARY)[N][0]['encode']>[0];
  type Out<N extends Name> = ReturnType<(typeof UNARY)[N][1]['decode']>;

  /** The answer, or the name of the status. A message can be bytes. */
  function invoke<N extends Name>(client: Client, name: N, message: In<N> | Uint8Array): Promise<Out<N> | string> {
    const [request, response] = UNARY[name];
    const bytes = message instanceof Uint8Array ? message : request.encode(message as never).finish();
    return new Promise((resolve) => {
      client.makeUnaryRequest(
        `/weir.v1.Reservations/${name}`,
        (given: Buffer) => given,
        (answer: Buffer) => response.decode(answer) as Out<N>,
        Buffer.from(bytes),
        (failure: ServiceError | null, answer?: Out<N>) => resolve(failure === null ? answer! : status[failure.code]),
      );
    });
  }

  function reserving(hitsAddend: number, more: Partial<ReserveRequest> = {}): ReserveRequest {
    const request = RateLimitRequest.decode(requestMessage('shop', ['user=x', 'team=x'], hitsAddend));
    return { request, ttl: { seconds: 60n, nanos: 0 }, id: 'g', onExpiry: OnExpiry.SETTLE, ...more };
  }

  it('does what the paths do, with the same reservations', async () => {
    await using shop = await Shop.start({}, RULES);
    const client = new Client(shop.weir.grpcAddress, credentials.createInsecure());
    const made = (await invoke(client, 'Reserve', reserving(60))) as ReserveResponse;
    expect([made.id, made.decision?.overallCode]).toEqual(['g', RateLimitResponse_Code.OK]);
    expect(made.decision?.statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([40, 90]);
    const [code, again] = await call(shop, 'POST', '', body(60, { id: 'g' }));
    const { seconds, nanos } = made.expiresAt!;
    expect([code, again.expiresAt]).toEqual([201, new Date(Number(seconds) * 1000 + nanos / 1e6).toISOString()]);
    const denied = (await invoke(client, 'Reserve', reserving(60, { id: '' }))) as ReserveResponse;
    expect([denied.id, denied.expiresAt, denied.decision?.overallCode]).toEqual(['', undefined, 2]);
    expect(await invoke(client, 'Settle', { id: 'g', hits: [10n, 70n] })).toEqual({
      id: 'g',
      state: EndedReservation_State.SETTLED,
      descriptors: [
        { reserved: 60n, hits: 10n, added: -50n },
        { reserved: 60n, hits: 70n, added: 10n },
      ],
    });
    expect(await invoke(client, 'Cancel', { id: 'g' })).toBe('FAILED_PRECONDITION');
    const own = (await invoke(
      client,
      'Reserve',
      reserving(1, { id: '', onExpiry: OnExpiry.CANCEL }),
    )) as ReserveResponse;
    expect(await invoke(client, 'Cancel', { id: own.id })).toMatchObject({ state: EndedReservation_State.CANCELLED });
    const free = RateLimitRequest.decode(requestMessage('shop', ['partner=x', 'unmatched=x'], 1));
    for (const given of ['', 'free']) {
      const { id } = (await invoke(client, 'Reserve', reserving(1, { id: given, request: free }))) as ReserveResponse;
      for (let time = 0; time < 2; time += 1) {
        expect(await invoke(client, 'Cancel', { id })).toMatchObject({ state: EndedReservation_State.CANCELLED });
        expect(await invoke(client, 'Settle', { id, hits: [0n] })).toBe('FAILED_PRECONDITION');
      }
    }
    expect(await invoke(client, 'Settle', { id: 'other', hits: [1n] })).toBe('NOT_FOUND');
    for (const hits of [[], [1n, 2n, 3n], [2n ** 53n]]) {
      expect(await invoke(client, 'Settle', { id: 'g', hits })).toBe('INVALID_ARGUMENT');
    }
    expect(await invoke(client, 'Reserve', reserving(1, { ttl: { seconds: -1n, nanos: 0 } }))).toBe('INVALID_ARGUMENT');
    expect(await invoke(client, 'Reserve', reserving(1, { request: undefined }))).toBe('INVALID_ARGUMENT');
    expect(await invoke(client, 'Reserve', Uint8Array.of(0x0a, 5, 1))).toBe('INTERNAL');
    expect(await invoke(client, 'Cancel', Uint8Array.of(0x0a, 5, 1))).toBe('INTERNAL');
    expect(await invoke(client, 'Cancel', { id: 'x'.repeat(5_000) })).toBe('RESOURCE_EXHAUSTED');
    expect(await left(shop)).toEqual([89, 79]);
    client.close();
  });

  it('is not implemented where the store has no reservations', async () => {
    await using memcached = await MemcachedProcess.start();
    await using shop = await Shop.start(
      { env: { BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: memcached.address } },
      RULES,
    );
    const client = new Client(shop.weir.grpcAddress, credentials.createInsecure());
    expect(await invoke(client, 'Reserve', reserving(1))).toBe('UNIMPLEMENTED');
    client.close();
  });
});
