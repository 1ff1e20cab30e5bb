import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { MemcachedProcess } from '../support/processes/memcached-process';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { Shop } from './shop';

const RULES = `domain: shop
descriptors:
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

describe('reservations over HTTP', () => {
  it('are made, settled and cancelled, and answer repeated calls as before', async () => {
    await using shop = await Shop.start({}, RULES);
    const [status, made] = await call(shop, 'POST', '', body(60, { id: 'req_1' }));
    expect([status, made]).toEqual([
      201,
      {
        id: 'req_1',
        expiresAt: expect.stringMatching(/^\d{4}-.*Z$/),
        decision: {
          overallCode: 'OK',
          statuses: [expect.objectContaining({ limitRemaining: 40 }), expect.objectContaining({ limitRemaining: 90 })],
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
    const statistics = await shop.weir.statistics();
    const counted = { reserved: 2, denied: 1, repeated: 3, settled: 1, cancelled: 1, rejected: 2 };
    for (const [name, count] of Object.entries(counted)) {
      expect([name, statistics.get(`ratelimit.reservations.${name}`)]).toEqual([name, count]);
    }
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
