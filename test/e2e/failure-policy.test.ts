import { status } from '@grpc/grpc-js';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/rate-limit/rate-limit-service';
import { requestMessage } from '../support/clients/grpc-client';
import { entries } from '../support/data/requests';
import { callByHand } from '../support/clients/call-by-hand';
import { MemcachedProcess } from '../support/processes/memcached-process';
import { RedisProcess } from '../support/processes/redis/redis-process';
import type { WeirProcess } from '../support/processes/weir-process';
import { expectSharedLimits } from './shared-limits';
import { Shop } from './shop';

const RULES = `domain: shop
descriptors:
  - {key: user, rate_limit: {unit: day, requests_per_unit: 10}}
  - {key: login, on_store_failure: deny, rate_limit: {unit: day, requests_per_unit: 10}}
  - {key: strict, on_store_failure: error, rate_limit: {unit: day, requests_per_unit: 10}}
  - {key: counted, on_store_failure: local, rate_limit: {unit: day, requests_per_unit: 10}}
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

async function explain(weir: WeirProcess, ...descriptors: readonly string[]): Promise<unknown> {
  const body = JSON.stringify({ domain: 'shop', descriptors: descriptors.map((text) => ({ entries: entries(text) })) });
  return JSON.parse(await weir.debug('/api/explanations', { method: 'POST', body }));
}

async function health(weir: WeirProcess): Promise<unknown> {
  return JSON.parse(await weir.debug('/api/health'));
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
    const store = { BACKEND_TYPE: 'kvstore', KVSTORE_URL: server.address, STORE_DECISION_TIMEOUT: '1s' };
    await using shop = await Shop.start({ env: { ...ENV, ...store } }, RULES);
    const { weir } = shop;
    async function storeCheck(): Promise<string | undefined> {
      return /\[.\]store .*/.exec(await (await weir.http('/readyz?verbose')).text())?.[0];
    }
    expect(await weir.debug('/rlconfig')).toContain(
      'shop.login: unit=DAY requests_per_unit=10, shadow_mode: false, quota_mode: false, on_store_failure: deny',
    );
    expect((await answers(shop)).codes).toEqual({ user: OK, login: OK, banned: OVER_LIMIT });
    expect(await storeCheck()).toBe('[+]store ok');

    await server.crash();
    expect(await answers(shop)).toEqual(DEGRADED);
    await expect(shop.client.shouldRateLimit('shop', ['user=x', 'strict=x'])).rejects.toMatchObject({
      code: status.UNAVAILABLE,
    });
    expect(await storeCheck()).toBe('[+]store degraded (allow)');
    const away = { server: server.address, store: 'main', isOpen: true, state: 'amber' };
    expect(await health(weir)).toMatchObject({
      ...{ healthy: true, degraded: ['store degraded (allow)'], state: 'amber' },
      ...{ store: { state: 'amber', policy: 'allow', servers: [away] }, rules: { state: 'green' } },
    });
    expect(await explain(weir, 'user=x')).toMatchObject({ answer: { overallCode: 'OK' } });
    expect(await explain(weir, 'user=x', 'login=x')).toMatchObject({ answer: { overallCode: 'OVER_LIMIT' } });
    expect(await explain(weir, 'user=x', 'strict=x')).toMatchObject({ answer: null, error: { code: 'store_failed' } });
    await weir.line(/"code":"OVER_LIMIT","reason":"store_unavailable","rule":"shop.login","policy":"deny"/);
    await server.run();
    await weir.until('the store to be used', async () => (await answers(shop)).header === undefined);
    expect(await storeCheck()).toBe('[+]store ok');
    expect(await health(weir)).toMatchObject({ degraded: [] });

    server.signal('SIGSTOP');
    expect(await explain(weir, 'login=x')).toMatchObject({ answer: { overallCode: 'OVER_LIMIT' } });
    // The decision timeout is longer.
    const message = requestMessage('shop', ['user=x']);
    expect(await callByHand(weir.grpcAddress, SHOULD_RATE_LIMIT, message, { 'grpc-timeout': '900m' })).toBe(status.OK);
    await Promise.all(Array.from({ length: 20 }, () => shop.hit()));
    expect(await answers(shop)).toEqual(DEGRADED);
    expect((await shop.json('x')).status).toBe(200);
    const byPolicy = (await weir.statistics()).get('ratelimit.store.answers_by_policy.__policy=allow');
    expect(byPolicy).toBeGreaterThan(3);
    await shop.drain();
  });

  it.each(['1', '2'])(
    'ends calls that wait for a store which hangs when it drains, with WORKERS=%s',
    async (WORKERS) => {
      await using server = await RedisProcess.start();
      const env = { WORKERS, BACKEND_TYPE: 'kvstore', KVSTORE_URL: server.address, KVSTORE_TIMEOUT: '1h' };
      await using shop = await Shop.start({ env }, RULES);
      await shop.weir.line(/this timeout bounds what is in flight.* setting=KVSTORE_TIMEOUT/);
      expect(shop.weir.output.match(/this timeout bounds/g)).toHaveLength(1);
      await shop.hit();
      server.signal('SIGSTOP');
      // It does not wait for the store as long as calls do.
      expect(await explain(shop.weir, 'user=x')).toMatchObject({ answer: null, error: { code: 'store_timeout' } });
      const calls = Array.from({ length: 20 }, () => shop.hit().catch(({ code }: { code: number }) => code));
      await shop.weir.until('the calls to be in flight', async () => {
        return (await shop.weir.statistics()).get('ratelimit_server.ShouldRateLimit.total_requests') === 21;
      });
      await shop.drain();
      expect(new Set(await Promise.all(calls))).toEqual(new Set([status.UNAVAILABLE]));
    },
  );

  it('does not say that it waits for a store without which it serves', async () => {
    await using server = await RedisProcess.start();
    await server.crash();
    const env = { ...ENV, BACKEND_TYPE: 'kvstore', KVSTORE_URL: server.address };
    await using shop = await Shop.start({ env }, RULES);
    await shop.weir.line(/the counter store has not been reached; answering calls by policy until it is/);
    expect(shop.weir.output).not.toContain('not serving until');
  });

  it('starts without the store, when each worker counts by itself, and counts when the store is there', async () => {
    await using server = await RedisProcess.start();
    await server.crash();
    const env = { ...ENV, WORKERS: '2', BACKEND_TYPE: 'kvstore', KVSTORE_URL: server.address };
    await using shop = await Shop.start({ env }, RULES);
    expect(await answers(shop)).toEqual(DEGRADED);
    // The connection is that of one worker, whose part of the limit is a half.
    for (const code of [OK, OK, OK, OK, OK, OVER_LIMIT]) {
      expect((await shop.client.shouldRateLimit('shop', ['counted=x'])).overallCode).toBe(code);
    }
    expect(shop.weir.output).toContain('the counter store has not been reached; answering calls by policy until it is');
    await server.run();
    await shop.weir.until('the store to be used', async () => (await answers(shop)).header === undefined);
  });

  it('answers by them while memcached is down, and adds what was counted meanwhile', async () => {
    await using server = await MemcachedProcess.start();
    await using shop = await Shop.start(
      { env: { ...ENV, BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: server.address } },
      RULES,
    );
    async function remaining(descriptor: string, hits: number): Promise<number | undefined> {
      return (await shop.client.shouldRateLimit('shop', [descriptor], hits)).statuses[0]?.limitRemaining;
    }
    expect((await answers(shop)).codes).toEqual({ user: OK, login: OK, banned: OVER_LIMIT });
    expect(await remaining('counted=x', 4)).toBe(6);
    await server.crash();
    expect(await answers(shop)).toEqual(DEGRADED);
    expect(await remaining('counted=x', 3)).toBe(3);
    await shop.weir.line(/"reason":"store_unavailable","rule":"shop.counted","policy":"local",.*"count":7/);
    await server.run();
    await shop.weir.until('the store to be used', async () => (await answers(shop)).header === undefined);
    // It has lost its counts.
    expect(await remaining('counted=x', 1)).toBe(6);
    await server.crash();
    expect(await answers(shop)).toEqual(DEGRADED);
    await remaining('counted=x', 2);
    await shop.drain();
    expect(shop.weir.output).toMatch(/hits could not be added to the counter store, which does not answer.* hits=2$/m);
  });
});

it('a service with the policy `local` names the rules that it does not cover, at each load, and counts them', async () => {
  function rulesWith(...keys: readonly string[]): string {
    const rules = keys.map(
      (key) => `{key: ${key}, rate_limit: {unit: day, requests_per_unit: 9, algorithm: token_bucket}}`,
    );
    return `domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 9}}, ${rules.join(', ')}]\n`;
  }
  await using server = await RedisProcess.start();
  const env = { STORE_FAILURE_POLICY: 'local', BACKEND_TYPE: 'kvstore', KVSTORE_URL: server.address };
  await using shop = await Shop.start({ env }, rulesWith('a'));
  await shop.weir.line(/level=warning .*local does not cover .* 1 rule \(shop\.a\) fail/);
  await shop.rules.write('shop.yaml', rulesWith('a', 'b'));
  await shop.weir.line(/level=warning .*local does not cover .* 2 rules \(shop\.a, shop\.b\) fail/);
  await server.crash();
  const check = await shop.weir.until('the store to be known as away', async () => {
    await Promise.all([shop.hit(), shop.hit()]);
    return /\[\+\]store degraded.*/.exec(await (await shop.weir.http('/readyz?verbose')).text())?.[0];
  });
  expect(check).toBe('[+]store degraded (local; 2 rules: error)');
});

it('two services that share limits of 100 let pass what is left of one when their store hangs, and add each hit once', () =>
  // One above the limit, because the rest is divided by two and rounded up. Hits over the limit are added as well.
  expectSharedLimits({ what: 'hangs', isStopped: true, offered: 100, total: 101, stored: 441 }));
