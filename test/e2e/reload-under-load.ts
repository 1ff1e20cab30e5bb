import { existsSync, renameSync } from 'node:fs';
import { RateLimitClient } from '../support/clients/grpc-client';
import { ruleResource } from '../support/data/rule-resources';
import { ConfigMapMount, RuleTree } from '../support/data/rule-tree';
import { domainConfig, limit } from '../support/data/rules';
import { WeirProcess } from '../support/processes/weir-process';
import { AdsServer, SnapshotCache } from '../support/servers/ads-server';
import { Load } from './shop';

/** Two rules that always have the same limit: a response with two different limits comes from two rulesets. */
const KEYS = ['left', 'right'];
export const BASE = 1_000_000_000;
const CALLERS = 250;

/** A rule file of these keys whose limit shows the version. */
export function ruleFile(version: number, keys: readonly string[] = KEYS): string {
  const rules = keys.map(
    (key) => `  - { key: ${key}, rate_limit: { unit: year, requests_per_unit: ${BASE + version} } }\n`,
  );
  return `domain: shop\ndescriptors:\n${rules.join('')}`;
}

/** The limit that a call gets. */
export async function limitOf(client: RateLimitClient, descriptor = 'left=b'): Promise<number | undefined> {
  const { statuses } = await client.shouldRateLimit('shop', [descriptor]);
  return statuses[0]?.currentLimit?.requestsPerUnit;
}

/** A rule source that changes under load. */
interface Rules extends AsyncDisposable {
  readonly env: Readonly<Record<string, string>>;
  publish(version: number): void;
}

function ruleFiles(env: Readonly<Record<string, string>>, publisher: (tree: RuleTree) => Rules['publish']): Rules {
  const tree = new RuleTree();
  return {
    env: { RUNTIME_ROOT: tree.at('root'), ...env },
    publish: publisher(tree),
    [Symbol.asyncDispose]: () => Promise.resolve(tree[Symbol.dispose]()),
  };
}

function switchedLink(): Rules {
  return ruleFiles({}, (tree) => (version) => {
    tree.write(`v${version}/config/shop.yaml`, ruleFile(version));
    tree.switchLink('root', `v${version}`);
  });
}

function configMap(): Rules {
  return ruleFiles({ RUNTIME_IGNOREDOTFILES: 'true' }, (tree) => {
    const mount = new ConfigMapMount(tree, 'root/config');
    return (version) => mount.publish({ 'shop.yaml': ruleFile(version) });
  });
}

/** Like an editor that renames the old file before it writes the new one. */
function renamingEditor(): Rules {
  return ruleFiles({ RUNTIME_WATCH_ROOT: 'false' }, (tree) => (version) => {
    const path = 'root/config/shop.yaml';
    // At once: while the callers of this process keep it busy, the file would be missing for so long that its rules
    // were removed.
    if (existsSync(tree.at(path))) renameSync(tree.at(path), tree.at(`${path}~`));
    tree.write(path, ruleFile(version));
  });
}

async function managementServer(...domains: readonly string[]): Promise<Rules> {
  const cache = new SnapshotCache();
  const server = await AdsServer.start({ cache });
  return {
    env: { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: server.address },
    publish(version) {
      const rules = KEYS.map((key) => ({ key, rateLimit: limit(BASE + version, 'YEAR') }));
      const resources = domains.map((domain) => ruleResource(domain, domainConfig(domain, ...rules)));
      cache.publish(String(version), resources);
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

export const CHANGES = {
  'a switched link': switchedLink,
  'a swapped ConfigMap': configMap,
  'a file saved by an editor': renamingEditor,
  'a push of a management server with 1,000 domains': () =>
    managementServer('shop', ...Array.from({ length: 1000 }, (_, index) => `more-${index}`)),
} as const satisfies Record<string, () => Rules | Promise<Rules>>;

/**
 * Sends requests for both keys until it is stopped. Fails at a response with two limits or an older one than the one
 * before.
 */
function checkedCalls(client: RateLimitClient) {
  let latest = BASE;
  return async () => {
    const { statuses } = await client.shouldRateLimit('shop', ['left=a', 'right=a']);
    const [left = 0, right = 0] = statuses.map(({ currentLimit }) => currentLimit?.requestsPerUnit);
    if (left !== right || left < latest) throw new Error(`${latest} then ${left} and ${right}`);
    latest = left;
  };
}

async function loadsOf(weir: WeirProcess): Promise<number> {
  return (await weir.statistics()).get('ratelimit.service.config_load_success') ?? 0;
}

/**
 * Changes the rules several times while many callers use them: no call fails, no response mixes rulesets, no count is
 * lost.
 */
export async function expectReloadsUnderLoad(change: keyof typeof CHANGES, reloads = 4): Promise<void> {
  await using rules = await CHANGES[change]();
  rules.publish(0);
  await using weir = await WeirProcess.start({ env: rules.env });
  using client = new RateLimitClient(weir.grpcAddress);
  const clients = Array.from({ length: 4 }, () => new RateLimitClient(weir.grpcAddress));
  const loads = Array.from({ length: CALLERS }, (_, index) => new Load(checkedCalls(clients[index % 4]!), 1));
  try {
    for (let version = 1; version <= reloads; version += 1) {
      rules.publish(version);
      await weir.until(`load ${version}`, async () => (await loadsOf(weir)) > version);
      // The next call is decided by the new rules.
      expect(await limitOf(client)).toBe(BASE + version);
    }
  } finally {
    await Promise.all(loads.map((load) => load[Symbol.asyncDispose]()));
    for (const each of clients) each[Symbol.dispose]();
  }
  expect(loads.flatMap(({ failures }) => failures)).toEqual([]);
  const responses = loads.reduce((sum, { answered }) => sum + answered, 0);
  expect(responses).toBeGreaterThan(CALLERS);
  const { statuses } = await client.shouldRateLimit('shop', ['left=a']);
  expect(statuses[0]?.limitRemaining).toBe(BASE + reloads - responses - 1);
  const statistics = await weir.statistics();
  expect(statistics.get('ratelimit.service.rate_limit.shop.left.total_hits')).toBe(responses + reloads + 1);
  expect(await loadsOf(weir)).toBe(reloads + 1);
  expect(statistics.get('ratelimit.service.config_load_error') ?? 0).toBe(0);
  expect(statistics.get('ratelimit.config.rejected')).toBe(0);
  expect(Math.abs(Date.now() / 1000 - (statistics.get('ratelimit.config.loaded_at') ?? 0))).toBeLessThan(600);
}
