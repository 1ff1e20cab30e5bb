import { Client, credentials } from '@grpc/grpc-js';
import {
  HealthCheckRequest,
  HealthCheckResponse,
  HealthCheckResponse_ServingStatus as Status,
} from '../../src/gen/grpc/health/v1/health';
import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]\n',
};

let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
});
afterAll(() => rules[Symbol.asyncDispose]());

/** Calls the service without a pause until it is stopped; every other call on a connection of its own. */
class Load implements AsyncDisposable {
  readonly #weir: WeirProcess;
  readonly #client: RateLimitClient;
  readonly #callers: Promise<void>[];
  #isRunning = true;
  answered = 0;
  readonly failures: unknown[] = [];

  constructor(weir: WeirProcess) {
    this.#weir = weir;
    this.#client = new RateLimitClient(weir.grpcAddress);
    this.#callers = Array.from({ length: 4 }, () => this.#call());
  }

  async #call(): Promise<void> {
    while (this.#isRunning) {
      try {
        await this.#client.shouldRateLimit('shop', ['user=x']);
        using fresh = new RateLimitClient(this.#weir.grpcAddress);
        await fresh.shouldRateLimit('shop', ['user=x']);
        this.answered += 2;
      } catch (error) {
        this.failures.push(error);
      }
    }
  }

  /** Resolves when this many further calls were answered. */
  async more(count: number): Promise<void> {
    const before = this.answered;
    await this.#weir.until('calls to be answered', () => this.answered >= before + count || this.failures.length > 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#callers);
    this.#client[Symbol.dispose]();
  }
}

/** The statuses of a service, as `Watch` reports them on one connection. */
class HealthWatch implements Disposable {
  readonly #client: Client;
  readonly statuses: Status[] = [];

  constructor(weir: WeirProcess, service: string) {
    this.#client = new Client(weir.grpcAddress, credentials.createInsecure());
    this.#client
      .makeServerStreamRequest(
        '/grpc.health.v1.Health/Watch',
        (request: HealthCheckRequest) => Buffer.from(HealthCheckRequest.encode(request).finish()),
        (bytes: Buffer) => HealthCheckResponse.decode(bytes),
        { service },
      )
      .on('data', ({ status }: HealthCheckResponse) => this.statuses.push(status))
      .on('error', () => undefined);
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}

async function debugReadiness(weir: WeirProcess): Promise<number> {
  return (await fetch(`http://127.0.0.1:${weir.ports.debug}/readyz`)).status;
}

describe.each(['1', '2'])('with SHUTDOWN_DELAY and WORKERS=%s, the service', (workers) => {
  it('turns unready at once and serves every call until the delay is over', async () => {
    await using weir = await WeirProcess.start({ env: { ...rules.env, SHUTDOWN_DELAY: '1h', WORKERS: workers } });
    await using load = new Load(weir);
    using overall = new HealthWatch(weir, '');
    using named = new HealthWatch(weir, 'ratelimit');
    const watches = [overall, named];
    await weir.until('the first status', () => watches.every(({ statuses }) => statuses.length === 1));
    await load.more(20);
    expect(await debugReadiness(weir)).toBe(200);
    weir.signal('SIGTERM');
    await weir.line(/msg="unhealthy from now on; calls are served until the drain" signal=SIGTERM delay=3600000ms/);
    await weir.until('all listeners to say it', async () => {
      const fresh = { headers: { connection: 'close' } };
      const [ready, health, alive] = await Promise.all(
        ['/readyz', '/healthcheck', '/livez'].map(async (path) => (await weir.http(path, fresh)).status),
      );
      return ready === 503 && health === 500 && alive === 200 && (await debugReadiness(weir)) === 503;
    });
    expect(await (await weir.http('/readyz')).text()).toBe(
      [
        '[+]configuration ok',
        '[+]store ok',
        ...(workers === '2' ? ['[+]workers ok'] : []),
        '[-]draining failed: the process has received a termination signal',
        'readyz check failed',
        '',
      ].join('\n'),
    );
    await weir.until('the second status', () => watches.every(({ statuses }) => statuses.length === 2));
    await load.more(20);
    await load[Symbol.asyncDispose]();
    expect(load.failures).toEqual([]);
    for (const { statuses } of watches) expect(statuses).toEqual([Status.SERVING, Status.NOT_SERVING]);

    // Not one of the steps of the drain has begun.
    expect(weir.output).not.toContain('draining:');
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(1);
    expect(weir.output).toContain('drain aborted by second signal; still in flight: shutdown delay');
  });

  it('reloads rules during the delay', async () => {
    await using own = await RuleFolder.with(RULES);
    await using weir = await WeirProcess.start({ env: { ...own.env, SHUTDOWN_DELAY: '1h', WORKERS: workers } });
    weir.signal('SIGTERM');
    await weir.line(/msg="unhealthy from now on/);
    await own.write('shop.yaml', RULES['shop.yaml'].replace('1000000', '7'));
    using client = new RateLimitClient(weir.grpcAddress);
    const decided = weir.until('the new limit to apply', async () => {
      const { statuses } = await client.shouldRateLimit('shop', ['user=reloaded']);
      return statuses[0]?.currentLimit?.requestsPerUnit === 7;
    });
    await expect(decided).resolves.toBe(true);
  });

  it('drains by itself when the delay is over', async () => {
    await using weir = await WeirProcess.start({ env: { ...rules.env, SHUTDOWN_DELAY: '50ms', WORKERS: workers } });
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    expect(weir.output).toMatch(/unhealthy from now on[^]* msg="draining: [^]* msg="drained; the process exits"/);
  });
});

test('without listeners for decisions, the service does not wait for SHUTDOWN_DELAY, and says what it waited for', async () => {
  const env = { ...rules.env, RUNTIME_SUBDIRECTORY: 'missing', SHUTDOWN_DELAY: '1h' };
  await using weir = await WeirProcess.start({ env, awaitServing: false });
  await weir.line(/no active rules; not serving/);
  const ready = await fetch(`http://127.0.0.1:${weir.ports.debug}/readyz`);
  expect([ready.status, await ready.text()]).toEqual([
    503,
    '[-]configuration failed: waiting for the first valid rules\n[+]store ok\n[+]draining ok\n' +
      '[-]listeners failed: not open yet\nreadyz check failed\n',
  ]);
  expect((await fetch(`http://127.0.0.1:${weir.ports.debug}/livez`)).status).toBe(200);
  weir.signal('SIGTERM');
  expect(await weir.exited).toBe(0);
});
