import { once } from 'node:events';
import { connect } from 'node:http2';
import {
  HealthCheckResponse,
  HealthCheckResponse_ServingStatus as Status,
} from '../../../src/gen/grpc/health/v1/health';
import { RuleFolder } from '../../support/data/rule-folder';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { WeirProcess } from '../../support/processes/weir-process';
import { workersOf } from '../../support/processes/worker-processes';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]\n',
};
const HEALTH_CHECK = '/grpc.health.v1.Health/Check';

let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
});
afterAll(() => rules[Symbol.asyncDispose]());

/** The status that the worker of a new connection gives. */
async function grpcHealth(weir: WeirProcess): Promise<Status> {
  const session = connect(`http://${weir.grpcAddress}`);
  try {
    const stream = session.request({
      ':method': 'POST',
      ':path': HEALTH_CHECK,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.end(Buffer.alloc(5));
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    await once(stream, 'end');
    return HealthCheckResponse.decode(Buffer.concat(chunks).subarray(5)).status;
  } finally {
    session.destroy();
  }
}

/** The health of an instance as all of its listeners give it, four times, so that each worker is asked. */
async function allHealth(weir: WeirProcess): Promise<readonly unknown[]> {
  const answers = new Set<string>();
  for (let count = 0; count < 4; count += 1) {
    const http = await weir.http('/healthcheck', { headers: { connection: 'close' } });
    answers.add(JSON.stringify([await weir.debugHealth(), [http.status, await http.text()], await grpcHealth(weir)]));
  }
  return [...answers].map((answer) => JSON.parse(answer) as unknown);
}

describe('an instance with two workers', () => {
  it('says everywhere that it is unhealthy when the store is away', async () => {
    await using redis = await RedisProcess.start();
    const store = { BACKEND_TYPE: 'redis', REDIS_SOCKET_TYPE: 'tcp', REDIS_URL: redis.address };
    const env = { ...rules.env, ...store, WORKERS: '2', REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: 'true' };
    await using weir = await WeirProcess.start({ env });
    expect(await allHealth(weir)).toEqual([[[200, 'OK'], [200, 'OK'], Status.SERVING]]);
    await redis.crash();
    const unhealthy = [500, 'unhealthy: counter store'];
    await weir.until('the health to turn', async () => (await weir.debugHealth())[0] === 500);
    const expected = [[unhealthy, unhealthy, Status.NOT_SERVING]];
    await weir.until('all to say it', async () => JSON.stringify(await allHealth(weir)) === JSON.stringify(expected));
    expect(await allHealth(weir)).toEqual(expected);
  });

  it('starts without rules if it may, is unhealthy until it has some, and then decides in all workers', async () => {
    await using empty = await RuleFolder.with({});
    const env = {
      ...empty.env,
      WORKERS: '2',
      FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
      HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: 'true',
    };
    await using weir = await WeirProcess.start({ env });
    const unhealthy = [500, expect.stringContaining('configuration')];
    expect(await allHealth(weir)).toEqual([[unhealthy, unhealthy, Status.NOT_SERVING]]);
    await empty.write('shop.yaml', RULES['shop.yaml']);
    const healthy = JSON.stringify([[[200, 'OK'], [200, 'OK'], Status.SERVING]]);
    await weir.until('all to be healthy', async () => JSON.stringify(await allHealth(weir)) === healthy);
    const body = JSON.stringify({ domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'a' }] }] });
    for (let count = 0; count < 4; count += 1) {
      const answer = await weir.http('/json', { method: 'POST', body, headers: { connection: 'close' } });
      expect(await answer.json()).toMatchObject({ statuses: [{ currentLimit: { requestsPerUnit: 1_000_000 } }] });
    }
  });
});

test('WORKERS=1 is a single process', async () => {
  await using weir = await WeirProcess.start({ env: { ...rules.env, WORKERS: '1' } });
  expect(workersOf(weir)).toEqual([]);
});
