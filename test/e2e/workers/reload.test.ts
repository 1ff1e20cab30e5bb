import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { RateLimitClient } from '../../support/clients/grpc-client';
import { type CallFailed, PinnedClient } from '../../support/clients/pinned-client';
import { RuleFolder } from '../../support/data/rule-folder';
import { ruleResource } from '../../support/data/rule-resources';
import { domainConfig, limit } from '../../support/data/rules';
import { WeirProcess } from '../../support/processes/weir-process';
import { ownerOf } from '../../support/processes/connection-owner';
import { connectionsTo, workersOf } from '../../support/processes/worker-processes';
import { AdsServer, SnapshotCache } from '../../support/servers/ads-server';
import { until } from '../../support/waiting/until';

const BASE = 1_000_000_000;
const TWO = { WORKERS: '2' };
/** Milliseconds in which 25,000 rules are read even on a busy machine, by a thread of low priority. */
const SLOW = 300_000;
const FAULT = join(__dirname, '../../support/processes/fail-at-rule-step.cjs');

/** Rules with a limit that tells their version, from a management server. */
class VersionedRules implements AsyncDisposable {
  readonly #cache: SnapshotCache;
  readonly #server: AdsServer;

  private constructor(cache: SnapshotCache, server: AdsServer) {
    this.#cache = cache;
    this.#server = server;
  }

  static async start(): Promise<VersionedRules> {
    const cache = new SnapshotCache();
    return new VersionedRules(cache, await AdsServer.start({ cache }));
  }

