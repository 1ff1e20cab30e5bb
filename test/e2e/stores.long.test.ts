import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { peakMemory } from '../support/processes/process-memory';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { WeirProcess } from '../support/processes/weir-process';

const LIMIT = 300;
const RULES = `domain: shop
descriptors:
  - {key: limited, rate_limit: {unit: day, requests_per_unit: ${LIMIT}}}
  - {key: agent, value_to_metric: true, rate_limit: {unit: day, requests_per_unit: 1}}
`;

const RESOURCE_EXHAUSTED = 8;

let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with({ 'shop.yaml': RULES });
});
afterAll(() => rules[Symbol.asyncDispose]());

function start(env: Readonly<Record<string, string>>, awaitServing = true): Promise<WeirProcess> {
  return WeirProcess.start({ env: { ...rules.env, BACKEND_TYPE: 'kvstore', ...env }, awaitServing });
}

it('a service without its store exits with 1 and the reason after KVSTORE_STARTUP_MAX_ELAPSED_TIME, and with 0 at a signal before', async () => {
  await using server = await RedisProcess.start();
  await server.crash();
  const env = { KVSTORE_URL: server.address, KVSTORE_STARTUP_INITIAL_INTERVAL: '20ms' };
  await using failing = await start({ ...env, KVSTORE_STARTUP_MAX_ELAPSED_TIME: '200ms' }, false);
  expect(await failing.exited).toBe(1);
  expect(failing.output).toMatch(
    /the service cannot run: cannot connect to the counter store within 200 ms: .*refused/i,
  );
  await using waiting = await start(env, false);
  await waiting.line(/cannot connect to the counter store/);
  waiting.signal('SIGTERM');
  expect(await waiting.exited).toBe(0);
});

it('a service whose only connection is busy fails calls with RESOURCE_EXHAUSTED, and counts none of them', async () => {
  await using server = await RedisProcess.start();
  const policy = { KVSTORE_POOL_ON_EMPTY_BEHAVIOR: 'ERROR', KVSTORE_POOL_ON_EMPTY_WAIT_DURATION: '20ms' };
  await using weir = await start({
    KVSTORE_URL: server.address,
    KVSTORE_POOL_SIZE: '1',
    KVSTORE_TIMEOUT: '20s',
    ...policy,
  });
  using client = new RateLimitClient(weir.grpcAddress);
  server.signal('SIGSTOP');
  const first = client.shouldRateLimit('shop', ['limited=x']);
  await weir.until('the first call to be in flight', async () =>
    (await weir.statistics()).has('ratelimit.service.rate_limit.shop.limited.total_hits'),
  );
  await expect(client.shouldRateLimit('shop', ['limited=x'])).rejects.toMatchObject({
    code: RESOURCE_EXHAUSTED,
    details: 'every connection to the counter store was busy',
  });
  server.signal('SIGCONT');
  expect((await first).statuses[0]?.limitRemaining).toBe(LIMIT - 1);
});

it('a service with a heap of 128 MiB keeps no body in memory because a part of it is in a table', async () => {
  await using weir = await start({ BACKEND_TYPE: 'memory', NODE_OPTIONS: '--max-old-space-size=128' });
  const padding = ' '.repeat(900_000);
  for (let call = 0; call < 200; call += 1) {
    const agent = { entries: [{ key: 'agent', value: `agent number ${call}` }] };
    const body = padding + JSON.stringify({ domain: 'shop', descriptors: [agent] });
    expect((await weir.http('/json', { method: 'POST', body })).status).toBe(200);
  }
  expect((await weir.statistics()).get('ratelimit.statistics.runtime_keys')).toBe(200);
  expect(peakMemory(weir.pid!)).toBeLessThan(300);
});
