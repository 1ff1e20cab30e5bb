import { chmodSync, existsSync, renameSync, writeFileSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AdsServer, SnapshotCache } from '../support/servers/ads-server';
import { RateLimitClient } from '../support/clients/grpc-client';
import { ruleResource } from '../support/data/rule-resources';
import { domainConfig, limit } from '../support/data/rules';
import { WeirProcess } from '../support/processes/weir-process';

/** Two rules that always have the same limit: a response with two different limits comes from two rulesets. */
const BASE = 1_000_000_000;
const KEYS = ['left', 'right'];
const RELOADS = 4;
const CALLERS = 250;

function ruleFile(version: number, domain = 'shop') {
  return `domain: ${domain}\ndescriptors:\n${KEYS.map(
    (key) => `  - { key: ${key}, rate_limit: { unit: year, requests_per_unit: ${BASE + version} } }\n`,
  ).join('')}`;
}

/** A rule source that changes under load. */
interface Rules extends AsyncDisposable {
  readonly env: Readonly<Record<string, string>>;
  publish(version: number): Promise<void>;
}

async function temporaryFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'weir-reload-'));
  chmodSync(folder, 0o755);
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** Replaces a link atomically. */
async function relink(target: string, link: string): Promise<void> {
  await symlink(target, `${link}.new`);
  await rename(`${link}.new`, link);
}

async function switchedLink(): Promise<Rules> {
  const { folder, remove } = await temporaryFolder();
  return {
    env: { RUNTIME_ROOT: join(folder, 'current') },
    async publish(version) {
      await mkdir(join(folder, `v${version}`, 'config'), { recursive: true });
      await writeFile(join(folder, `v${version}`, 'config', 'shop.yaml'), ruleFile(version));
      await relink(join(folder, `v${version}`), join(folder, 'current'));
    },
    [Symbol.asyncDispose]: remove,
  };
}

/** Like Kubernetes: the files are links through `..data`, a link that is switched; its old target is removed. */
async function configMap(): Promise<Rules> {
  const { folder, remove } = await temporaryFolder();
  const mount = join(folder, 'config');
  await mkdir(mount);
  return {
    env: { RUNTIME_ROOT: folder, RUNTIME_IGNOREDOTFILES: 'true' },
    async publish(version) {
      const before = await readlink(join(mount, '..data')).catch(() => undefined);
      await mkdir(join(mount, `..v${version}`));
      await writeFile(join(mount, `..v${version}`, 'shop.yaml'), ruleFile(version));
      await relink(`..v${version}`, join(mount, '..data'));
      if (before === undefined) await symlink('..data/shop.yaml', join(mount, 'shop.yaml'));
      else await rm(join(mount, before), { recursive: true });
    },
    [Symbol.asyncDispose]: remove,
  };
}

/** Like an editor that renames the old file before it writes the new one. */
async function renamingEditor(): Promise<Rules> {
  const { folder, remove } = await temporaryFolder();
  await mkdir(join(folder, 'config'));
  const file = join(folder, 'config', 'shop.yaml');
  return {
    env: { RUNTIME_ROOT: folder, RUNTIME_WATCH_ROOT: 'false' },
    publish(version) {
      // At once: while the callers of this process keep it busy, the file would be missing for so long that its rules were removed.
      if (existsSync(file)) renameSync(file, `${file}~`);
      writeFileSync(file, ruleFile(version));
      return Promise.resolve();
    },
    [Symbol.asyncDispose]: remove,
  };
}

