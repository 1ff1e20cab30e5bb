import { setTimeout as pause } from 'node:timers/promises';
import { seededRandom } from '../../support/data/seeded-random';
import type { CallFailed, PinnedClient } from '../../support/clients/pinned-client';
import { RuleFolder } from '../../support/data/rule-folder';
import { ruleResource } from '../../support/data/rule-resources';
import { domainConfig, limit } from '../../support/data/rules';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { WeirProcess } from '../../support/processes/weir-process';
import { ownerOf, workersOf } from '../../support/processes/worker-processes';
import { AdsServer, SnapshotCache } from '../../support/servers/ads-server';
import { ScriptedAdsPeer, message } from '../../support/servers/scripted-ads-peer';
import * as instance from './instance';

/** Milliseconds in which 25,000 rules are read even on a busy machine, by a thread of low priority. */
const SLOW = 300_000;
const LOADS = 'ratelimit.service.config_load_success';
const UNAVAILABLE = 14;

function start(rules: RuleFolder, env: Readonly<Record<string, string>> = {}): Promise<WeirProcess> {
  return WeirProcess.start({ env: { ...rules.env, WORKERS: '2', ...env } });
}

/**
 * Connections, each of which is opened again when it ends, with callers that see to it that the version of rules never
 * decreases.
 */
class Load {
  sent = 0;
  readonly answeredBy = new Map<number, number>();
  readonly failures: { readonly status: number | undefined; readonly worker: number }[] = [];
  readonly stepsBack: string[] = [];
  readonly #weir: WeirProcess;
  readonly #loops: readonly Promise<void>[];
  #isRunning = true;

  constructor(weir: WeirProcess, connections: number) {
    this.#weir = weir;
    this.#loops = Array.from({ length: connections }, () => this.#keepConnected());
  }

  /** The calls that were answered, except by these workers. */
  answered(except: ReadonlySet<number> = new Set()): number {
    return [...this.answeredBy].reduce((sum, [worker, count]) => (except.has(worker) ? sum : sum + count), 0);
  }

