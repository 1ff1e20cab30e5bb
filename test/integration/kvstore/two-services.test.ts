import { RateLimitResponse_Code } from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import { RateLimitClient } from '../../support/clients/grpc-client';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { RuleFolder } from '../../support/data/rule-folder';
import { WeirProcess } from '../../support/processes/weir-process';

const CLIENTS = 50;
const CALLS = 20;
const LIMIT = 300;
const TOKEN = 'a-token-of-tests';

const RULES = `domain: shop
descriptors:
  - key: one
    rate_limit: { unit: day, requests_per_unit: ${LIMIT} }
  - key: other
    rate_limit: { unit: day, requests_per_unit: 4000000000 }
`;

let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with({ 'shop.yaml': RULES });
});
afterAll(() => rules[Symbol.asyncDispose]());

/** How many calls are allowed when 50 clients call two services on one store concurrently. */
async function allowedCalls(env: Readonly<Record<string, string>>, descriptors: readonly string[]): Promise<number> {
  const settings = { ...rules.env, BACKEND_TYPE: 'kvstore', ...env };
  await using one = await WeirProcess.start({ env: settings });
  await using other = await WeirProcess.start({ env: settings });
  const clients = Array.from(
    { length: CLIENTS },
    (_, index) => new RateLimitClient(index % 2 === 0 ? one.grpcAddress : other.grpcAddress),
  );
  try {
    const responses = await Promise.all(
      clients.flatMap((client) => Array.from({ length: CALLS }, () => client.shouldRateLimit('shop', descriptors))),
    );
    return responses.filter(({ overallCode }) => overallCode === RateLimitResponse_Code.OK).length;
  } finally {
    for (const client of clients) client[Symbol.dispose]();
  }
}

describe('two services on one store', () => {
  it('allow exactly the limit on a single server, also when calls over the limit are not counted', async () => {
    await using server = await RedisProcess.start();
    expect(await allowedCalls({ KVSTORE_URL: server.address }, ['one=a'])).toBe(LIMIT);
    const guarded = { KVSTORE_URL: server.address, STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true' };
    expect(await allowedCalls(guarded, ['one=b', 'other=b'])).toBe(LIMIT);
    const [key = ''] = await server.control.keys('shop_other_b_*');
    expect(await server.control.get(key)).toBe(String(LIMIT));
  });

  it('allow exactly the limit on a master that sentinels monitor', async () => {
    await using sentinels = await RedisSentinels.start();
    expect(await allowedCalls({ KVSTORE_URL: sentinels.url, KVSTORE_TYPE: 'sentinel' }, ['one=a'])).toBe(LIMIT);
  });

  it('allow exactly the limit on a cluster, for calls with one descriptor', async () => {
    await using cluster = await RedisCluster.start();
    expect(await allowedCalls({ KVSTORE_URL: cluster.url, KVSTORE_TYPE: 'cluster' }, ['one=a'])).toBe(LIMIT);
  });
});

describe('a counter that an operator clears with one of two services', () => {
  it('is counted again by the other one within LOCAL_CACHE_MAX_AGE, though its local cache has it as over its limit', async () => {
    await using server = await RedisProcess.start();
    const settings = {
      ...rules.env,
      BACKEND_TYPE: 'kvstore',
      KVSTORE_URL: server.address,
      OPERATOR_TOKEN: TOKEN,
    };
    const cached = { LOCAL_CACHE_SIZE_IN_BYTES: '100000', LOCAL_CACHE_MAX_AGE: '1s' };
    await using one = await WeirProcess.start({ env: settings });
    await using other = await WeirProcess.start({ env: { ...settings, ...cached } });
    using client = new RateLimitClient(other.grpcAddress);
    async function code(hits: number): Promise<RateLimitResponse_Code> {
      return (await client.shouldRateLimit('shop', ['one=c'], hits)).overallCode;
    }
    expect(await code(LIMIT)).toBe(RateLimitResponse_Code.OK);
    await other.until('the counter to be in the local cache', async () => {
      expect(await code(1)).toBe(RateLimitResponse_Code.OVER_LIMIT);
      return Number((await other.statistics()).get('ratelimit.localcache.hitCount')) > 0;
    });
    const cleared = await fetch(`http://127.0.0.1:${one.ports.debug}/api/counters?domain=shop&descriptor=one=c`, {
      method: 'DELETE',
      headers: { Authorization: `Bearer ${TOKEN}` },
    });
    expect(cleared.status).toBe(200);
    await other.until('the counter to be asked for again', async () => (await code(1)) === RateLimitResponse_Code.OK);
  });
});
