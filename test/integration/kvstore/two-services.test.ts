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

/** How many of the calls of 50 clients pass that call two services on one store all at once. */
async function passes(env: Readonly<Record<string, string>>, descriptors: readonly string[]): Promise<number> {
  const settings = { ...rules.env, BACKEND_TYPE: 'kvstore', ...env };
  await using one = await WeirProcess.start({ env: settings });
  await using other = await WeirProcess.start({ env: settings });
  const clients = Array.from(
    { length: CLIENTS },
    (_, index) => new RateLimitClient(index % 2 === 0 ? one.grpcAddress : other.grpcAddress),
  );
  try {
    const answers = await Promise.all(
      clients.flatMap((client) => Array.from({ length: CALLS }, () => client.ask('shop', descriptors))),
    );
    return answers.filter(({ overallCode }) => overallCode === RateLimitResponse_Code.OK).length;
  } finally {
    for (const client of clients) client[Symbol.dispose]();
  }
}

describe('two services on one store let exactly the limit pass', () => {
  it('of a single server, also when a call is counted only if it passes', async () => {
    await using server = await RedisProcess.start();
    expect(await passes({ KVSTORE_URL: server.address }, ['one=a'])).toBe(LIMIT);
    const guarded = { KVSTORE_URL: server.address, STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true' };
    expect(await passes(guarded, ['one=b', 'other=b'])).toBe(LIMIT);
    const [key = ''] = await server.control.keys('shop_other_b_*');
    expect(await server.control.get(key)).toBe(String(LIMIT));
  });

  it('of a master that sentinels watch', async () => {
    await using sentinels = await RedisSentinels.start();
    expect(await passes({ KVSTORE_URL: sentinels.url, KVSTORE_TYPE: 'sentinel' }, ['one=a'])).toBe(LIMIT);
  });

  it('of a cluster, for calls of one descriptor', async () => {
    await using cluster = await RedisCluster.start();
    expect(await passes({ KVSTORE_URL: cluster.url, KVSTORE_TYPE: 'cluster' }, ['one=a'])).toBe(LIMIT);
  });
});
