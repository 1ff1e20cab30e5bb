import { RateLimitResponse_Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { freePorts } from '../support/processes/free-ports';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { Shop } from './shop';

const LIMIT = 100;
const RULES = `domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: ${LIMIT}}}]\n`;

/** What two services with the policy `local` do with a limit of 100 while their store is away. */
export interface SharedLimits {
  readonly what: string;
  /** STORE_FAILURE_LOCAL_SHARE; without it, 2. */
  readonly share?: 'auto';
  /** Whether the store hangs, and keeps its counts, or loses them. */
  readonly isStopped: boolean;
  /** Calls of each service meanwhile. */
  readonly offered: number;
  /** Calls that pass before, meanwhile and after that. */
  readonly total: number;
  /** Hits in the store in the end. */
  readonly stored: number;
}

/** So many calls, one after the other; returns how many have passed. */
async function passed(shop: Shop, calls: number): Promise<number> {
  let count = 0;
  for (let call = 0; call < calls; call += 1) {
    const { overallCode } = await shop.client.shouldRateLimit('shop', ['user=x']);
    if (overallCode === RateLimitResponse_Code.OK) count += 1;
  }
  return count;
}

/**
 * Waits until a service counts without the store, or with it again. Its calls for another user end what is in flight,
 * and add hits.
 */
function counts(shop: Shop, where: 'locally' | 'in the store'): Promise<unknown> {
  return shop.weir.until(`the service to count ${where}`, async () => {
    const { responseHeadersToAdd: headers } = await shop.client.shouldRateLimit('shop', ['user=other']);
    const open = [...(await shop.weir.statistics())].some(
      ([name, value]) => name.includes('breaker_open') && value > 0,
    );
    return headers.some(({ value }) => value === 'local') === (where === 'locally') && open === (where === 'locally');
  });
}

export async function expectSharedLimits(row: SharedLimits): Promise<void> {
  const { isStopped, offered, total, stored, share = '2' } = row;
  await using server = await RedisProcess.start();
  const ports = await freePorts(2);
  const env = {
    ...{ STORE_FAILURE_POLICY: 'local', LIMIT_RESPONSE_HEADERS_ENABLED: 'true', STORE_FAILURE_LOCAL_SHARE: share },
    ...{ BACKEND_TYPE: 'kvstore', KVSTORE_URL: server.address },
    OPERATOR_PEERS: ports.map((port) => `127.0.0.1:${port}`).join(),
  };
  await using one = await Shop.start({ env: { ...env, DEBUG_PORT: String(ports[0]) } }, RULES);
  await using other = await Shop.start({ env: { ...env, DEBUG_PORT: String(ports[1]) } }, RULES);
  for (const shop of share === 'auto' ? [one, other] : []) {
    await shop.weir.until('both to be seen', async () => {
      return (await shop.weir.statistics()).get('ratelimit.store.local_share') === 2;
    });
  }
  let sum = (await passed(one, 20)) + (await passed(other, 20)) + (await passed(one, 1));
  if (isStopped) server.signal('SIGSTOP');
  else await server.crash();
  for (const shop of [one, other]) {
    await counts(shop, 'locally');
    sum += await passed(shop, offered);
  }
  if (isStopped) server.signal('SIGCONT');
  else await server.run();
  for (const shop of [one, other]) await counts(shop, 'in the store');
  for (const shop of [one, other]) sum += await passed(shop, LIMIT);
  expect(sum).toBe(total);
  const [key = ''] = await server.control.keys('shop_user_x_*');
  expect(await server.control.get(key)).toBe(String(stored));
}