  /** Resolves when every call has its outcome. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#loops);
  }

  async #keepConnected(): Promise<void> {
    while (this.#isRunning && this.#weir.isRunning) {
      // The listener may be closed, because the service drains, or the connection end before it has a worker.
      using clients = await instance.Clients.open(this.#weir, 1).catch(() => undefined);
      const client = clients?.all[0];
      let worker: number | undefined;
      while (client?.isClosed === false && worker === undefined) {
        worker = ownerOf(this.#weir, client.localPort);
        await pause(5);
      }
      if (client !== undefined && worker !== undefined) await this.#callUntilClosed(client, worker);
      else await pause(5);
    }
  }

  async #callUntilClosed(client: PinnedClient, worker: number): Promise<void> {
    let latest = 0;
    while (this.#isRunning && !client.isClosed) {
      // Leaves time for the service, which has the same cores.
      await pause(1);
      this.sent += 1;
      try {
        const version = await instance.versionOf(client);
        if (!(version >= latest)) this.stepsBack.push(`${latest} -> ${version}`);
        latest = version;
        this.answeredBy.set(worker, (this.answeredBy.get(worker) ?? 0) + 1);
      } catch (error) {
        this.failures.push({ status: (error as CallFailed).status, worker });
      }
    }
  }
}

async function untilActive(weir: WeirProcess, version: number): Promise<void> {
  const limitText = `requests_per_unit=${instance.limitOf(version)},`;
  await weir.until(`version ${version} to be active`, async () => (await weir.debug('/rlconfig')).includes(limitText));
}

describe('a reload of an instance with two workers', () => {
  it('is counted when all workers decide with the new rules, and answered to the management server', async () => {
    const cache = new SnapshotCache();
    await using server = await AdsServer.start({ cache });
    function publish(version: number): void {
      const rules = domainConfig('shop', { key: 'user', rateLimit: limit(instance.limitOf(version), 'YEAR') });
      cache.publish(String(version), [ruleResource('shop', rules)]);
    }
    publish(0);
    const xds = { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: server.address };
    await using weir = await WeirProcess.start({ env: { ...xds, WORKERS: '2' } });
    using clients = await instance.Clients.open(weir, 4);
    for (let version = 1; version <= 20; version += 1) {
      publish(version);
      await weir.until('the load to be counted', async () => (await weir.statistics()).get(LOADS) === version + 1);
      expect(await clients.versions()).toEqual(Array(4).fill(version));
    }
    await weir.until('the last answer', () => server.requests.at(-1)?.versionInfo === '20');
    expect(server.requests.filter(({ errorDetail }) => errorDetail !== undefined)).toEqual([]);
  });

  it('is rejected when the management server sends 10 bytes that cannot be decompressed; all processes live on, and it recovers', async () => {
    await using peer = await ScriptedAdsPeer.start([]);
    const xds = { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: peer.address };
    await using weir = await WeirProcess.start({ env: { ...xds, WORKERS: '2' } });
    const before = workersOf(weir);
    peer.send(message(1, Buffer.alloc(5)));
    await weir.line(/new rules rejected; keeping the active rules: .* a response is marked as compressed/);
    await weir.until('the rules to be valid again', async () => {
      return (await weir.statistics()).get('ratelimit.config.rejected') === 0;
    });
    expect([peer.streams, workersOf(weir)]).toEqual([2, before]);
    using clients = await instance.Clients.open(weir, 4);
    for (const client of clients.all) {
      const { statuses } = await client.shouldRateLimit('shop', ['key=a']);
      expect(statuses[0]?.currentLimit?.requestsPerUnit).toBe(5);
    }
  });

  it(
    'brings the newest of many loads, and 25,000 rules, to all workers and to one that replaces another, without a failed call',
    async () => {
      await using rules = await RuleFolder.with({ 'shop.yaml': instance.ruleFile(1) });
      await using weir = await start(rules);
      const load = new Load(weir, 4);
      for (let version = 2; version <= 40; version += 1) await rules.write('shop.yaml', instance.ruleFile(version));
      await untilActive(weir, 40);
      const many = Array.from({ length: 25_000 }, (_, index) => `  - { key: plan, value: p${index} }\n`);
      const long = `  - { key: long, rate_limit: { unlimited: true }, metadata: { text: ${'ä'.repeat(200_000)} } }\n`;
      await rules.write('shop.yaml', instance.ruleFile(41, many.join('') + long));
      await untilActive(weir, 41);
      await load.stop();
      expect([load.failures, load.stepsBack]).toEqual([[], []]);
      using clients = new instance.Clients(weir);
      await clients.addUntilServedBy(await instance.replace(weir, workersOf(weir)[0]!.pid, 'SIGKILL'));
      expect(new Set(await clients.versions())).toEqual(new Set([41]));
    },
    2 * SLOW,
  );

  it('replaces a worker that does not answer; the others get the new rules, and keep their connections', async () => {
    await using rules = await RuleFolder.with({ 'shop.yaml': instance.ruleFile(1) });
    await using weir = await start(rules);
    using clients = await instance.Clients.open(weir, 6);
    const [stopped, other] = workersOf(weir);
    const owners = await clients.owners();
    process.kill(stopped!.pid, 'SIGSTOP');
    await rules.write('shop.yaml', instance.ruleFile(2));
    await weir.line(/a worker does not answer and is killed/);
    const replacement = await weir.until('another worker', () =>
      workersOf(weir).find(({ pid }) => pid !== stopped!.pid && pid !== other!.pid),
    );
    await untilActive(weir, 2);
    expect(clients.all.map(({ isClosed }) => isClosed)).toEqual(owners.map((pid) => pid === stopped!.pid));
    using more = new instance.Clients(weir);
    await more.addUntilServedBy(replacement.pid);
    expect(new Set(await more.versions())).toEqual(new Set([2]));
    await rules.write('shop.yaml', instance.ruleFile(3));
    await untilActive(weir, 3);
    expect(new Set(await more.versions())).toEqual(new Set([3]));
  });
});

describe('an instance with three workers under constant load, of which five are killed while rules are reloaded,', () => {
  it('fails only calls on connections of killed workers, counts each answered call, and ends with code 0 when each counted call is answered', async () => {
    const [random, kills] = [seededRandom('rolling abuse'), 5];
    await using redis = await RedisProcess.start();
    await using rules = await RuleFolder.with({ 'shop.yaml': instance.ruleFile(0) });
    await using weir = await start(rules, { WORKERS: '3', BACKEND_TYPE: 'kvstore', KVSTORE_URL: redis.address });
    async function storedHits(): Promise<number> {
      const counts = await redis.control.mget(await redis.control.keys('shop_*'));
      return counts.reduce((sum, count) => sum + Number(count), 0);
    }
    const load = new Load(weir, 24);
    const killed = new Set<number>();
    const seen = new Set(workersOf(weir).map(({ pid }) => pid));
    for (let version = 1; version <= kills; version += 1) {
      await rules.write('shop.yaml', instance.ruleFile(version));
      await pause(random() * 700);
      const { pid } = workersOf(weir)[Math.floor(random() * 3)]!;
      killed.add(pid);
      const replacement = await instance.replace(weir, pid, 'SIGKILL');
      seen.add(replacement);
      using probes = new instance.Clients(weir);
      await probes.addUntilServedBy(replacement);
      await untilActive(weir, version);
    }
    await load.stop();
    expect(load.failures.filter(({ worker, status }) => !killed.has(worker) || status !== undefined)).toEqual([]);
    expect(load.failures.length).toBeGreaterThan(0);
    const hits = await storedHits();
    expect(hits).toBeGreaterThanOrEqual(load.answered());
    expect(hits).toBeLessThanOrEqual(load.sent);
    expect((await weir.statistics()).get(LOADS)).toBe(kills + 1);
    // A killed worker has not reported its last calls, and one that is late is not waited for.
    const rule = 'ratelimit.service.rate_limit.shop.user';
    const statistics = await weir.until('the calls of the others to be counted', async () => {
      const read = await weir.statistics();
      return (read.get(`${rule}.total_hits`) ?? 0) >= load.answered(killed) && read;
    });
    const counted = statistics.get(`${rule}.total_hits`);
    expect(counted).toBeLessThanOrEqual(load.sent);
    expect(statistics.get(`${rule}.within_limit`)).toBe(counted);

    const drained = new Load(weir, 24);
    await weir.until('more answers', () => drained.answered() > 100);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    await drained.stop();
    for (const { status } of drained.failures) expect([UNAVAILABLE, undefined]).toContain(status);
    // Every call that was counted is answered.
    expect((await storedHits()) - hits).toBe(drained.answered());
    expect([load.stepsBack, drained.stepsBack, [...seen].filter(instance.isRunning)]).toEqual([[], [], []]);
  });
});
