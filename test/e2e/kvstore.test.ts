import { constants } from 'node:http2';
import { Client, credentials } from '@grpc/grpc-js';
import { HealthCheckResponse, HealthCheckResponse_ServingStatus as Status } from '../../src/gen/grpc/health/v1/health';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/rate-limit/rate-limit-service';
import { RateLimitClient, requestMessage } from '../support/clients/grpc-client';
import { Http2Connection } from '../support/clients/http2-connection';
import { isListening } from '../support/processes/is-listening';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const RULES = {
  'shop.yaml': [
    'domain: shop',
    'descriptors:',
    '  - {key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}',
    '  - {key: burst, rate_limit: {unit: second, requests_per_unit: 1000000}}',
  ].join('\n'),
};
const RESOURCE_EXHAUSTED = 8;
const UNAVAILABLE = 14;

let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
});
afterAll(() => rules[Symbol.asyncDispose]());

/** Keys of limits per second stay longer than a test takes, almost always. */
const KEPT = { EXPIRATION_JITTER_MAX_SECONDS: '1000000' };

/** The settings by the names that the Go service uses. */
function settings(server: RedisProcess, more: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  return {
    ...rules.env,
    BACKEND_TYPE: 'redis',
    REDIS_SOCKET_TYPE: 'tcp',
    REDIS_URL: server.address,
    REDIS_STARTUP_INITIAL_INTERVAL: '20ms',
    REDIS_STARTUP_MAX_INTERVAL: '100ms',
    ...more,
  };
}

/** The hits that the server holds for a descriptor, over all windows. */
async function storedHits({ control }: RedisProcess, entry: string): Promise<number> {
  const keys = await control.keys(`shop_${entry}_*`);
  const counts = await Promise.all(keys.map((key) => control.get(key)));
  return counts.reduce((sum, count) => sum + Number(count), 0);
}

function grpcHealth(weir: WeirProcess): Promise<Status> {
  const client = new Client(weir.grpcAddress, credentials.createInsecure());
  return new Promise<Status>((resolve, reject) => {
    client.makeUnaryRequest(
      '/grpc.health.v1.Health/Check',
      (request: Buffer) => request,
      (answer: Buffer) => HealthCheckResponse.decode(answer),
      Buffer.alloc(0),
      (error, response) => (error === null && response ? resolve(response.status) : reject(error ?? new Error('none'))),
    );
  }).finally(() => client.close());
}

async function healthcheck(weir: WeirProcess): Promise<number> {
  return (await weir.http('/healthcheck')).status;
}

describe('the service on a real server', () => {
  it('counts together with another instance, configured with the settings of the Go service', async () => {
    await using server = await RedisProcess.start();
    await using one = await WeirProcess.start({ env: settings(server) });
    await using other = await WeirProcess.start({ env: settings(server) });
    using client = new RateLimitClient(one.grpcAddress);
    using otherClient = new RateLimitClient(other.grpcAddress);
    await client.shouldRateLimit('shop', ['user=x'], 3);
    expect((await otherClient.shouldRateLimit('shop', ['user=x'])).statuses[0]?.limitRemaining).toBe(999_996);
    expect(await storedHits(server, 'user_x')).toBe(4);
    expect((await one.statistics()).get('ratelimit.redis_pool.cx_active')).toBeGreaterThan(0);
  });

  it('counts limits per second on a separate server', async () => {
    await using main = await RedisProcess.start();
    await using perSecond = await RedisProcess.start();
    const env = {
      REDIS_PERSECOND: 'true',
      REDIS_PERSECOND_SOCKET_TYPE: 'unix',
      REDIS_PERSECOND_URL: perSecond.socket,
      ...KEPT,
    };
    await using weir = await WeirProcess.start({ env: settings(main, env) });
    using client = new RateLimitClient(weir.grpcAddress);
    const { statuses } = await client.shouldRateLimit('shop', ['user=x', 'burst=x'], 2);
    expect(statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([999_998, 999_998]);
    expect([await main.control.dbsize(), await storedHits(main, 'user_x')]).toEqual([1, 2]);
    expect([await perSecond.control.dbsize(), await storedHits(perSecond, 'burst_x')]).toEqual([1, 2]);
  });
});

describe('the health of the service', () => {
  it('follows the connection to the store when KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION is set', async () => {
    await using server = await RedisProcess.start();
    const env = { KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION: 'true' };
    await using weir = await WeirProcess.start({ env: settings(server, env) });
    expect([await healthcheck(weir), await grpcHealth(weir)]).toEqual([200, Status.SERVING]);

    await server.crash();
    await weir.until('the service to turn unhealthy', async () => (await healthcheck(weir)) === 500);
    expect(await (await weir.http('/healthcheck')).text()).toContain('counter store');
    expect(await grpcHealth(weir)).toBe(Status.NOT_SERVING);

    await server.run();
    await weir.until('the service to turn healthy', async () => (await healthcheck(weir)) === 200);
    expect(await grpcHealth(weir)).toBe(Status.SERVING);
    using client = new RateLimitClient(weir.grpcAddress);
    expect((await client.shouldRateLimit('shop', ['user=x'])).statuses[0]?.limitRemaining).toBe(999_999);
  });

  it('does not depend on the connection by default; calls fail while the store is unavailable and succeed again', async () => {
    await using server = await RedisProcess.start();
    await using weir = await WeirProcess.start({ env: settings(server) });
    using client = new RateLimitClient(weir.grpcAddress);
    await server.crash();
    await weir.line(/cannot connect to the counter store/);
    await expect(client.shouldRateLimit('shop', ['user=x'])).rejects.toMatchObject({
      code: UNAVAILABLE,
      details: 'there is no connection to the counter store',
    });
    const body = JSON.stringify({ domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'x' }] }] });
    expect((await weir.http('/json', { method: 'POST', body })).status).toBe(503);
    expect([await healthcheck(weir), await grpcHealth(weir)]).toEqual([200, Status.SERVING]);

    await server.run();
    await weir.until('calls to succeed', () =>
      client.shouldRateLimit('shop', ['user=x']).then(
        () => true,
        () => false,
      ),
    );
  });
});

