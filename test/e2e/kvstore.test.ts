import { constants } from 'node:http2';
import { RateLimitResponse_Code as Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/rate-limit/rate-limit-service';
import { RateLimitClient, requestMessage } from '../support/clients/grpc-client';
import { Http2Connection } from '../support/clients/http2-connection';
import { PinnedClient } from '../support/clients/pinned-client';
import { isListening } from '../support/processes/is-listening';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { RedisTls } from '../support/processes/redis/redis-tls';
import { WeirProcess } from '../support/processes/weir-process';
import { Shop } from './shop';

const UNITS = ['second', 'day', 'year'];
const RULES = `domain: shop\ndescriptors:\n${UNITS.map(
  (unit) => `  - {key: ${unit}, rate_limit: {unit: ${unit}, requests_per_unit: 1000000}}\n`,
).join('')}`;
const UNAVAILABLE = 14;

async function health(weir: WeirProcess): Promise<number> {
  return (await weir.http('/healthcheck')).status;
}

describe('the service with two instances that have their own credentials, TLS and pools', () => {
  /** Longer than any of these tests takes: no call fails unless the store is away. */
  const TIMEOUT = '40s';
  const PASSWORDS = { main: 'main-secret', perSecond: 'per-second-secret', other: 'of-the-test' };
  let tls: RedisTls;
  let main: RedisProcess;
  let perSecond: RedisProcess;
  let shop: Shop;
  let weir: WeirProcess;
  let client: RateLimitClient;

  beforeAll(async () => {
    tls = new RedisTls();
    const { isTls, control } = tls.server;
    [main, perSecond] = await Promise.all([
      RedisProcess.start({ directives: ['--requirepass', PASSWORDS.main], control: { password: PASSWORDS.main } }),
      RedisProcess.start({
        directives: [
          ...tls.directives('127.0.0.1'),
          ...['--requirepass', PASSWORDS.other],
          ...['--user', 'burst', 'on', `>${PASSWORDS.perSecond}`, '~*', '&*', '+@all'],
        ],
        isTls: isTls === true,
        control: { ...control, password: PASSWORDS.other },
      }),
    ]);
    await main.crash();
    const { ca, cert, key } = tls.files({ withCertificate: true });
    const env = {
      ...{ BACKEND_TYPE: 'redis', CACHE_KEY_PREFIX: 'prod:' },
      // Keys of limits per second stay longer than a test takes, almost always.
      EXPIRATION_JITTER_MAX_SECONDS: '1000000',
      ...{ REDIS_URL: main.address, REDIS_AUTH: PASSWORDS.main, REDIS_POOL_SIZE: '2', REDIS_TIMEOUT: TIMEOUT },
      ...{ KVSTORE_TLS_CACERT: ca!.path, KVSTORE_TLS_CLIENT_CERT: cert!.path, KVSTORE_TLS_CLIENT_KEY: key!.path },
      ...{ KVSTORE_PERSECOND: 'true', KVSTORE_PERSECOND_URL: perSecond.address, KVSTORE_PERSECOND_TLS: 'true' },
      ...{ KVSTORE_PERSECOND_AUTH: `burst:${PASSWORDS.perSecond}`, KVSTORE_PERSECOND_POOL_SIZE: '3' },
      ...{ KVSTORE_PERSECOND_TIMEOUT: TIMEOUT, KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION: 'true' },
      KVSTORE_STARTUP_MAX_INTERVAL: '100ms',
    };
    shop = await Shop.start({ env, awaitServing: false }, RULES);
    ({ weir, client } = shop);
  });
  afterAll(async () => {
    // The servers first: there is no service if it did not start.
    await Promise.all([main[Symbol.asyncDispose](), perSecond[Symbol.asyncDispose]()]);
    tls[Symbol.dispose]();
    await shop[Symbol.asyncDispose]();
  });

  /** The counters in a server, by key. */
  async function stored({ control }: RedisProcess): Promise<Readonly<Record<string, string | null>>> {
    const keys = await control.keys('*');
    return Object.fromEntries(await Promise.all(keys.map(async (key) => [key, await control.get(key)] as const)));
  }

  function breakerOpen(): string {
    return `ratelimit.store.breaker_open.__server=${main.address}.__store=main`;
  }

  it('opens its listeners when both are available', async () => {
    await weir.line(/cannot connect to the counter store/);
    // The rules are active, so the service waits only for the store.
    await weir.until('the rules', async () => (await weir.debug('/rlconfig')).includes('shop.day'));
    expect(await Promise.all([isListening(weir.ports.http), isListening(weir.ports.grpc)])).toEqual([false, false]);
    await weir.line(/level=warning msg="no connection to the counter store; not serving until it is reached"/);
    expect(await weir.debugHealth()).toEqual([500, 'unhealthy: counter store, waiting for the counter store']);
    await main.run();
    await weir.line(/msg="?serving/);
    expect(await health(weir)).toBe(200);
  });

  it('holds the counters of per-second limits in the second server, and all others in the first', async () => {
    const entries = UNITS.map((unit) => `${unit}=x`);
    const { statuses } = await client.shouldRateLimit('shop', entries, 3);
    expect(statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([999_997, 999_997, 999_997]);
    for (const [server, units] of [[main, ['day', 'year']] as const, [perSecond, ['second']] as const]) {
      const counts = await stored(server);
      const keys = units.map((unit) => expect.stringMatching(RegExp(`^prod:shop_${unit}_x_[0-9]{10}$`)) as string);
      expect(Object.keys(counts).toSorted((one, other) => one.localeCompare(other))).toEqual(keys);
      expect(Object.values(counts)).toEqual(units.map(() => '3'));
    }
  });

  it('counts each call that a client resets while the store hangs as an error of the store', async () => {
    const CALLS = 20;
    async function count(name: string): Promise<number> {
      return (await weir.statistics()).get(name) ?? 0;
    }
    const begun = 'ratelimit_server.ShouldRateLimit.total_requests';
    const errors = 'ratelimit.service.call.should_rate_limit.redis_error';
    const before = [await count(begun), await count(errors)] as const;
    using connection = new Http2Connection(weir.grpcAddress);
    main.signal('SIGSTOP');
    const request = requestMessage('shop', ['day=reset']);
    const calls = Array.from({ length: CALLS }, () =>
      connection.call(SHOULD_RATE_LIMIT, request, { 'grpc-timeout': '20S' }),
    );
    await weir.until('the calls to be in flight', async () => (await count(begun)) === before[0] + CALLS);
    expect(await count(errors)).toBe(before[1]);
    for (const { stream } of calls) stream.close(constants.NGHTTP2_CANCEL);
    await weir.until('the resets to be counted', async () => (await count(errors)) === before[1] + CALLS);
    main.signal('SIGCONT');
    // On a busy machine, the store may have hung for so long that it was not called.
    await weir.until('the store to be used', async () => (await count(breakerOpen())) === 0);
    await weir.until('a call to be answered', () =>
      client.shouldRateLimit('shop', ['day=reset']).then(
        () => true,
        () => false,
      ),
    );
  });

  it('is unhealthy and fails calls while a store is away, and recovers by itself', async () => {
    await main.crash();
    await weir.until('the service to turn unhealthy', async () => (await health(weir)) === 500);
    expect(await (await weir.http('/healthcheck')).text()).toContain('counter store');
    await expect(client.shouldRateLimit('shop', ['day=x'])).rejects.toMatchObject({
      code: UNAVAILABLE,
      details: 'there is no connection to the counter store',
    });
    const body = JSON.stringify({ domain: 'shop', descriptors: [{ entries: [{ key: 'day', value: 'x' }] }] });
    expect((await weir.http('/json', { method: 'POST', body })).status).toBe(503);
    await main.run();
    await weir.until('the service to turn healthy', async () => (await health(weir)) === 200);
    expect((await client.shouldRateLimit('shop', ['day=y'])).statuses[0]?.limitRemaining).toBe(999_999);
  });

  it('fails calls without the store after five failures, until it is back, and reports the fault once', async () => {
    const gauge = breakerOpen();
    function faults(): number {
      return weir.output.match(/a counter store does not answer/g)?.length ?? 0;
    }
    const before = faults();
    function call(): Promise<string> {
      return client.shouldRateLimit('shop', ['day=z']).then(
        () => 'OK',
        ({ details }: { readonly details: string }) => details,
      );
    }
    expect((await weir.statistics()).get(gauge)).toBe(0);
    await main.crash();
    await weir.until('calls to fail immediately', async () => /fail immediately/.test(await call()));
    expect((await weir.statistics()).get(gauge)).toBe(1);
    await main.run();
    await weir.until('calls to be counted', async () => (await call()) === 'OK');
    expect((await weir.statistics()).get(gauge)).toBe(0);
    await weir.line(/a counter store answers again.* calls=[0-9]+/);
    expect(faults()).toBe(before + 1);
  });

  it('answers all calls in flight at SIGTERM, and the store holds exactly the hits that callers got counts for', async () => {
    const failures: unknown[] = [];
    let [answered, inFlight] = [0, 0];
    const callers = Array.from({ length: 32 }, async () => {
      while (failures.length === 0) {
        inFlight += 1;
        await client.shouldRateLimit('shop', ['day=last']).then(
          () => (answered += 1),
          (error: unknown) => failures.push(error),
        );
        inFlight -= 1;
      }
    });
    await weir.until('calls to succeed', () => answered > 200);
    main.signal('SIGSTOP');
    let before = -1;
    const stuck = await weir.until('every caller to wait for the store', () => {
      const isStuck = answered === before && inFlight === callers.length;
      before = answered;
      return isStuck && answered;
    });
    weir.signal('SIGTERM');
    await weir.until('the drain to begin', async () => (await health(weir)) === 500);
    main.signal('SIGCONT');
    expect(await weir.exited).toBe(0);
    await Promise.all(callers);
    expect(answered).toBeGreaterThan(stuck);
    const [[, count] = []] = Object.entries(await stored(main)).filter(([key]) => key.includes('day_last'));
    expect(Number(count)).toBe(answered);
    for (const failure of failures) expect(failure).toMatchObject({ code: UNAVAILABLE });
  });
});

it('does not warn where its user has only the permissions for counting, and nothing is reserved', async () => {
  await using server = await RedisProcess.start();
  const rights = ['+evalsha', '+eval', '+incrby', '+decrby', '+get', '+ttl', '+expire', '+ping'];
  await server.control.call('ACL', 'SETUSER', 'counting', 'on', '>secret', '~*', ...rights);
  const env = { BACKEND_TYPE: 'kvstore', KVSTORE_URL: server.address, KVSTORE_AUTH: 'counting:secret' };
  await using shop = await Shop.start({ env }, RULES);
  expect((await shop.client.shouldRateLimit('shop', ['day=x'])).overallCode).toBe(Code.OK);
  // It has looked for reservations that have expired.
  await shop.weir.until('the look', async () => {
    const denied = JSON.stringify(await server.control.call('ACL', 'LOG'));
    return denied.includes('zrangebyscore');
  });
  await shop.drain();
  expect(shop.weir.output).not.toContain('cannot count');
});

describe('two services on one store', () => {
  const LIMIT = 300;
  let server: RedisProcess;
  let one: Shop;
  let other: WeirProcess;
  beforeAll(async () => {
    server = await RedisProcess.start();
    const store = { BACKEND_TYPE: 'kvstore', KVSTORE_URL: server.address };
    const env = { ...store, STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true' };
    const day = RULES.replace('unit: day, requests_per_unit: 1000000', `unit: day, requests_per_unit: ${LIMIT}`);
    one = await Shop.start({ env }, day);
    other = await WeirProcess.start({ env: { ...one.rules.env, ...env } });
  });
  afterAll(() => Promise.all([one, other, server].map((each) => each?.[Symbol.asyncDispose]())));

  it('allow exactly the limit to concurrent clients, and count no call over it', async () => {
    const clients = Array.from(
      { length: 50 },
      (_, index) => new RateLimitClient((index % 2 === 0 ? one.weir : other).grpcAddress),
    );
    const calls = clients.flatMap((client) =>
      Array.from({ length: 20 }, () => client.shouldRateLimit('shop', ['day=x', 'year=x'])),
    );
    const codes = (await Promise.all(calls)).map(({ overallCode }) => overallCode);
    for (const client of clients) client[Symbol.dispose]();
    expect(codes.filter((code) => code === Code.OK)).toHaveLength(LIMIT);
    const [key = ''] = await server.control.keys('shop_year_x_*');
    expect(await server.control.get(key)).toBe(String(LIMIT));
  });

  it('are healthy without the store unless KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION is set', async () => {
    await server.crash();
    await one.weir.line(/cannot connect to the counter store/);
    await expect(one.client.shouldRateLimit('shop', ['day=x'])).rejects.toMatchObject({ code: UNAVAILABLE });
    expect(await health(one.weir)).toBe(200);
  });
});

describe('two services with local caches on one store, one of them with two workers', () => {
  const TOKEN = 'a-token-of-tests';
  const BURST = 5;
  let server: RedisProcess;
  let one: Shop;
  let other: WeirProcess;
  beforeAll(async () => {
    server = await RedisProcess.start({ directives: ['--maxmemory-policy', 'allkeys-lru'] });
    const env = {
      ...{ BACKEND_TYPE: 'kvstore', KVSTORE_URL: server.address, OPERATOR_TOKEN: TOKEN, CACHE_KEY_PREFIX: 'shop:' },
      // Without the channel, a key is forgotten when its window ends.
      ...{ LOCAL_CACHE_SIZE_IN_BYTES: '100000', LOCAL_CACHE_MAX_AGE: '0s' },
    };
    const day = RULES.replace('unit: day, requests_per_unit: 1000000', `unit: day, requests_per_unit: ${BURST}`);
    one = await Shop.start({ env }, day);
    other = await WeirProcess.start({ env: { ...one.rules.env, ...env, WORKERS: '2' } });
  });
  afterAll(() => Promise.all([one, other, server].map((each) => each?.[Symbol.asyncDispose]())));

  async function reserve(user: string): Promise<unknown> {
    const response = await one.weir.http('/v1/reservations', {
      method: 'POST',
      body: JSON.stringify({
        ...{ domain: 'shop', hitsAddend: BURST, ttl: '60s', id: user },
        descriptors: [{ entries: [{ key: 'day', value: user }] }],
      }),
    });
    return response.status;
  }

  it.each<[what: string, spend: (user: string) => Promise<unknown>, free: (user: string) => Promise<unknown>]>([
    [
      'a refund',
      (user) => one.client.shouldRateLimit('shop', [`day=${user}`], BURST),
      (user) => {
        const entries = [{ key: 'day', value: user }];
        return one.client.shouldRateLimit('shop', [
          { entries, limit: undefined, hitsAddend: BigInt(BURST), isNegativeHits: true },
        ]);
      },
    ],
    [
      'the settlement of a reservation',
      reserve,
      (user) => one.weir.http(`/v1/reservations/${user}/settle`, { method: 'POST', body: JSON.stringify({ hits: 0 }) }),
    ],
    [
      'a cleared counter',
      (user) => one.client.shouldRateLimit('shop', [`day=${user}`], BURST),
      (user) =>
        fetch(`http://127.0.0.1:${one.weir.ports.debug}/api/counters?domain=shop&descriptor=day=${user}`, {
          method: 'DELETE',
          headers: { Authorization: `Bearer ${TOKEN}` },
        }),
    ],
  ])('count again after %s, in each process', async (what, spend, free) => {
    const user = what.replaceAll(' ', '_');
    const name = 'ratelimit.localcache.entryCount';
    const before = (await other.statistics()).get(name) ?? 0;
    await spend(user);
    const clients: PinnedClient[] = [];
    await other.until('each process to have the key', async () => {
      const client = await PinnedClient.connect(other.grpcAddress);
      clients.push(client);
      expect((await client.shouldRateLimit('shop', [`day=${user}`])).overallCode).toBe(Code.OVER_LIMIT);
      return (await other.statistics()).get(name) === before + 2;
    });
    const key = (await server.control.keys(`shop:shop_day_${user}_*`)).find((each) => /_\d+$/.test(each))!;
    expect(await server.control.get(key)).toBe(String(BURST + 2));
    expect(await free(user)).toMatchObject(what === 'a refund' ? { overallCode: Code.OK } : { status: 200 });
    await other.until('each process to have forgotten the key', async () => {
      return (await other.statistics()).get(name) === before;
    });
    expect((await clients[0]!.shouldRateLimit('shop', [`day=${user}`])).overallCode).toBe(Code.OK);
    for (const client of clients) client[Symbol.dispose]();
  });

  it('warn once that the store evicts counters, whatever the number of workers', async () => {
    for (const weir of [one.weir, other]) {
      await weir.line(/evicts counters when its memory is full.*reason="maxmemory-policy allkeys-lru"/);
      expect(weir.output.match(/evicts counters/g)).toHaveLength(1);
    }
  });
});
