import { status } from '@grpc/grpc-js';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/rate-limit/rate-limit-service';
import { requestMessage } from '../support/clients/grpc-client';
import { callByHand } from '../support/clients/call-by-hand';
import { MemcachedProcess } from '../support/processes/memcached-process';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { Shop } from './shop';

const RULES = `domain: shop
descriptors:
  - {key: user, rate_limit: {unit: day, requests_per_unit: 10}}
  - {key: login, on_store_failure: deny, rate_limit: {unit: day, requests_per_unit: 10}}
  - {key: strict, on_store_failure: error, rate_limit: {unit: day, requests_per_unit: 10}}
  - {key: banned, rate_limit: {unit: day, requests_per_unit: 0}}
`;
const [OK, OVER_LIMIT] = [1, 2];
const LIMITS_OF = { user: OK, login: OVER_LIMIT, banned: OVER_LIMIT };

/** The codes of calls with one descriptor each, and what the header of the last one says. */
async function answers(shop: Shop) {
  const codes: Record<string, number> = {};
  for (const key of Object.keys(LIMITS_OF)) {
    codes[key] = (await shop.client.shouldRateLimit('shop', [`${key}=x`])).overallCode;
  }
  const { responseHeadersToAdd } = await shop.client.shouldRateLimit('shop', ['login=x', 'user=x']);
  const header = responseHeadersToAdd.find(({ key }) => key === 'x-ratelimit-degraded');
  return { codes, header: header?.value };
}

describe('a service with policies for failures of the store', () => {
  const ENV = {
    STORE_FAILURE_POLICY: 'allow',
    LIMIT_RESPONSE_HEADERS_ENABLED: 'true',
    DECISION_LOG: 'all',
    DECISION_LOG_OUTPUT: 'stdout',
  };
  const DEGRADED = { codes: LIMITS_OF, header: 'deny, allow' };

  it('answers by them while Redis is down or hangs, before the deadlines of callers, says so, and drains at once', async () => {
    await using server = await RedisProcess.start();
    // No caller waits for the store as long as the default of KVSTORE_TIMEOUT.
    await using shop = await Shop.start(
      { env: { ...ENV, BACKEND_TYPE: 'kvstore', KVSTORE_URL: server.address } },
      RULES,
    );
    const { weir } = shop;
    async function storeCheck(): Promise<string | undefined> {
      return /\[.\]store .*/.exec(await (await weir.http('/readyz?verbose')).text())?.[0];
    }
    expect(await weir.debug('/rlconfig')).toContain(
      'shop.login: unit=DAY requests_per_unit=10, shadow_mode: false, quota_mode: false, on_store_failure: deny',
    );
    expect((await answers(shop)).codes).toEqual({ user: OK, login: OK, banned: OVER_LIMIT });
    expect(await storeCheck()).toBe('[+]store not checked');

    await server.crash();
    expect(await answers(shop)).toEqual(DEGRADED);
    await expect(shop.client.shouldRateLimit('shop', ['user=x', 'strict=x'])).rejects.toMatchObject({
      code: status.UNAVAILABLE,
    });
    expect(await storeCheck()).toBe('[+]store degraded (allow)');
    await weir.line(/"code":"OVER_LIMIT","reason":"store_unavailable","rule":"shop.login","policy":"deny"/);
    await server.run();
    await weir.until('the store to be used', async () => (await answers(shop)).header === undefined);
    expect(await storeCheck()).toBe('[+]store not checked');

    server.signal('SIGSTOP');
    // The decision timeout, 100 ms, is longer.
    const message = requestMessage('shop', ['user=x']);
    expect(await callByHand(weir.grpcAddress, SHOULD_RATE_LIMIT, message, { 'grpc-timeout': '60m' })).toBe(status.OK);
    expect(await answers(shop)).toEqual(DEGRADED);
    expect((await shop.json('x')).status).toBe(200);
    const byPolicy = (await weir.statistics()).get('ratelimit.store.answers_by_policy.__policy=allow');
    expect(byPolicy).toBeGreaterThan(3);
    await shop.drain();
  });

  it('starts without the store, and counts when it is there', async () => {
    await using server = await RedisProcess.start();
    await server.crash();
    await using shop = await Shop.start(
      { env: { ...ENV, BACKEND_TYPE: 'kvstore', KVSTORE_URL: server.address } },
      RULES,
    );
    expect(await answers(shop)).toEqual(DEGRADED);
    expect(shop.weir.output).toContain('the counter store has not been reached; answering calls by policy until it is');
    await server.run();
    await shop.weir.until('the store to be used', async () => (await answers(shop)).header === undefined);
  });

  it('answers by them while memcached is down', async () => {
    await using server = await MemcachedProcess.start();
    await using shop = await Shop.start(
      { env: { ...ENV, BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: server.address } },
      RULES,
    );
    expect((await answers(shop)).codes).toEqual({ user: OK, login: OK, banned: OVER_LIMIT });
    await server.crash();
    expect(await answers(shop)).toEqual(DEGRADED);
    await server.run();
    await shop.weir.until('the store to be used', async () => (await answers(shop)).header === undefined);
  });
});
