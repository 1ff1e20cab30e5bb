import { RateLimitClient, requestMessage } from '../support/clients/grpc-client';
import { MemcachedProcess } from '../support/processes/memcached-process';
import { WeirProcess } from '../support/processes/weir-process';
import { Shop } from './shop';

const RULES = `domain: shop
descriptors:
  - {key: user, rate_limit: {unit: day, requests_per_unit: 3}}
  - {key: busy, rate_limit: {unit: year, requests_per_unit: 1000000}}
`;
const [OK, OVER_LIMIT] = [1, 2];

describe('two services on one memcached, with the settings of the Go service', () => {
  let server: MemcachedProcess;
  let shop: Shop;
  let one: WeirProcess;
  let other: WeirProcess;
  let client: RateLimitClient;

  /** The counter of an entry whose window has this many seconds. */
  function stored(entry: string, unit: number) {
    const now = Math.floor(Date.now() / 1000);
    return server.value(`shop_${entry}_${now - (now % unit)}`);
  }

  beforeAll(async () => {
    server = await MemcachedProcess.start();
    const health = { REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: 'true' };
    const env = { BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: server.address, ...health };
    shop = await Shop.start({ env }, RULES);
    ({ weir: one, client } = shop);
    other = await WeirProcess.start({ env: { ...shop.rules.env, ...env } });
  });
  afterAll(async () => {
    await Promise.all([shop, other, server].map((each) => each?.[Symbol.asyncDispose]()));
  });

  it('limit calls together, and are healthy', async () => {
    using otherClient = new RateLimitClient(other.grpcAddress);
    const request = requestMessage('shop', ['user=anna']);
    const codes: number[] = [];
    for (let call = 0; call < 6; call += 1) {
      // A call reads what the one before it has written, also to the other instance.
      const written = await stored('user_anna', 86_400);
      codes.push((await (call % 2 === 0 ? client : otherClient).send(request)).overallCode);
      await one.until('the hit is written', async () => (await stored('user_anna', 86_400)) !== written);
    }
    expect(codes).toEqual([OK, OK, OK, OVER_LIMIT, OVER_LIMIT, OVER_LIMIT]);
    expect((await one.http('/healthcheck')).status).toBe(200);
    expect(one.output).toContain('memcached (127.0.0.1:');
  });

  it.each([
    ['algorithm: token_bucket', 'the algorithm token_bucket cannot be used'],
    ['block_for: 24h', 'block_for cannot be used'],
  ])('reject rules with %s, and keep those that they have', async (field, error) => {
    const rate = `{unit: day, requests_per_unit: 3, ${field}}`;
    await shop.rules.write('shop.yaml', `domain: shop\ndescriptors:\n  - {key: user, rate_limit: ${rate}}\n`);
    expect(await one.line(new RegExp(`rules rejected.*${error}`))).toContain(
      `shop.yaml:3:11: ${error}: memcached has no scripts, without which a decision is not atomic`,
    );
    await shop.rules.write('shop.yaml', RULES);
  });

  it('write every hit before they end', async () => {
    const request = requestMessage('shop', ['busy=x']);
    await Promise.all(Array.from({ length: 200 }, () => client.send(request)));
    await shop.drain();
    expect(await stored('busy_x', 31_536_000)).toBe('200');
  });
});