async function managementServer(moreDomains = 0): Promise<Rules> {
  const cache = new SnapshotCache();
  const server = await AdsServer.start({ cache });
  function resource(domain: string, version: number) {
    return ruleResource(
      domain,
      domainConfig(domain, ...KEYS.map((key) => ({ key, rateLimit: limit(BASE + version, 'YEAR') }))),
    );
  }
  return {
    env: { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: server.address },
    publish: (version) => {
      const domains = ['shop', ...Array.from({ length: moreDomains }, (_, index) => `more-${index}`)];
      cache.publish(
        String(version),
        domains.map((domain) => resource(domain, version)),
      );
      return Promise.resolve();
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** Callers that send requests for both keys in a closed loop. */
class Callers {
  readonly failures: unknown[] = [];
  /** The limits of responses in which they differed. */
  readonly mixtures: string[] = [];
  /** How often a caller received a limit of older rules than in its previous response. */
  stepsBack = 0;
  responses = 0;
  readonly #clients: readonly RateLimitClient[];
  readonly #loops: readonly Promise<void>[];
  #isStopped = false;

  constructor(address: string) {
    this.#clients = Array.from({ length: 4 }, () => new RateLimitClient(address));
    this.#loops = Array.from({ length: CALLERS }, (_, index) => this.#call(this.#clients[index % 4]!));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#loops);
    for (const client of this.#clients) client[Symbol.dispose]();
  }

  async #call(client: RateLimitClient): Promise<void> {
    let latest = 0;
    while (!this.#isStopped) {
      try {
        const { statuses } = await client.shouldRateLimit('shop', ['left=a', 'right=a']);
        const [left = 0, right = 0] = statuses.map(({ currentLimit }) => currentLimit?.requestsPerUnit ?? 0);
        if (left !== right || left === 0) this.mixtures.push(`${left}/${right}`);
        if (left < latest) this.stepsBack += 1;
        latest = left;
        this.responses += 1;
      } catch (error) {
        this.failures.push(error);
      }
    }
  }
}

async function limitNow(client: RateLimitClient) {
  const { statuses } = await client.shouldRateLimit('shop', ['left=b']);
  return statuses[0]?.currentLimit?.requestsPerUnit;
}
async function successes(weir: WeirProcess) {
  return (await weir.statistics()).get('ratelimit.service.config_load_success');
}

describe.each<[string, () => Promise<Rules>]>([
  ['a switched link', switchedLink],
  ['a swapped ConfigMap', configMap],
  ['a file saved by an editor', renamingEditor],
  ['a push of a management server', () => managementServer()],
  ['a push of a management server with 1,000 domains', () => managementServer(1000)],
])('a reload under load, caused by %s,', (_, start) => {
  test('fails no call, mixes no rulesets in a response, and loses no count', async () => {
    await using rules = await start();
    await rules.publish(0);
    await using weir = await WeirProcess.start({ env: rules.env });
    using client = new RateLimitClient(weir.grpcAddress);
    const callers = new Callers(weir.grpcAddress);
    try {
      for (let version = 1; version <= RELOADS; version += 1) {
        await rules.publish(version);
        await weir.until(`load ${version}`, async () => ((await successes(weir)) ?? 0) > version);
        // The next call is decided by the new rules.
        expect(await limitNow(client)).toBe(BASE + version);
      }
    } finally {
      await callers.stop();
    }
    expect(callers.failures).toEqual([]);
    expect(callers.mixtures).toEqual([]);
    expect(callers.stepsBack).toBe(0);
    expect(callers.responses).toBeGreaterThan(CALLERS);
    const { statuses } = await client.shouldRateLimit('shop', ['left=a']);
    expect(statuses[0]?.limitRemaining).toBe(BASE + RELOADS - callers.responses - 1);
    const statistics = await weir.statistics();
    expect(statistics.get('ratelimit.service.rate_limit.shop.left.total_hits')).toBe(callers.responses + RELOADS + 1);
    expect(statistics.get('ratelimit.service.config_load_success')).toBe(RELOADS + 1);
    expect(statistics.get('ratelimit.service.config_load_error') ?? 0).toBe(0);
    expect(statistics.get('ratelimit.config.rejected')).toBe(0);
    const loadedAt = statistics.get('ratelimit.config.loaded_at') ?? 0;
    expect(Math.abs(Date.now() / 1000 - loadedAt)).toBeLessThan(600);
  });
});

/** The number of output lines that match. */
function countLines(weir: WeirProcess, pattern: RegExp) {
  return weir.output.split('\n').filter((line) => pattern.test(line)).length;
}
const REJECTED = /level=error.*new rules rejected; keeping the active rules/;

describe('the service', () => {
  test.each(['true', 'false'])(
    'keeps the rules while their folder is missing (RUNTIME_WATCH_ROOT=%s)',
    async (watchRoot) => {
      const { folder, remove } = await temporaryFolder();
      await mkdir(join(folder, 'root', 'config'), { recursive: true });
      await writeFile(join(folder, 'root', 'config', 'shop.yaml'), ruleFile(1));
      await using weir = await WeirProcess.start({
        env: { RUNTIME_ROOT: join(folder, 'root'), RUNTIME_WATCH_ROOT: watchRoot },
      });
      using client = new RateLimitClient(weir.grpcAddress);
      await rename(join(folder, 'root'), join(folder, 'away'));
      await weir.line(REJECTED);
      expect(await limitNow(client)).toBe(BASE + 1);
      expect((await weir.statistics()).get('ratelimit.config.rejected')).toBe(1);
      expect(await weir.debug('/rlconfig')).toMatch(
        /# load rejected .*, keeping the active rules:\n# {3}.*does not exist/,
      );
      await cp(join(folder, 'away'), join(folder, 'next'), { recursive: true });
      await writeFile(join(folder, 'next', 'config', 'shop.yaml'), ruleFile(2));
      await rename(join(folder, 'next'), join(folder, 'root'));
      await weir.until('the new rules to be active', async () => (await limitNow(client)) === BASE + 2);
      expect((await weir.statistics()).get('ratelimit.config.rejected')).toBe(0);
      expect(countLines(weir, REJECTED)).toBe(1);
      await remove();
    },
  );

  test('keeps the rules while it has no permission to read them', async () => {
    const { folder, remove } = await temporaryFolder();
    const config = join(folder, 'config');
    await mkdir(config);
    await writeFile(join(config, 'shop.yaml'), ruleFile(1));
    await using weir = await WeirProcess.start({
      env: { RUNTIME_ROOT: folder, RUNTIME_WATCH_ROOT: 'false' },
      underPermissions: true,
    });
    using client = new RateLimitClient(weir.grpcAddress);
    chmodSync(config, 0o000);
    expect(await weir.line(REJECTED)).toMatch(/permission denied \(EACCES\)/);
    expect(await limitNow(client)).toBe(BASE + 1);
    chmodSync(config, 0o755);
    await weir.until(
      'the rules to be read again',
      async () => (await weir.statistics()).get('ratelimit.config.rejected') === 0,
    );
    expect(await limitNow(client)).toBe(BASE + 1);
    expect(countLines(weir, REJECTED)).toBe(1);
    await remove();
  });

  test('removes the rules of a removed file and keeps those of the other files', async () => {
    const { folder, remove } = await temporaryFolder();
    await mkdir(join(folder, 'config'));
    await writeFile(join(folder, 'config', 'shop.yaml'), ruleFile(1));
    await writeFile(join(folder, 'config', 'api.yaml'), ruleFile(1, 'api'));
    await using weir = await WeirProcess.start({ env: { RUNTIME_ROOT: folder, RUNTIME_WATCH_ROOT: 'false' } });
    using client = new RateLimitClient(weir.grpcAddress);
    await rm(join(folder, 'config', 'api.yaml'));
    await weir.until('the rules of the remaining file to be active', async () => (await successes(weir)) === 2);
    const { overallCode, statuses } = await client.shouldRateLimit('api', ['left=a']);
    expect([overallCode, statuses[0]?.currentLimit]).toEqual([1, undefined]);
    expect(await limitNow(client)).toBe(BASE + 1);
    expect(countLines(weir, REJECTED)).toBe(0);
    await remove();
  });
});

describe('the service', () => {
  test.each([
    ['the permissions of a rule file change', (file: string) => Promise.resolve(chmodSync(file, 0o600))],
    [
      'the same contents are written to a rule file',
      (file: string) => Promise.resolve(writeFileSync(file, ruleFile(1))),
    ],
  ])('counts a load and changes nothing else when %s', async (_, change) => {
    const { folder, remove } = await temporaryFolder();
    const file = join(folder, 'config', 'shop.yaml');
    await mkdir(join(folder, 'config'));
    await writeFile(file, ruleFile(1));
    await using weir = await WeirProcess.start({ env: { RUNTIME_ROOT: folder, RUNTIME_WATCH_ROOT: 'false' } });
    using client = new RateLimitClient(weir.grpcAddress);
    expect(await limitNow(client)).toBe(BASE + 1);
    const before = await weir.statistics();
    const rules = await weir.debug('/rlconfig');
    await change(file);
    await weir.until('the load to be counted', async () => (await successes(weir)) === 2);
    const after = await weir.statistics();
    expect([before.get('runtime.load_attempts'), after.get('runtime.load_attempts')]).toEqual([1, 2]);
    for (const name of ['ratelimit.config.loaded_at', 'runtime.num_values', 'ratelimit.config.rejected'])
      expect([name, after.get(name)]).toEqual([name, before.get(name)]);
    expect(await weir.debug('/rlconfig')).toBe(rules);
    expect(countLines(weir, /rules loaded/)).toBe(1);
    const { statuses } = await client.shouldRateLimit('shop', ['left=b']);
    expect(statuses[0]?.limitRemaining).toBe(BASE + 1 - 2);
    await remove();
  });
});

describe('the service with a management server', () => {
  test('keeps the active rules when new ones are invalid, and reports that in statistics, /rlconfig and one log line', async () => {
    const cache = new SnapshotCache();
    await using server = await AdsServer.start({ cache });
    cache.publish('good-1', [
      ruleResource('shop', domainConfig('shop', { key: 'left', rateLimit: limit(BASE, 'YEAR') })),
    ]);
    await using weir = await WeirProcess.start({
      env: {
        CONFIG_TYPE: 'GRPC_XDS_SOTW',
        CONFIG_GRPC_XDS_SERVER_URL: server.address,
        CONFIG_GRPC_XDS_NODE_METADATA: 'zone=a',
      },
    });
    using client = new RateLimitClient(weir.grpcAddress);
    expect(server.requests[0]?.node).toEqual({ id: 'default', cluster: '', metadata: { zone: 'a' } });
    const source = `xDS server ${server.address}`;
    expect(await weir.debug('/rlconfig')).toMatch(
      new RegExp(`^# from ${source}\n# version good-1\n# loaded \\S+\nshop\\.left: `),
    );
    expect((await weir.statistics()).get('ratelimit.xds.connected')).toBe(1);
    cache.publish('bad-2', [ruleResource('shop', domainConfig('shop', { key: '' }))]);
    // The cache keeps sending the rejected response: each one is counted, and only the first one is logged.
    await weir.until(
      'two rejections',
      async () => ((await weir.statistics()).get('ratelimit.service.config_load_error') ?? 0) >= 2,
    );
    expect(countLines(weir, REJECTED)).toBe(1);
    expect(await limitNow(client)).toBe(BASE);
    expect((await weir.statistics()).get('ratelimit.config.rejected')).toBe(1);
    expect(await weir.debug('/rlconfig')).toMatch(
      new RegExp(
        `# load rejected \\S+, keeping the active rules:\n# {3}${source}, version bad-2:\n# {3}resource 'shop', descriptors\\[0\\]: descriptor has empty key`,
      ),
    );
    cache.publish('good-3', [
      ruleResource('shop', domainConfig('shop', { key: 'left', rateLimit: limit(BASE + 3, 'YEAR') })),
    ]);
    await weir.until('the valid rules to be active', async () => (await limitNow(client)) === BASE + 3);
    await server[Symbol.asyncDispose]();
    await weir.until(
      'the connection to be lost',
      async () => (await weir.statistics()).get('ratelimit.xds.connected') === 0,
    );
    expect(await limitNow(client)).toBe(BASE + 3);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
  });

  test('keeps the listeners closed until there are rules, and exits on a signal meanwhile', async () => {
    await using server = await AdsServer.start();
    await using weir = await WeirProcess.start({
      env: { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: server.address },
      awaitServing: false,
    });
    await (await server.nextStream()).nextRequest();
    await expect(weir.http('/healthcheck')).rejects.toThrow('fetch failed');
    expect(await weir.debugHealth()).toEqual([500, 'unhealthy: waiting for the first valid rules']);
    await weir.line(/no active rules; not serving until valid rules are loaded/);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    expect(weir.output).not.toMatch(/msg="?serving/);
  });
});