describe('the service started while the store is unavailable', () => {
  it('opens its listeners when the store is available', async () => {
    await using server = await RedisProcess.start();
    await server.crash();
    await using weir = await WeirProcess.start({ env: settings(server), awaitServing: false });
    await weir.line(/cannot connect to the counter store/);
    // The rules are active, so the service waits only for the store.
    await weir.until('the rules', async () => (await weir.debug('/rlconfig')).includes('shop.user'));
    expect(await Promise.all([isListening(weir.ports.http), isListening(weir.ports.grpc)])).toEqual([false, false]);
    expect(weir.output).not.toMatch(/msg="?serving/);
    await weir.line(/level=warning msg="no connection to the counter store; not serving until it is reached"/);
    expect(await weir.debugHealth()).toEqual([500, 'unhealthy: waiting for the counter store']);

    await server.run();
    await weir.line(/msg="?serving/);
    using client = new RateLimitClient(weir.grpcAddress);
    expect((await client.shouldRateLimit('shop', ['user=x'])).statuses[0]?.limitRemaining).toBe(999_999);
  });

  it('exits with 1 and the reason after KVSTORE_STARTUP_MAX_ELAPSED_TIME', async () => {
    await using server = await RedisProcess.start();
    await server.crash();
    const env = settings(server, { KVSTORE_STARTUP_MAX_ELAPSED_TIME: '200ms' });
    await using weir = await WeirProcess.start({ env, awaitServing: false });
    expect(await weir.exited).toBe(1);
    expect(weir.output).toMatch(
      /the service cannot run: cannot connect to the counter store within 200 ms: .*refused/i,
    );
  });

  it('exits with 0 at a signal', async () => {
    await using server = await RedisProcess.start();
    await server.crash();
    await using weir = await WeirProcess.start({ env: settings(server), awaitServing: false });
    await weir.line(/cannot connect to the counter store/);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
  });
});

describe('KVSTORE_POOL_ON_EMPTY_BEHAVIOR=ERROR', () => {
  it('fails calls with RESOURCE_EXHAUSTED while the only connection is busy, and answers the call that uses it', async () => {
    await using server = await RedisProcess.start();
    const env = {
      REDIS_POOL_SIZE: '1',
      KVSTORE_POOL_ON_EMPTY_BEHAVIOR: 'ERROR',
      REDIS_POOL_ON_EMPTY_WAIT_DURATION: '20ms',
      REDIS_TIMEOUT: '20s',
    };
    await using weir = await WeirProcess.start({ env: settings(server, env) });
    using client = new RateLimitClient(weir.grpcAddress);
    server.signal('SIGSTOP');
    const first = client.shouldRateLimit('shop', ['user=x']);
    await weir.until('the first call to be in flight', async () =>
      (await weir.statistics()).has('ratelimit.service.rate_limit.shop.user.total_hits'),
    );
    const others = await Promise.allSettled(
      Array.from({ length: 5 }, () => client.shouldRateLimit('shop', ['user=x'])),
    );
    server.signal('SIGCONT');
    expect((await first).statuses[0]?.limitRemaining).toBe(999_999);
    for (const other of others) {
      expect(other).toMatchObject({
        reason: { code: RESOURCE_EXHAUSTED, details: 'every connection to the counter store was busy' },
      });
    }
    // None of those that failed was counted.
    expect((await client.shouldRateLimit('shop', ['user=x'])).statuses[0]?.limitRemaining).toBe(999_998);
  });
});

describe('the statistic redis_error', () => {
  const CALLS = 20;
  const REQUEST = requestMessage('shop', ['user=x']);
  const DEADLINE_EXCEEDED = 4;
  let server: RedisProcess;
  let weir: WeirProcess;
  let client: RateLimitClient;
  beforeAll(async () => {
    server = await RedisProcess.start();
    weir = await WeirProcess.start({ env: settings(server) });
    client = new RateLimitClient(weir.grpcAddress);
    // Connects, so that the deadlines of the calls do not include it.
    await client.send(REQUEST);
  });
  beforeEach(() => server.signal('SIGSTOP'));
  afterEach(async () => {
    server.signal('SIGCONT');
    await client.send(REQUEST);
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    client[Symbol.dispose]();
    await weir[Symbol.asyncDispose]();
  });

  async function counts() {
    const statistics = await weir.statistics();
    return {
      begun: statistics.get('ratelimit.service.rate_limit.shop.user.total_hits') ?? 0,
      errors: statistics.get('ratelimit.service.call.should_rate_limit.redis_error') ?? 0,
    };
  }

  it('counts each call that a client resets at its deadline while the store hangs', async () => {
    const before = await counts();
    const calls = Array.from({ length: CALLS }, () => client.send(REQUEST, Date.now() + 5_000));
    for (const outcome of await Promise.allSettled(calls)) {
      expect(outcome).toMatchObject({ reason: { code: DEADLINE_EXCEEDED } });
    }
    await weir.until('every call that the service has begun to be counted', async () => {
      const { begun, errors } = await counts();
      return begun > before.begun && errors - before.errors === begun - before.begun;
    });
  });

  it('counts each call that a client resets before its deadline while the store hangs', async () => {
    using connection = new Http2Connection(weir.grpcAddress);
    const before = await counts();
    const calls = Array.from({ length: CALLS }, () =>
      connection.call(SHOULD_RATE_LIMIT, REQUEST, { 'grpc-timeout': '20S' }),
    );
    await weir.until('the calls to be in flight', async () => (await counts()).begun === before.begun + CALLS);
    expect((await counts()).errors).toBe(before.errors);
    for (const { stream } of calls) stream.close(constants.NGHTTP2_CANCEL);
    await weir.until('the resets to be counted', async () => (await counts()).errors === before.errors + CALLS);
  });
});

describe('SIGTERM while windows are in flight', () => {
  it('answers all calls, and the store holds exactly the hits that callers got counts for', async () => {
    await using server = await RedisProcess.start();
    await using weir = await WeirProcess.start({ env: settings(server, { REDIS_TIMEOUT: '30s' }) });
    const clients = Array.from({ length: 4 }, () => new RateLimitClient(weir.grpcAddress));
    const failures: unknown[] = [];
    let answered = 0;
    let inFlight = 0;
    const callers = clients.flatMap((client) =>
      Array.from({ length: 8 }, async () => {
        while (failures.length === 0) {
          inFlight += 1;
          await client.shouldRateLimit('shop', ['user=x']).then(
            () => (answered += 1),
            (error: unknown) => failures.push(error),
          );
          inFlight -= 1;
        }
      }),
    );
    await weir.until('calls to succeed', () => answered > 200);
    server.signal('SIGSTOP');
    const stuck = await weir.until('every caller to wait for the store', async () => {
      const before = answered;
      await new Promise((resolve) => setTimeout(resolve, 20));
      return answered === before && inFlight === callers.length && answered;
    });
    weir.signal('SIGTERM');
    await weir.until('the drain to begin', async () => (await healthcheck(weir)) === 500);
    server.signal('SIGCONT');
    expect(await weir.exited).toBe(0);
    await Promise.all(callers);
    for (const client of clients) client[Symbol.dispose]();

    expect(answered).toBeGreaterThan(stuck);
    expect(await storedHits(server, 'user_x')).toBe(answered);
    for (const failure of failures) expect(failure).toMatchObject({ code: UNAVAILABLE });
  });
});