  get env(): Readonly<Record<string, string>> {
    return { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: this.#server.address };
  }

  /** The versions that were rejected, and the last one that was accepted. */
  get answers() {
    const answers = this.#server.requests.filter(({ responseNonce }) => responseNonce !== '');
    return {
      rejections: answers.filter(({ errorDetail }) => errorDetail !== undefined).length,
      accepted: answers.findLast(({ errorDetail }) => errorDetail === undefined)?.versionInfo,
    };
  }

  publish(version: number, key = 'user'): void {
    const rules = domainConfig('shop', { key, rateLimit: limit(BASE + version, 'YEAR') });
    this.#cache.publish(String(version), [ruleResource('shop', rules)]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}

async function versionOf(client: Pick<PinnedClient, 'shouldRateLimit'>): Promise<number> {
  const { statuses } = await client.shouldRateLimit('shop', ['user=a']);
  return (statuses[0]?.currentLimit?.requestsPerUnit ?? NaN) - BASE;
}

/** Connections to an instance, in equal parts to its workers. */
async function connections(weir: WeirProcess, count: number): Promise<PinnedClient[]> {
  const clients: PinnedClient[] = [];
  for (let index = 0; index < count; index += 1) clients.push(await PinnedClient.connect(weir.grpcAddress));
  return clients;
}

/** Opens connections until the condition holds. */
async function connectionsUntil(weir: WeirProcess, isEnough: () => boolean): Promise<PinnedClient[]> {
  const clients: PinnedClient[] = [];
  await weir.until('enough connections', async () => {
    clients.push(await PinnedClient.connect(weir.grpcAddress));
    return isEnough();
  });
  return clients;
}

/** Callers that use all connections in turns, each one call at a time. */
class AlternatingCallers {
  readonly stepsBack: string[] = [];
  readonly failures: CallFailed[] = [];
  responses = 0;
  readonly #weir: WeirProcess;
  readonly #clients: PinnedClient[];
  readonly #loops: readonly Promise<void>[];
  #isStopped = false;

  constructor(weir: WeirProcess, clients: PinnedClient[], callers = 8) {
    this.#weir = weir;
    this.#clients = clients;
    this.#loops = Array.from({ length: callers }, (_, index) => this.#call(index));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#loops);
    for (const client of this.#clients) client[Symbol.dispose]();
  }

  /** Opens a connection again, if no other caller has done so. */
  async #replace(index: number): Promise<void> {
    if (!this.#clients[index]!.isClosed) return;
    const client = await PinnedClient.connect(this.#weir.grpcAddress);
    if (this.#clients[index]!.isClosed) this.#clients[index] = client;
    else client[Symbol.dispose]();
  }

  async #call(first: number): Promise<void> {
    let latest = 0;
    for (let turn = first; !this.#isStopped; turn += 1) {
      const index = turn % this.#clients.length;
      try {
        const version = await versionOf(this.#clients[index]!);
        // Leaves time for the service, which has the same cores.
        await pause(2);
        if (version < latest) this.stepsBack.push(`${latest} -> ${version}`);
        latest = version;
        this.responses += 1;
      } catch (error) {
        this.failures.push(error as CallFailed);
        if (!this.#weir.isRunning) return;
        await this.#replace(index);
      }
    }
  }
}

function lines(weir: WeirProcess, pattern: RegExp): readonly string[] {
  return weir.output.split('\n').filter((line) => pattern.test(line));
}

describe('a reload of an instance with two workers', () => {
  it('never lets a caller that alternates between the workers see old rules after new ones, 200 times', async () => {
    await using rules = await VersionedRules.start();
    rules.publish(0);
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...TWO } });
    const callers = new AlternatingCallers(weir, await connections(weir, 4));
    try {
      for (let version = 1; version <= 200; version += 1) {
        rules.publish(version);
        await weir.until(`version ${version} to be accepted`, () => rules.answers.accepted === String(version));
      }
      using client = new RateLimitClient(weir.grpcAddress);
      await weir.until('the last version to be active', async () => (await versionOf(client)) === 200);
    } finally {
      await callers.stop();
    }
    expect(callers.failures).toEqual([]);
    expect(callers.stepsBack).toEqual([]);
    expect(callers.responses).toBeGreaterThan(200);
    expect(rules.answers.rejections).toBe(0);
    expect((await weir.statistics()).get('ratelimit.service.config_load_success')).toBe(201);
    expect(lines(weir, /killed/)).toEqual([]);
  });

  it('is counted and shown when all workers decide with the new rules', async () => {
    await using rules = await VersionedRules.start();
    rules.publish(0);
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...TWO } });
    const clients = await connections(weir, 4);
    for (let version = 1; version <= 20; version += 1) {
      rules.publish(version);
      await weir.until(
        'the load to be counted',
        async () => (await weir.statistics()).get('ratelimit.service.config_load_success') === version + 1,
      );
      expect(await Promise.all(clients.map(versionOf))).toEqual(clients.map(() => version));
      expect(await weir.debug('/rlconfig')).toContain(`requests_per_unit=${BASE + version},`);
    }
    for (const client of clients) client[Symbol.dispose]();
  });

  it('ends with the newest rules in all workers when several follow one another quickly', async () => {
    await using rules = await RuleFolder.with({ 'shop.yaml': ruleFile(0) });
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...TWO } });
    const callers = new AlternatingCallers(weir, await connections(weir, 4));
    for (let version = 1; version <= 40; version += 1) await rules.write('shop.yaml', ruleFile(version));
    using client = new RateLimitClient(weir.grpcAddress);
    await weir.until('the last version to be active', async () => (await versionOf(client)) === 40);
    const clients = await connections(weir, 4);
    expect(await Promise.all(clients.map(versionOf))).toEqual([40, 40, 40, 40]);
    for (const each of clients) each[Symbol.dispose]();
    await callers.stop();
    expect([callers.failures, callers.stepsBack]).toEqual([[], []]);
  });

  it('rejects invalid rules once, logs them once, and keeps the old ones in all workers', async () => {
    await using rules = await RuleFolder.with({ 'shop.yaml': ruleFile(1) });
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...TWO } });
    const clients = await connections(weir, 4);
    await rules.write('shop.yaml', 'domain: shop\ndescriptors: [{ value: x }]\n');
    await weir.line(/new rules rejected; keeping the active rules/);
    expect(await Promise.all(clients.map(versionOf))).toEqual([1, 1, 1, 1]);
    const statistics = await weir.statistics();
    expect(statistics.get('ratelimit.service.config_load_error')).toBe(1);
    expect(statistics.get('ratelimit.service.config_load_success')).toBe(1);
    expect(statistics.get('ratelimit.config.rejected')).toBe(1);
    await rules.write('shop.yaml', ruleFile(2));
    await weir.line(/the rules are valid again/);
    await weir.until('the new rules to be active', async () => (await versionOf(clients[0]!)) === 2);
    expect(await Promise.all(clients.map(versionOf))).toEqual([2, 2, 2, 2]);
    expect(lines(weir, /new rules rejected/)).toHaveLength(1);
    await weir.until('the line about the new rules', () => lines(weir, /msg="rules loaded"/).length === 2);
    for (const client of clients) client[Symbol.dispose]();
  });

  it('answers a management server: an ACK for valid rules, a NACK for invalid ones', async () => {
    await using rules = await VersionedRules.start();
    rules.publish(1);
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...TWO } });
    const clients = await connections(weir, 2);
    expect(rules.answers).toEqual({ rejections: 0, accepted: '1' });
    rules.publish(2, '');
    await weir.until('a rejection', () => rules.answers.rejections > 0);
    expect(rules.answers.accepted).toBe('1');
    expect(await Promise.all(clients.map(versionOf))).toEqual([1, 1]);
    rules.publish(3);
    await weir.until('version 3 to be active', async () => (await versionOf(clients[0]!)) === 3);
    expect(rules.answers.accepted).toBe('3');
    expect(await versionOf(clients[1]!)).toBe(3);
    expect(lines(weir, /new rules rejected/)).toHaveLength(1);
    for (const client of clients) client[Symbol.dispose]();
  });

  it(
    'brings 25,000 rules to all workers without a failed call, and to a worker that is replaced',
    async () => {
      await using rules = await RuleFolder.with({ 'shop.yaml': ruleFile(1) });
      await using weir = await WeirProcess.start({ env: { ...rules.env, ...TWO } });
      const callers = new AlternatingCallers(weir, await connections(weir, 4));
      const many = Array.from({ length: 25_000 }, (_, index) => `  - { key: plan, value: p${index} }\n`);
      await rules.write('shop.yaml', ruleFile(2) + many.join(''));
      using client = new RateLimitClient(weir.grpcAddress);
      await until('the rules are active', async () => (await versionOf(client)) === 2, SLOW);
      await callers.stop();
      expect([callers.failures, callers.stepsBack]).toEqual([[], []]);

      const [first, second] = workersOf(weir);
      process.kill(first!.pid, 'SIGKILL');
      const replacement = await weir.until('another worker', () =>
        workersOf(weir).find(({ pid }) => pid !== first!.pid && pid !== second!.pid),
      );
      const clients = await connectionsUntil(weir, () => connectionsTo(weir.ports.grpc, replacement.pid) > 0);
      for (const each of clients) {
        expect(await versionOf(each)).toBe(2);
        each[Symbol.dispose]();
      }
      expect((await weir.statistics()).get('ratelimit.service.config_load_success')).toBe(2);
    },
    2 * SLOW,
  );
});

