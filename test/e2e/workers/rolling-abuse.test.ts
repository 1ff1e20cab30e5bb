import { setTimeout as pause } from 'node:timers/promises';
import { seededRandom } from '../../grpc/http2/seeded-random';
import { type CallFailed, PinnedClient } from '../../support/clients/pinned-client';
import { RuleFolder } from '../../support/data/rule-folder';
import { ownerOf } from '../../support/processes/connection-owner';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { WeirProcess } from '../../support/processes/weir-process';
import { connectionsTo, workersOf } from '../../support/processes/worker-processes';

const BASE = 1_000_000_000;
const WORKERS = 3;
const CONNECTIONS = 6;
const CALLS_PER_CONNECTION = 4;
const KILLS = 5;
const SEED = 'rolling abuse';
const UNAVAILABLE = 14;

function ruleFile(version: number): string {
  return `domain: shop\ndescriptors:\n  - { key: user, rate_limit: { unit: year, requests_per_unit: ${BASE + version} } }\n`;
}

interface Failure {
  readonly status: number | undefined;
  /** The worker of the connection. */
  readonly worker: number;
}

/** Calls on several connections, each of which is opened again when it ends. */
class Load {
  sent = 0;
  readonly answeredBy = new Map<number, number>();
  readonly failures: Failure[] = [];
  readonly stepsBack: string[] = [];
  readonly #weir: WeirProcess;
  readonly #loops: readonly Promise<void>[];
  #isRunning = true;
  #isPaused = false;
  #open = 0;

  constructor(weir: WeirProcess) {
    this.#weir = weir;
    this.#loops = Array.from({ length: CONNECTIONS }, (_, index) => this.#keepConnected(`c${index}`));
  }

  get answered(): number {
    return this.answeredByOthersThan(new Set());
  }

  /** The calls that were answered by workers not among these. */
  answeredByOthersThan(workers: ReadonlySet<number>): number {
    return [...this.answeredBy].reduce((sum, [worker, count]) => (workers.has(worker) ? sum : sum + count), 0);
  }

  /** Resolves when no call is in flight; there are none until {@link resume}. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    while (this.#open > 0) await pause(10);
  }

  resume(): void {
    this.#isPaused = false;
  }

  /** Resolves when every call has its outcome. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#loops);
  }

  async #keepConnected(key: string): Promise<void> {
    while (this.#isRunning && this.#weir.isRunning) {
      const client = await this.#connect();
      if (client === undefined) continue;
      using connection = client.connection;
      const callers = Array.from({ length: CALLS_PER_CONNECTION }, () => this.#call(key, connection, client.worker));
      await Promise.all(callers);
    }
  }

  /** A connection and its worker; undefined when it ended before it had one. */
  async #connect(): Promise<{ readonly connection: PinnedClient; readonly worker: number } | undefined> {
    try {
      const connection = await PinnedClient.connect(this.#weir.grpcAddress);
      while (!connection.isClosed) {
        const worker = ownerOf(this.#weir, connection.localPort);
        if (worker !== undefined) return { connection, worker };
        await pause(10);
      }
    } catch {
      // The listener is closed, because the service drains.
    }
    await pause(10);
    return undefined;
  }

  async #call(key: string, connection: PinnedClient, worker: number): Promise<void> {
    let latest = 0;
    while (this.#isRunning && !connection.isClosed) {
      if (this.#isPaused) {
        await pause(10);
        continue;
      }
      this.#open += 1;
      this.sent += 1;
      try {
        const { statuses } = await connection.shouldRateLimit('shop', [`user=${key}`]);
        const version = (statuses[0]?.currentLimit?.requestsPerUnit ?? NaN) - BASE;
        if (!(version >= latest)) this.stepsBack.push(`${latest} -> ${version}`);
        latest = version;
        this.answeredBy.set(worker, (this.answeredBy.get(worker) ?? 0) + 1);
        // Leaves time for the service, which has the same cores.
        await pause(1);
      } catch (error) {
        this.failures.push({ status: (error as CallFailed).status, worker });
      } finally {
        this.#open -= 1;
      }
    }
  }
}

