import { Client, credentials } from '@grpc/grpc-js';
import {
  HealthCheckRequest,
  HealthCheckResponse,
  HealthCheckResponse_ServingStatus as Status,
} from '../../src/gen/grpc/health/v1/health';
import { RateLimitClient } from '../support/clients/grpc-client';
import { RedisProcess } from '../support/processes/redis/redis-process';
import type { WeirProcess } from '../support/processes/weir-process';
import { FaultProxy } from '../support/servers/fault-proxy';
import { LIMIT, Load, SHOP, Shop } from './shop';

/** The signals on which the service drains. */
export const DRAIN = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGPWR'] as const;

/** Sends a signal while there are calls in flight, and expects that every counted one is answered. */
export async function expectLosslessDrain(signal: NodeJS.Signals): Promise<void> {
  await using shop = await Shop.start({ env: { KVSTORE_PIPELINE_WINDOW: '20ms' } });
  let counted = 0;
  await using load = new Load(async () => {
    const remaining = (await shop.hit()) ?? NaN;
    counted = Math.max(counted, LIMIT - remaining);
  }, 64);
  await load.more(100, shop.weir);
  await shop.drain(signal);
  await load[Symbol.asyncDispose]();
  expect(counted).toBe(load.answered);
  for (const failure of load.failures) expect(failure).toMatchObject({ code: 14 });
  expect(shop.weir.output).toMatch(new RegExp(`msg="draining: [^"]*" signal=${signal}\n`));
  expect(shop.weir.output).toMatch(/level=info msg="drained; the process exits" duration=\d+ms exit_code=0$/);
}

function statusOfReservation({ weir }: Shop, path: string, content: object): Promise<number> {
  const init = { method: 'POST', body: JSON.stringify(content) };
  return weir.http(`/v1/reservations${path}`, init).then(({ status }) => status);
}

function reserve(shop: Shop, id: string): Promise<number> {
  const descriptors = [{ entries: [{ key: 'user', value: id }] }];
  return statusOfReservation(shop, '', { domain: 'shop', descriptors, ttl: '60s', id });
}

/**
 * Calls that need the store, which are answered with 200 or 201. A settlement has several requests, one after the
 * other.
 */
const SLOW: readonly ((shop: Shop) => Promise<number | string>)[] = [
  (shop) => shop.hit().then(() => 200, String),
  (shop) => shop.json('x').then(({ status }) => status),
  (shop) => reserve(shop, 'opened'),
  (shop) => statusOfReservation(shop, '/before/settle', { hits: 2 }),
];

/** Expects that calls are answered whose store needs more than two seconds for each reply when the service drains. */
export async function expectAnsweredByDrain(WORKERS: string): Promise<void> {
  await using redis = await RedisProcess.start();
  await using proxy = await FaultProxy.start(() => redis);
  const env = { WORKERS, BACKEND_TYPE: 'redis', REDIS_URL: `127.0.0.1:${proxy.port}` };
  await using shop = await Shop.start({ env });
  expect(await reserve(shop, 'before')).toBe(201);
  proxy.delay = 2300;
  const answers: Promise<number | string>[] = [];
  for (const call of SLOW) {
    const before = proxy.delayed;
    answers.push(call(shop));
    await shop.weir.until('the call to be at the store', () => proxy.delayed > before);
  }
  await shop.drain();
  expect(await Promise.all(answers)).toEqual([200, 200, 201, 200]);
  expect(shop.weir.output).not.toMatch(/level=(error|fatal)/);
}

/** The statuses of a service, as `Watch` reports them on one connection. */
function watchHealth(weir: WeirProcess, service: string) {
  const client = new Client(weir.grpcAddress, credentials.createInsecure());
  const statuses: Status[] = [];
  client
    .makeServerStreamRequest(
      '/grpc.health.v1.Health/Watch',
      (request: HealthCheckRequest) => Buffer.from(HealthCheckRequest.encode(request).finish()),
      (bytes: Buffer) => HealthCheckResponse.decode(bytes),
      { service },
    )
    .on('data', ({ status }: HealthCheckResponse) => statuses.push(status))
    .on('error', () => undefined);
  return { statuses, [Symbol.dispose]: () => client.close() };
}

async function statusOf(port: number, path: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } });
  await response.arrayBuffer();
  return response.status;
}

/** Expects that during SHUTDOWN_DELAY the service is unready, serves every call, and still reloads its rules. */
export async function expectServedDuringDelay(WORKERS: string): Promise<void> {
  await using shop = await Shop.start({ env: { SHUTDOWN_DELAY: '1h', WORKERS } });
  const { weir, client } = shop;
  await using load = new Load(() => shop.hit(), 4);
  await using reconnecting = new Load(async () => {
    using fresh = new RateLimitClient(weir.grpcAddress);
    await fresh.shouldRateLimit('shop', ['user=x']);
  }, 4);
  using overall = watchHealth(weir, '');
  using named = watchHealth(weir, 'ratelimit');
  const watches = [overall, named];
  await weir.until('the first status', () => watches.every(({ statuses }) => statuses.length === 1));
  for (const each of [load, reconnecting]) await each.more(10, weir);
  expect(await statusOf(weir.ports.debug, '/readyz')).toBe(200);

  weir.signal('SIGTERM');
  await weir.line(/msg="unhealthy from now on; calls are served until the drain" signal=SIGTERM delay=3600000ms/);
  const { http, debug } = weir.ports;
  await weir.until('all listeners to report it', async () => {
    const ready = await Promise.all([http, debug].map((port) => statusOf(port, '/readyz')));
    const others = await Promise.all(['/healthcheck', '/livez'].map((path) => statusOf(http, path)));
    return [...ready, ...others].join() === '503,503,500,200';
  });
  expect(await (await weir.http('/readyz')).text()).toBe(
    `[+]configuration ok\n[+]store ok\n${WORKERS === '1' ? '' : '[+]workers ok\n'}` +
      '[-]draining failed: the process has received a termination signal\n[+]listeners ok\nreadyz check failed\n',
  );
  await weir.until('the second status', () => watches.every(({ statuses }) => statuses.length === 2));
  for (const { statuses } of watches) expect(statuses).toEqual([Status.SERVING, Status.NOT_SERVING]);
  for (const each of [load, reconnecting]) {
    await each.more(10, weir);
    await each[Symbol.asyncDispose]();
    expect(each.failures).toEqual([]);
  }

  await shop.rules.write('shop.yaml', SHOP.replace('1000000', '7'));
  await weir.until('the new limit to apply', async () => {
    const { statuses } = await client.shouldRateLimit('shop', ['user=reloaded']);
    return statuses[0]?.currentLimit?.requestsPerUnit === 7;
  });
  // Not one of the steps of the drain has begun.
  expect(weir.output).not.toContain('draining:');
  await weir.signalAgain('SIGTERM');
  expect(await weir.exited).toBe(1);
  expect(weir.output).toContain('drain aborted by second signal; still in flight: shutdown delay');
}