/** A worker that gets a signal at a step of a reload, and whether that ends it by itself. */
const STEPS = ['prepare', 'hold', 'commit'].flatMap((step) => [
  [step, 'SIGKILL', /a worker has ended/] as const,
  [step, 'SIGSTOP', /a worker does not answer and is killed/] as const,
]);

describe.each(STEPS)('a worker that gets, at the step %s of a reload, the signal %s', (step, signal, line) => {
  it('is replaced; the others get the new rules, and no caller sees old rules after new ones', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'weir-fault-'));
    const armed = join(folder, 'armed');
    try {
      await using rules = await VersionedRules.start();
      rules.publish(1);
      const fault = { NODE_OPTIONS: `--require ${FAULT}`, FAIL_AT_RULE_STEP: `${step} ${signal} ${armed}` };
      await using weir = await WeirProcess.start({ env: { ...rules.env, ...TWO, ...fault } });
      const before = workersOf(weir);
      const clients = await connections(weir, 6);
      const owners = await weir.until('all connections to have a worker', () => {
        const pids = clients.map(({ localPort }) => ownerOf(weir, localPort));
        return pids.every((pid) => pid !== undefined) && pids;
      });
      const spared = clients.filter((_, index) => owners[index] === before[1]!.pid);
      expect(spared).toHaveLength(3);
      const callers = new AlternatingCallers(weir, [...clients]);
      await writeFile(armed, '');
      rules.publish(2);
      await weir.line(line);
      expect(existsSync(armed)).toBe(false);
      await weir.until('the new rules to be active', async () => (await versionOf(spared[0]!)) === 2);
      const replacement = await weir.until('another worker', () =>
        workersOf(weir).find(({ number, pid }) => number === 1 && pid !== before[0]!.pid),
      );
      const more = await connectionsUntil(weir, () => connectionsTo(weir.ports.grpc, replacement.pid) > 0);
      expect(await Promise.all(more.map(versionOf))).toEqual(more.map(() => 2));
      rules.publish(3);
      await weir.until('the next rules to be active', async () => (await versionOf(spared[0]!)) === 3);
      expect(await Promise.all(more.map(versionOf))).toEqual(more.map(() => 3));
      for (const client of more) client[Symbol.dispose]();
      expect(spared.map(({ isClosed }) => isClosed)).toEqual([false, false, false]);
      expect(workersOf(weir)[1]).toEqual(before[1]);
      await callers.stop();
      expect(callers.stepsBack).toEqual([]);
      // Those that were on connections of the killed worker.
      expect(callers.failures.filter(({ status }) => status !== undefined)).toEqual([]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

function ruleFile(version: number): string {
  return `domain: shop\ndescriptors:\n  - { key: user, rate_limit: { unit: year, requests_per_unit: ${BASE + version} } }\n`;
}