/** The sum of all counters. */
async function hitsIn(redis: RedisProcess): Promise<number> {
  const keys = await redis.control.keys('shop_*');
  const counts = keys.length === 0 ? [] : await redis.control.mget(keys);
  return counts.reduce((sum, count) => sum + Number(count), 0);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Opens connections until a worker has one, and closes them. */
async function untilServing(weir: WeirProcess, worker: number): Promise<void> {
  const probes: PinnedClient[] = [];
  await weir.until('the worker to serve', async () => {
    probes.push(await PinnedClient.connect(weir.grpcAddress));
    return connectionsTo(weir.ports.grpc, worker) > 0;
  });
  for (const probe of probes) probe[Symbol.dispose]();
}

describe(`an instance with ${WORKERS} workers under constant load, of which ${KILLS} are killed (seed ${SEED}) while rules are reloaded,`, () => {
  it('fails only calls on connections of killed workers, counts each answered call, and ends with code 0', async () => {
    const random = seededRandom(SEED);
    await using redis = await RedisProcess.start();
    await using rules = await RuleFolder.with({ 'shop.yaml': ruleFile(0) });
    await using weir = await WeirProcess.start({
      env: { ...rules.env, WORKERS: String(WORKERS), BACKEND_TYPE: 'kvstore', KVSTORE_URL: redis.address },
    });
    const load = new Load(weir);
    const killed = new Set<number>();
    const seen = new Set(workersOf(weir).map(({ pid }) => pid));
    for (let version = 1; version <= KILLS; version += 1) {
      await rules.write('shop.yaml', ruleFile(version));
      await pause(random() * 700);
      const workers = workersOf(weir);
      const { pid } = workers[Math.floor(random() * workers.length)]!;
      killed.add(pid);
      process.kill(pid, 'SIGKILL');
      const replacement = await weir.until('another worker', () =>
        workersOf(weir).find((worker) => !seen.has(worker.pid)),
      );
      seen.add(replacement.pid);
      await untilServing(weir, replacement.pid);
      await weir.until(`version ${version} to be active`, async () =>
        (await weir.debug('/rlconfig')).includes(`requests_per_unit=${BASE + version},`),
      );
    }
    expect(killed.size).toBe(KILLS);
    await load.pause();
    expect(load.failures.filter(({ worker, status }) => !killed.has(worker) || status !== undefined)).toEqual([]);
    expect(load.failures.length).toBeGreaterThan(0);
    expect(load.stepsBack).toEqual([]);
    const hits = await hitsIn(redis);
    expect(hits).toBeGreaterThanOrEqual(load.answered);
    expect(hits).toBeLessThanOrEqual(load.sent);

    expect((await weir.statistics()).get('ratelimit.service.config_load_success')).toBe(KILLS + 1);
    // A killed worker has not reported its last calls, and one that is late is not waited for.
    const counted = await weir.until('the calls of the others to be counted', async () => {
      const total = (await weir.statistics()).get('ratelimit.service.rate_limit.shop.user.total_hits') ?? 0;
      return total >= load.answeredByOthersThan(killed) && total;
    });
    expect(counted).toBeLessThanOrEqual(load.sent);

    const before = load.answered;
    const failedBefore = load.failures.length;
    load.resume();
    await weir.until('more answers', () => load.answered > before + 100);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    await load.stop();
    for (const { status } of load.failures.slice(failedBefore)) expect([UNAVAILABLE, undefined]).toContain(status);
    const last = await hitsIn(redis);
    expect(last).toBeGreaterThanOrEqual(load.answered);
    expect(last).toBeLessThanOrEqual(load.sent);
    expect(load.stepsBack).toEqual([]);
    expect([...seen].filter(isAlive)).toEqual([]);
  });
});
