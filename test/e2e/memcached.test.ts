import { RateLimitClient, requestMessage } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { MemcachedProcess } from '../support/processes/memcached-process';
import { WeirProcess } from '../support/processes/weir-process';

const RULES = {
  'shop.yaml':
    'domain: shop\ndescriptors:\n  - {key: user, rate_limit: {unit: day, requests_per_unit: 3}}\n' +
    '  - {key: busy, rate_limit: {unit: year, requests_per_unit: 1000000}}\n',
};
const INVALID_ARGUMENT = 3;
const [OK, OVER_LIMIT] = [1, 2];

let rules: RuleFolder;
let server: MemcachedProcess;
beforeAll(async () => {
  [rules, server] = await Promise.all([RuleFolder.with(RULES), MemcachedProcess.start()]);
});
afterAll(() => Promise.all([rules, server].map((each) => each[Symbol.asyncDispose]())));

/** The settings by the names that the Go service uses. */
function settings(more: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  return { ...rules.env, BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: server.address, ...more };
}

describe('the service on memcached', () => {
  it('limits calls of two instances together, and is healthy', async () => {
    await using one = await WeirProcess.start({ env: settings() });
    await using other = await WeirProcess.start({ env: settings() });
    using client = new RateLimitClient(one.grpcAddress);
    using otherClient = new RateLimitClient(other.grpcAddress);
    const request = requestMessage('shop', ['user=anna']);
    const codes: number[] = [];
    for (let call = 0; call < 6; call += 1) {
      // A call reads what the one before it has written, also to the other instance.
      const written = await server.value(keyOf('user_anna', 86_400));
      codes.push((await (call % 2 === 0 ? client : otherClient).send(request)).overallCode);
      await one.until('the hit is written', async () => (await server.value(keyOf('user_anna', 86_400))) !== written);
    }
    expect(codes).toEqual([OK, OK, OK, OVER_LIMIT, OVER_LIMIT, OVER_LIMIT]);
    expect((await one.http('/healthcheck')).status).toBe(200);
    expect(one.output).toContain('memcached (127.0.0.1:');
  });

  it('rejects a call whose key memcached does not allow, and counts it as a service error', async () => {
    await using weir = await WeirProcess.start({ env: settings() });
    using client = new RateLimitClient(weir.grpcAddress);
    await expect(client.send(requestMessage('shop', ['user=a b']))).rejects.toMatchObject({
      code: INVALID_ARGUMENT,
      details: expect.stringContaining('white space') as string,
    });
    const statistics = await weir.statistics();
    expect(statistics.get('ratelimit.service.call.should_rate_limit.service_error')).toBe(1);
    expect(statistics.get('ratelimit.service.call.should_rate_limit.redis_error')).toBe(0);
  });

  it('writes every hit before it ends', async () => {
    await using weir = await WeirProcess.start({ env: settings() });
    using client = new RateLimitClient(weir.grpcAddress);
    const request = requestMessage('shop', ['busy=x']);
    await Promise.all(Array.from({ length: 200 }, () => client.send(request)));
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    expect(await server.value(keyOf('busy_x', 31_536_000))).toBe('200');
  });

  it('answers without limits while the server is away, and says so in its health when that is asked for', async () => {
    await using own = await MemcachedProcess.start();
    const env = settings({ MEMCACHE_HOST_PORT: own.address, REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: 'true' });
    await using weir = await WeirProcess.start({ env });
    using client = new RateLimitClient(weir.grpcAddress);
    await own.crash();
    await weir.until('the service is unhealthy', async () => (await weir.http('/healthcheck')).status === 500);
    const request = requestMessage('shop', ['user=berta']);
    for (let call = 0; call < 5; call += 1) expect((await client.send(request)).overallCode).toBe(OK);
    await own.run();
    await weir.until('the service is healthy', async () => (await weir.http('/healthcheck')).status === 200);
  });
});

function keyOf(entry: string, unit: number): string {
  const now = Math.floor(Date.now() / 1000);
  return `shop_${entry}_${now - (now % unit)}`;
}
