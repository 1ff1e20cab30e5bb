import { once } from 'node:events';
import {
  HealthCheckResponse,
  HealthCheckResponse_ServingStatus as Status,
} from '../../../src/gen/grpc/health/v1/health';
import { RateLimitClient } from '../../support/clients/grpc-client';
import { Http2Connection } from '../../support/clients/http2-connection';
import { RuleFolder } from '../../support/data/rule-folder';
import { isListening } from '../../support/processes/is-listening';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { WeirProcess } from '../../support/processes/weir-process';
import { connectionsTo, workersOf } from '../../support/processes/worker-processes';
import { until } from '../../support/waiting/until';
import * as instance from './instance';

const CALLER = '  - { key: caller, rate_limit: { unit: year, requests_per_unit: 3 } }\n';
const CALLS = 'ratelimit_server.ShouldRateLimit.total_requests';

let rules: RuleFolder;
let redis: RedisProcess;
beforeAll(async () => {
  [rules, redis] = await Promise.all([
    RuleFolder.with({ 'shop.yaml': instance.ruleFile(1, CALLER) }),
    RedisProcess.start(),
  ]);
});
afterAll(async () => {
  await redis?.[Symbol.asyncDispose]();
  await rules?.[Symbol.asyncDispose]();
});

function start(env: Readonly<Record<string, string>> = {}, awaitServing = true): Promise<WeirProcess> {
  const store = { BACKEND_TYPE: 'redis', REDIS_SOCKET_TYPE: 'tcp', REDIS_URL: redis.address };
  const operators = { LOCAL_CACHE_SIZE_IN_BYTES: '100000', OPERATOR_TOKEN: instance.TOKEN };
  return WeirProcess.start({ env: { ...rules.env, ...store, WORKERS: '2', ...operators, ...env }, awaitServing });
}

/**
 * Calls in flight, one on each of as many connections as there are workers, whose pipeline windows have not closed yet.
 */
async function callsInFlight(weir: WeirProcess, user: string, count = 2) {
  const options = { 'grpc.use_local_subchannel_pool': 1 };
  const clients = Array.from({ length: count }, () => new RateLimitClient(weir.grpcAddress, undefined, options));
  const calls = clients.map((client) => client.shouldRateLimit('shop', [`user=${user}`]));
  const outcomes = Promise.allSettled(calls).then((settled) => {
    for (const client of clients) client[Symbol.dispose]();
    return settled;
  });
  // Until the servers have read the calls, clients may have to make them elsewhere.
  await weir.until('the calls to be received', async () => (await weir.statistics()).get(CALLS) === count);
  return {
    statuses: async () =>
      (await outcomes).map(({ status }) => status).toSorted((one, other) => one.localeCompare(other)),
    outcomes,
  };
}

describe('the life of an instance with two workers', () => {
  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'ends on %s to all processes when its calls are answered',
    async (signal) => {
      await using weir = await start({ KVSTORE_PIPELINE_WINDOW: '4s' });
      const calls = await callsInFlight(weir, 'signal');
      const workers = workersOf(weir);
      expect(workers.map(({ pid }) => connectionsTo(weir.ports.grpc, pid))).toEqual([1, 1]);
      // As a terminal or a supervisor does; the workers wait for the primary.
      for (const { pid } of workers) process.kill(pid, signal);
      weir.signal(signal);
      expect(await weir.exited).toBe(0);
      expect(await calls.statuses()).toEqual(['fulfilled', 'fulfilled']);
    },
  );

  it('loses with a worker only the calls of that worker, none of which is counted in part', async () => {
    await using weir = await start({ KVSTORE_PIPELINE_WINDOW: '9s' });
    const calls = await callsInFlight(weir, 'lost');
    process.kill(workersOf(weir)[0]!.pid, 'SIGKILL');
    expect(await calls.statuses()).toEqual(['fulfilled', 'rejected']);
    const counted = await weir.until('the answered call to be counted', async () => {
      const rule = [...(await weir.statistics())].filter(([name]) => name.includes('.shop.user.'));
      return rule.some(([name]) => name.endsWith('within_limit')) && rule.map(([, value]) => value);
    });
    expect(counted).toEqual([1, 1]);
  });

  it('ends with 1 when a worker is killed during the drain, after the others have answered their calls', async () => {
    await using weir = await start({ KVSTORE_PIPELINE_WINDOW: '4s' });
    const calls = await callsInFlight(weir, 'killed');
    const [victim] = workersOf(weir);
    weir.signal('SIGTERM');
    await weir.line(/msg="draining: /);
    process.kill(victim!.pid, 'SIGKILL');
    expect(await weir.exited).toBe(1);
    expect(await calls.statuses()).toEqual(['fulfilled', 'rejected']);
    await weir.line(
      /level=error msg="a worker has ended while it drained; its calls have failed" worker=1 reason="killed by SIGKILL"/,
    );
    await weir.line(/level=error msg="drained, but calls have failed; the process exits" .*exit_code=1/);
  });

  it('ends when its calls are answered if the primary is killed, and leaves no process', async () => {
    await using weir = await start({ KVSTORE_PIPELINE_WINDOW: '4s' });
    const workers = workersOf(weir);
    const calls = await callsInFlight(weir, 'orphan', 1);
    weir.signal('SIGKILL');
    expect(await calls.statuses()).toEqual(['fulfilled']);
    await until('the workers have ended', () => workers.every(({ pid }) => !instance.isRunning(pid)));
    expect(await isListening(weir.ports.grpc)).toBe(false);
  });

  it('fails calls while the process with the counters does not answer, and recovers', async () => {
    await using weir = await start({ BACKEND_TYPE: 'memory' });
    using client = new RateLimitClient(weir.grpcAddress);
    await client.shouldRateLimit('shop', ['user=waiting']);
    weir.signal('SIGSTOP');
    try {
      const failure = client.shouldRateLimit('shop', ['user=waiting']);
      await expect(failure).rejects.toThrow(/the process that has the counters does not answer/);
    } finally {
      weir.signal('SIGCONT');
    }
    const remaining = await weir.until('calls to be answered', () =>
      client.shouldRateLimit('shop', ['user=waiting']).then(
        ({ statuses }) => statuses[0]?.limitRemaining,
        () => undefined,
      ),
    );
    // The call that failed was counted when the process went on.
    expect(remaining).toBeLessThan(instance.limitOf(1) - 2);
  });
});

