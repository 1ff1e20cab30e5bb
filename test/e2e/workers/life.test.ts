import type { ServiceError } from '@grpc/grpc-js';
import { join } from 'node:path';
import { PinnedClient } from '../../support/clients/pinned-client';
import { CONNECTION_LOST, RateLimitClient } from '../../support/clients/grpc-client';
import { RuleFolder } from '../../support/data/rule-folder';
import { isListening } from '../../support/processes/is-listening';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { until } from '../../support/waiting/until';
import { WeirProcess } from '../../support/processes/weir-process';
import { connectionsTo, workersOf } from '../../support/processes/worker-processes';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]\n',
};
const TWO = { WORKERS: '2' };
/** A connection of its own for each client. */
const OWN = { 'grpc.use_local_subchannel_pool': 1 };
const UNAVAILABLE = 14;
const REPORT_FLAGS = join(__dirname, '../../support/processes/report-flags.cjs');

let rules: RuleFolder;
let redis: RedisProcess;
let store: Readonly<Record<string, string>>;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
  redis = await RedisProcess.start();
  store = { BACKEND_TYPE: 'redis', REDIS_SOCKET_TYPE: 'tcp', REDIS_URL: redis.address };
});
afterAll(async () => {
  await rules[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
});

function start(env: Readonly<Record<string, string>> = {}, awaitServing = true): Promise<WeirProcess> {
  return WeirProcess.start({ env: { ...rules.env, ...store, ...TWO, ...env }, awaitServing });
}

/** The hits that the store holds for a value of `user`. */
async function storedHits(value: string): Promise<number> {
  const keys = await redis.control.keys(`shop_user_${value}_*`);
  const counts = await Promise.all(keys.map((key) => redis.control.get(key)));
  return counts.reduce((sum, count) => sum + Number(count), 0);
}

function linesWith(weir: WeirProcess, text: string): number {
  return weir.output.split('\n').filter((line) => line.includes(text)).length;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Waits until the workers have so many calls, whose pipeline windows have not closed yet. */
async function untilReceived(weir: WeirProcess, calls: number): Promise<void> {
  const hits = 'ratelimit.service.rate_limit.shop.user.total_hits';
  await weir.until('the calls to be received', async () => (await weir.statistics()).get(hits) === calls);
}

describe('an instance with two workers', () => {
  it('answers on SIGTERM every call that it has counted, and exits with 0', async () => {
    await using weir = await start();
    const clients = Array.from({ length: 4 }, () => new RateLimitClient(weir.grpcAddress, undefined, OWN));
    let answered = 0;
    const failures: unknown[] = [];
    const callers = clients.flatMap((client) =>
      Array.from({ length: 8 }, async () => {
        while (failures.length === 0) {
          try {
            await client.shouldRateLimit('shop', ['user=drained']);
            answered += 1;
          } catch (error) {
            failures.push(error);
          }
        }
      }),
    );
    await weir.until('calls to be answered', () => answered > 500);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    await Promise.all(callers);
    for (const client of clients) client[Symbol.dispose]();
    for (const failure of failures) expect(failure).toMatchObject({ code: UNAVAILABLE });
    expect(await storedHits('drained')).toBe(answered);
    const life = ['msg="serving"', 'msg="draining: ', 'msg="drained; '];
    expect(life.map((line) => linesWith(weir, line))).toEqual([1, 1, 1]);
  });

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'answers the calls in flight on %s to all processes',
    async (signal) => {
      await using weir = await start({ KVSTORE_PIPELINE_WINDOW: '4s' });
      const workers = workersOf(weir);
      const clients = [1, 2].map(() => new RateLimitClient(weir.grpcAddress, undefined, OWN));
      const calls = Promise.all(clients.map((client) => client.shouldRateLimit('shop', ['user=signal'])));
      // Until the servers have read the calls, clients may have to make them elsewhere.
      await untilReceived(weir, 2);
      expect(workers.map(({ pid }) => connectionsTo(weir.ports.grpc, pid))).toEqual([1, 1]);
      // As a terminal or a supervisor does; the workers wait for the primary.
      for (const { pid } of workers) process.kill(pid, signal);
      weir.signal(signal);
      expect(await weir.exited).toBe(0);
      await expect(calls).resolves.toMatchObject([{ overallCode: 1 }, { overallCode: 1 }]);
      for (const client of clients) client[Symbol.dispose]();
    },
  );

  it('loses with a worker only the calls of that worker, and replaces it', async () => {
    await using weir = await start({ KVSTORE_PIPELINE_WINDOW: '9s' });
    using one = new RateLimitClient(weir.grpcAddress, undefined, OWN);
    using other = new RateLimitClient(weir.grpcAddress, undefined, OWN);
    const calls = [one, other].map((client) => client.shouldRateLimit('shop', ['user=lost']));
    const outcomes = Promise.allSettled(calls);
    const [victim, survivor] = workersOf(weir);
    await untilReceived(weir, 2);
    process.kill(victim!.pid, 'SIGKILL');
    const states = (await outcomes).map(({ status }) => status);
    expect(states.toSorted()).toEqual(['fulfilled', 'rejected']);
    await weir.line(/level=error msg="a worker has ended; .*worker=1 .*reason="killed by SIGKILL" in=100ms/);
    await weir.until('the replacement to take connections', async () => {
      // It makes no call, which would wait for a pipeline window.
      using _ = await PinnedClient.connect(weir.grpcAddress);
      const workers = workersOf(weir);
      return workers.length === 2 && workers.every(({ pid }) => connectionsTo(weir.ports.grpc, pid) > 0);
    });
    expect(workersOf(weir)[1]).toEqual(survivor);
  });

  it('is unhealthy while no worker is left, and recovers', async () => {
    await using weir = await start();
    const text = await weir.until('the health to turn', async () => {
      for (const { pid } of workersOf(weir)) process.kill(pid, 'SIGKILL');
      const response = await weir.http('/healthcheck').catch(() => undefined);
      return response?.status === 503 && response.text();
    });
    expect(text).toBe('unhealthy: workers');
    const recovered = weir.until('the health to recover', async () => (await weir.http('/healthcheck')).status === 200);
    await expect(recovered).resolves.toBe(true);
    using client = new RateLimitClient(weir.grpcAddress);
    await expect(client.shouldRateLimit('shop', ['user=recovered'])).resolves.toMatchObject({ overallCode: 1 });
  });

  it('answers the calls in flight when the primary is killed, and leaves no process', async () => {
    await using weir = await start({ KVSTORE_PIPELINE_WINDOW: '4s' });
    const workers = workersOf(weir);
    using client = new RateLimitClient(weir.grpcAddress);
    const inFlight = client.shouldRateLimit('shop', ['user=orphan']);
    await untilReceived(weir, 1);
    weir.signal('SIGKILL');
    await expect(inFlight).resolves.toMatchObject({ overallCode: 1 });
    await until('the workers have ended', () => workers.every(({ pid }) => !isRunning(pid)));
    expect(await isListening(weir.ports.grpc)).toBe(false);
  });

  it('fails calls when the process with the counters does not answer, and recovers', async () => {
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
    const recovered = weir.until('calls to be answered', () =>
      client.shouldRateLimit('shop', ['user=waiting']).then(
        ({ statuses }) => statuses[0]?.limitRemaining,
        () => undefined,
      ),
    );
    // The call that failed was counted when the process went on.
    await expect(recovered).resolves.toBeLessThan(999_998);
  });

  it('ends at once on a second signal, all workers included', async () => {
    await using weir = await start({ KVSTORE_PIPELINE_WINDOW: '60s' });
    const workers = workersOf(weir);
    using client = new RateLimitClient(weir.grpcAddress);
    const inFlight = client.shouldRateLimit('shop', ['user=second']).catch((error: unknown) => error);
    await untilReceived(weir, 1);
    weir.signal('SIGTERM');
    await weir.line(/msg="draining: /);
    weir.signal('SIGINT');
    expect(await weir.exited).toBe(1);
    await weir.line(/drain aborted by second signal; still in flight: gRPC calls/);
    expect(CONNECTION_LOST).toContain(((await inFlight) as ServiceError).code);
    await until('the workers have ended', () => workers.every(({ pid }) => !isRunning(pid)));
  });

  it('exits with 1 when a worker is killed during the drain, after the others have answered their calls', async () => {
    await using weir = await start({ KVSTORE_PIPELINE_WINDOW: '4s' });
    using one = new RateLimitClient(weir.grpcAddress, undefined, OWN);
    using other = new RateLimitClient(weir.grpcAddress, undefined, OWN);
    const calls = [one, other].map((client) => client.shouldRateLimit('shop', ['user=killed']));
    const outcomes = Promise.allSettled(calls);
    const [victim] = workersOf(weir);
    await untilReceived(weir, 2);
    weir.signal('SIGTERM');
    await weir.line(/msg="draining: /);
    process.kill(victim!.pid, 'SIGKILL');
    expect(await weir.exited).toBe(1);
    expect((await outcomes).map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(weir.output).toMatch(
      /level=error msg="a worker has ended while it drained; its calls have failed" worker=1 reason="killed by SIGKILL"/,
    );
    expect(weir.output).toMatch(/level=error msg="drained, but calls have failed; the process exits" .*exit_code=1/);
  });

  it('collects young objects on one thread in all of its processes', async () => {
    await using weir = await start({ NODE_OPTIONS: `--require ${REPORT_FLAGS}` });
    const pids = [weir.pid!, ...workersOf(weir).map(({ pid }) => pid)];
    for (const pid of pids) await weir.line(new RegExp(`process ${pid} sets --no-parallel-scavenge$`));
    expect(new Set(pids).size).toBe(3);
  });

  it('does not start when a worker cannot, with one message', async () => {
    const unreachable = { REDIS_URL: '127.0.0.1:1', REDIS_STARTUP_MAX_ELAPSED_TIME: '100ms' };
    await using weir = await start(unreachable, false);
    expect(await weir.exited).toBe(1);
    expect(linesWith(weir, 'the service cannot run: ')).toBe(1);
    expect(weir.output).toMatch(/level=fatal msg="the service cannot run: .*127\.0\.0\.1:1/);
  });

  it('does not start when a port is in use, with one message', async () => {
    await using blocker = await start();
    await using weir = await start({ GRPC_PORT: String(blocker.ports.grpc) }, false);
    expect(await weir.exited).toBe(1);
    expect(linesWith(weir, 'the service cannot run: ')).toBe(1);
    expect(weir.output).toMatch(
      /the service cannot run: cannot listen on 127\.0\.0\.1:\d+: another process is already listening there \(EADDRINUSE\)/,
    );
  });
});
