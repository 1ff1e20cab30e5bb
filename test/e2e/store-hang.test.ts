import { RateLimitClient } from '../support/clients/grpc-client';
import { MemcachedProcess } from '../support/processes/memcached-process';
import { RedisProcess } from '../support/processes/redis/redis-process';
import type { WeirProcess } from '../support/processes/weir-process';
import { Shop } from './shop';

const RULES = `domain: shop
descriptors:
  - {key: passes, on_store_failure: allow, rate_limit: {unit: day, requests_per_unit: 1000}}
  - {key: counts, on_store_failure: local, rate_limit: {unit: day, requests_per_unit: 1000}}
  - {key: denies, on_store_failure: deny, rate_limit: {unit: day, requests_per_unit: 1000}}
  - {key: fails, rate_limit: {unit: day, requests_per_unit: 1000}}
`;

interface Health {
  readonly state: string;
  readonly store: { readonly servers: readonly { readonly isOpen: boolean; readonly text: string }[] };
}

async function health(weir: WeirProcess): Promise<Health> {
  return JSON.parse(await weir.debug('/api/health')) as Health;
}

/** The outcome of a call: its code and what remains, or the text of its error. */
function call(client: RateLimitClient, descriptor: string): Promise<string> {
  return client.shouldRateLimit('shop', [descriptor]).then(
    ({ overallCode, statuses }) => `${overallCode} ${statuses[0]?.limitRemaining}`,
    ({ details }: { readonly details: string }) => details,
  );
}

const clients: RateLimitClient[] = [];
afterEach(() => clients.splice(0).forEach((client) => client[Symbol.dispose]()));

function connect(weir: WeirProcess): RateLimitClient {
  const client = new RateLimitClient(weir.grpcAddress);
  clients.push(client);
  return client;
}

describe('with default settings, a Redis that hangs', () => {
  it.each(['1', '2'])(
    'is noticed: policies answer at once, other calls fail, until it answers, which needs no call, with WORKERS=%s',
    async (WORKERS) => {
      await using server = await RedisProcess.start();
      await using shop = await Shop.start(
        { env: { WORKERS, BACKEND_TYPE: 'kvstore', KVSTORE_URL: server.address } },
        RULES,
      );
      const { weir } = shop;
      // Each worker has some.
      const connections = Array.from({ length: 4 }, () => connect(weir));
      for (const one of connections) expect(await call(one, 'counts=x')).toMatch(/^1 /);
      server.signal('SIGSTOP');
      const waiting = Array.from({ length: 4 }, (_, index) => call(connections[index]!, 'fails=x'));
      for (const [descriptor, code] of [
        ['passes=x', '1'],
        ['denies=x', '2'],
        ['counts=x', '1'],
      ] as const) {
        for (const one of connections) expect(await call(one, descriptor)).toMatch(`${code} `);
      }
      await weir.line(/a counter store does not answer/);
      await weir.until('calls to fail immediately', async () => {
        const outcomes = await Promise.all(connections.map((one) => call(one, 'fails=x')));
        return outcomes.every((outcome) => outcome.includes('fail immediately'));
      });
      await weir.until('its health to be red', async () => (await health(weir)).state === 'red');
      server.signal('SIGCONT');
      await Promise.all(waiting);
      // Nobody calls.
      await weir.until('it to be used', async () => (await health(weir)).store.servers.every(({ isOpen }) => !isOpen));
      await weir.line(/a counter store answers again.* calls=[1-9]/);
      const counted = await server.control.keys('*counts*');
      expect(await server.control.get(counted[0]!)).toBe('8');
    },
  );
});

it('with STORE_BREAKER_FAILURES=0, the log says that calls are still sent to a Redis that hangs', async () => {
  await using server = await RedisProcess.start();
  const env = { BACKEND_TYPE: 'kvstore', KVSTORE_URL: server.address, STORE_BREAKER_FAILURES: '0' };
  await using shop = await Shop.start({ env }, RULES);
  const connection = connect(shop.weir);
  expect(await call(connection, 'fails=x')).toMatch(/^1 /);
  server.signal('SIGSTOP');
  const waiting = call(connection, 'fails=x');
  await shop.weir.line(
    /a counter store does not answer; calls are still sent to it, because STORE_BREAKER_FAILURES is 0/,
  );
  server.signal('SIGCONT');
  expect(await waiting).toMatch(/^1 /);
  expect(shop.weir.output).not.toContain('not sent');
});

describe('with default settings, a memcached that hangs', () => {
  it('is noticed, and answers again, which needs no call', async () => {
    await using server = await MemcachedProcess.start();
    await using shop = await Shop.start(
      { env: { BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: server.address } },
      RULES,
    );
    const { weir } = shop;
    expect(await call(shop.client, 'fails=x')).toBe('1 999');
    server.hang();
    await weir.until('it not to be called', async () => {
      // Its counters count as 0.
      expect(await call(shop.client, 'fails=x')).toMatch('1 99');
      return weir.output.includes('a memcached server does not answer');
    });
    await weir.until('its health to be red', async () => (await health(weir)).state === 'red');
    server.resume();
    await weir.until('it to be used', async () => (await health(weir)).store.servers.every(({ isOpen }) => !isOpen));
    await weir.line(/a memcached server answers again/);
  });
});

it('a memcached that hangs gets what the policy local has counted, without a call', async () => {
  await using server = await MemcachedProcess.start();
  const env = { BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: server.address, STORE_FAILURE_POLICY: 'local' };
  await using shop = await Shop.start({ env }, RULES);
  async function stored(): Promise<string | undefined> {
    const today = Math.floor(Date.now() / 86_400_000) * 86_400;
    return /^VALUE .*\r\n(\d+)/.exec(await server.command(`get shop_counts_x_${today}\r\n`))?.[1];
  }
  expect(await call(shop.client, 'counts=x')).toBe('1 999');
  server.hang();
  await shop.weir.until('it not to be called', async () => {
    expect(await call(shop.client, 'passes=x')).toMatch('1 ');
    return shop.weir.output.includes('a memcached server does not answer');
  });
  for (let hit = 0; hit < 5; hit += 1) expect(await call(shop.client, 'counts=x')).toMatch('1 ');
  server.resume();
  await shop.weir.until('its hits to be added', async () => (await stored()) === '6');
});

it('with KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION, an instance whose Redis hangs is unhealthy, until it answers', async () => {
  await using server = await RedisProcess.start();
  const env = { BACKEND_TYPE: 'kvstore', KVSTORE_URL: server.address, KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION: 'true' };
  await using shop = await Shop.start({ env }, RULES);
  async function status(): Promise<number> {
    return (await shop.weir.http('/healthcheck')).status;
  }
  expect(await status()).toBe(200);
  server.signal('SIGSTOP');
  const waiting = call(shop.client, 'fails=x');
  await shop.weir.until('it to be unhealthy', async () => (await status()) === 500);
  server.signal('SIGCONT');
  await shop.weir.until('it to be healthy', async () => (await status()) === 200);
  expect(await waiting).toMatch('1 999');
});