/** The status that the worker of a new connection gives. */
async function grpcHealth(weir: WeirProcess): Promise<Status> {
  using connection = new Http2Connection(weir.grpcAddress);
  const { stream } = connection.call('/grpc.health.v1.Health/Check', Buffer.alloc(0));
  const [answer] = (await once(stream, 'data')) as [Buffer];
  return HealthCheckResponse.decode(answer.subarray(5)).status;
}

/** Waits until all of the listeners give this health, four times, so that each worker is asked. */
function untilHealth(weir: WeirProcess, status: number, text: string, grpc: Status): Promise<boolean> {
  return weir.until(`the health ${text} everywhere`, async () => {
    const answers = new Set<string>();
    for (let count = 0; count < 4; count += 1) {
      const http = await weir.http('/healthcheck', { headers: { connection: 'close' } });
      answers.add(JSON.stringify([await weir.debugHealth(), [http.status, await http.text()], await grpcHealth(weir)]));
    }
    return [...answers].join() === JSON.stringify([[status, text], [status, text], grpc]);
  });
}

describe('the health of an instance with two workers', () => {
  it('is bad everywhere when the store is away', async () => {
    await using own = await RedisProcess.start();
    await using weir = await start({ REDIS_URL: own.address, REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: 'true' });
    await untilHealth(weir, 200, 'OK', Status.SERVING);
    await own.crash();
    expect(await untilHealth(weir, 500, 'unhealthy: counter store', Status.NOT_SERVING)).toBe(true);
  });
});

describe('the operators’ API of an instance with two workers', () => {
  it('shows and changes what all workers do, with counters in Redis', async () => {
    await using weir = await start();
    using clients = await instance.Clients.open(weir, 6);
    await instance.expectOperatorsSeeAllWorkers(weir, clients);
  });

  it('answers with the timeout of the store, also when that is longer than a worker may stand still', async () => {
    await using hanging = await RedisProcess.start();
    await using weir = await start({ KVSTORE_URL: hanging.address, KVSTORE_TIMEOUT: '7s', REDIS_URL: '' });
    hanging.signal('SIGSTOP');
    const body = { domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'ann' }] }] };
    const [explanation, problem] = await Promise.all([
      instance.api(weir, 'POST /api/explanations', { body }),
      instance.api(weir, 'GET /api/counters?domain=shop&descriptor=user=ann', { status: 503 }),
    ]);
    expect(explanation).toMatchObject({ descriptors: [{ outcome: 'limit' }] });
    const codes = [(explanation as { error: { code: string } }).error.code, problem.code];
    expect(codes).toContain('store_timeout');
    // When both wait on one connection, that is closed when the first of them has waited in vain.
    expect(['store_timeout', 'store_failed']).toEqual(expect.arrayContaining(codes));
  });

  it('unblocks a caller also on a worker that does not answer, as soon as that continues', async () => {
    await using weir = await start({ BACKEND_TYPE: 'memory' });
    using clients = await instance.Clients.open(weir, 6);
    for (let time = 0; time < 2; time += 1) await clients.codes('caller=stopped');
    const { pid } = workersOf(weir).at(-1)!;
    process.kill(pid, 'SIGSTOP');
    try {
      // Without those of the worker, which it need not wait for.
      expect(await instance.api(weir, 'GET /api/offenders')).toMatchObject({
        offenders: [{ descriptor: 'caller=stopped' }],
      });
      await weir.line(/level=warning msg="a worker does not answer; others get the new connections/);
      expect(await weir.debug('/workers')).toMatch(/^worker 2: .*state=not answering/m);
      await instance.api(weir, 'DELETE /api/counters?domain=shop&descriptor=caller=stopped');
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await weir.line(/level=info msg="a worker answers again/);
    const counter = await instance.api(weir, 'GET /api/counters?domain=shop&descriptor=caller=stopped');
    expect(counter).toMatchObject({ count: 0, isInLocalCache: false });
  });
});
