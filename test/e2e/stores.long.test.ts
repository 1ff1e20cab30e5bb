import { freePorts } from '../support/processes/free-ports';
import { peakMemory } from '../support/processes/process-memory';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { LIMIT, Shop } from './shop';

const RESOURCE_EXHAUSTED = 8;

it('a service without its store exits with 1 and the reason after KVSTORE_STARTUP_MAX_ELAPSED_TIME', async () => {
  const [port] = await freePorts(1);
  const store = { BACKEND_TYPE: 'kvstore', KVSTORE_URL: `127.0.0.1:${port}` };
  await using shop = await Shop.start({
    env: { ...store, KVSTORE_STARTUP_MAX_ELAPSED_TIME: '200ms' },
    awaitServing: false,
  });
  expect(await shop.weir.exited).toBe(1);
  const reason = /the service cannot run: cannot connect to the counter store within 200 ms: .*refused/i;
  expect(shop.weir.output).toMatch(reason);
});

it('a service whose only connection is busy fails calls with RESOURCE_EXHAUSTED, and counts none of them', async () => {
  await using server = await RedisProcess.start();
  const policy = { KVSTORE_POOL_ON_EMPTY_BEHAVIOR: 'ERROR', KVSTORE_POOL_ON_EMPTY_WAIT_DURATION: '20ms' };
  const store = { BACKEND_TYPE: 'kvstore', KVSTORE_URL: server.address, KVSTORE_POOL_SIZE: '1' };
  await using shop = await Shop.start({ env: { ...store, KVSTORE_TIMEOUT: '20s', ...policy } });
  server.signal('SIGSTOP');
  const first = shop.hit();
  await shop.called();
  await expect(shop.hit()).rejects.toMatchObject({
    code: RESOURCE_EXHAUSTED,
    details: 'every connection to the counter store was busy',
  });
  server.signal('SIGCONT');
  expect(await first).toBe(LIMIT - 1);
});

it('a service with a heap of 128 MiB keeps no body in memory because a part of it is in a table', async () => {
  const rule = '{key: agent, value_to_metric: true, rate_limit: {unit: day, requests_per_unit: 1}}';
  await using shop = await Shop.start(
    { env: { NODE_OPTIONS: '--max-old-space-size=128' } },
    `domain: shop\ndescriptors: [${rule}]`,
  );
  const { weir } = shop;
  const padding = ' '.repeat(900_000);
  for (let call = 0; call < 200; call += 1) {
    const agent = { entries: [{ key: 'agent', value: `agent number ${call}` }] };
    const body = padding + JSON.stringify({ domain: 'shop', descriptors: [agent] });
    expect((await weir.http('/json', { method: 'POST', body })).status).toBe(200);
  }
  expect((await weir.statistics()).get('ratelimit.statistics.runtime_keys')).toBe(200);
  expect(peakMemory(weir.pid!)).toBeLessThan(300);
});
