import { setTimeout as sleep } from 'node:timers/promises';
import { MemcachedProcess } from '../../test/support/processes/memcached-process';
import { RedisCluster } from '../../test/support/processes/redis/redis-cluster';
import { RedisProcess } from '../../test/support/processes/redis/redis-process';
import { RedisSentinels } from '../../test/support/processes/redis/redis-sentinels';
import { FaultProxy } from '../../test/support/servers/fault-proxy';
import type { Settings } from '../suite/scenarios/loads';

export const STORES = ['single', 'sentinel', 'cluster', 'memcached'] as const;
export const FAULTS = ['killed', 'stopped', 'slow'] as const;
/**
 * Of a part of the stores: started again within a second, both directions of the network or the replies lost, one node
 * of the cluster killed or stopped, the master killed and replaced by its replica.
 */
export const OTHER_FAULTS = ['restarted', 'cut', 'deaf', 'one-killed', 'one-stopped', 'failed-over'] as const;
export type StoreName = (typeof STORES)[number];
export type Fault = (typeof FAULTS | typeof OTHER_FAULTS)[number];

/** Milliseconds by which the replies of a slow store are late. */
const LATENESS = 200;
/** Milliseconds that a server is away which starts again. */
const RESTART = 500;

type Server = RedisProcess | MemcachedProcess;

interface StoreParts {
  /** Settings of a service that uses the store. */
  readonly env: Settings;
  /** Those that hold counters, each behind a proxy. They fail together. */
  readonly servers: readonly Server[];
  readonly proxies: readonly FaultProxy[];
  /** Has the replica replace a master that does not answer. */
  readonly failOver?: () => Promise<void>;
  /** What ends with them. */
  readonly rest: readonly AsyncDisposable[];
  /** The counts of these keys; 0 for an absent one. */
  readonly counts: (keys: readonly string[]) => Promise<readonly number[]>;
}

/** A store that can fail. */
export class FaultyStore implements AsyncDisposable {
  readonly #parts: StoreParts;

  private constructor(parts: StoreParts) {
    this.#parts = parts;
  }

  static async start(store: StoreName): Promise<FaultyStore> {
    return new FaultyStore(await STARTS[store]());
  }

  get env(): Settings {
    return this.#parts.env;
  }

  counts(keys: readonly string[]): Promise<readonly number[]> {
    return this.#parts.counts(keys);
  }

  async begin(fault: Fault): Promise<void> {
    const { proxies } = this.#parts;
    const servers = this.#failing(fault);
    if (fault === 'failed-over') await this.#parts.failOver?.();
    if (isKilled(fault)) await Promise.all(servers.map((server) => server.crash()));
    if (isStopped(fault)) for (const server of servers) server.signal('SIGSTOP');
    if (fault === 'slow') for (const proxy of proxies) proxy.delay = LATENESS;
    if (fault === 'cut' || fault === 'deaf') {
      for (const proxy of proxies) proxy.fault = fault === 'cut' ? 'black hole' : 'lost replies';
    }
    if (fault !== 'restarted') return;
    await sleep(RESTART);
    await Promise.all(servers.map((server) => server.run()));
  }

  async end(fault: Fault): Promise<void> {
    const { proxies } = this.#parts;
    const servers = this.#failing(fault);
    if (isKilled(fault) && !endsByItself(fault)) await Promise.all(servers.map((server) => server.run()));
    if (isStopped(fault)) for (const server of servers) server.signal('SIGCONT');
    for (const proxy of proxies) {
      proxy.delay = 0;
      // What was lost is missing in these connections.
      if (proxy.fault !== 'none') proxy.reset();
      proxy.fault = 'none';
    }
  }

  #failing(fault: Fault): readonly Server[] {
    const { servers } = this.#parts;
    return fault.startsWith('one-') ? servers.slice(0, 1) : servers;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { servers, proxies, rest } = this.#parts;
    await Promise.all([...proxies, ...servers, ...rest].map((each) => each[Symbol.asyncDispose]()));
  }
}

/** Whether servers lose their counts by the fault. */
export function isKilled(fault: Fault): boolean {
  return fault === 'killed' || fault === 'one-killed' || endsByItself(fault);
}

/** Whether the store counts again before the fault is ended. */
export function endsByItself(fault: Fault): boolean {
  return fault === 'restarted' || fault === 'failed-over';
}

function isStopped(fault: Fault): boolean {
  return fault === 'stopped' || fault === 'one-stopped';
}

const STARTS: Readonly<Record<StoreName, () => Promise<StoreParts>>> = {
  single: async () => {
    const server = await RedisProcess.start();
    const proxy = await FaultProxy.start(() => server);
    const env = { BACKEND_TYPE: 'kvstore', KVSTORE_URL: proxy.address };
    return { env, servers: [server], proxies: [proxy], rest: [], counts: (keys) => redisCounts(server, keys) };
  },
  sentinel: async () => {
    let port = 0;
    const proxy = await FaultProxy.start(() => ({ port }));
    const sentinels = await RedisSentinels.start({
      masterPort: (master) => {
        ({ port } = master);
        return proxy.port;
      },
    });
    const { master, replica } = sentinels;
    let counting = master;
    return {
      env: { BACKEND_TYPE: 'kvstore', KVSTORE_TYPE: 'sentinel', KVSTORE_URL: sentinels.url },
      servers: [master],
      proxies: [proxy],
      failOver: () => {
        counting = replica;
        return sentinels.failOverWhenSilent();
      },
      rest: [replica, ...sentinels.sentinels],
      counts: (keys) => redisCounts(counting, keys),
    };
  },
  cluster: async () => {
    const ports: number[] = [];
    const proxies = await Promise.all([0, 1, 2].map((index) => FaultProxy.start(() => ({ port: ports[index]! }))));
    const cluster = await RedisCluster.start({
      directivesOf: (index) => ['--cluster-announce-port', String(proxies[index]!.port)],
    });
    ports.push(...cluster.masters.map(({ port }) => port));
    return {
      env: {
        BACKEND_TYPE: 'kvstore',
        KVSTORE_TYPE: 'cluster',
        KVSTORE_URL: proxies.map(({ address }) => address).join(),
      },
      servers: cluster.masters,
      proxies,
      rest: [],
      counts: (keys) => cluster.storedCounts(keys),
    };
  },
  memcached: async () => {
    const server = await MemcachedProcess.start();
    const proxy = await FaultProxy.start(() => ({ port: Number(server.address.split(':')[1]) }));
    return {
      env: { BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: proxy.address },
      servers: [server],
      proxies: [proxy],
      rest: [],
      counts: (keys) => Promise.all(keys.map(async (key) => Number((await server.value(key)) ?? 0))),
    };
  },
};

async function redisCounts({ control }: RedisProcess, keys: readonly string[]): Promise<readonly number[]> {
  return (await control.mget([...keys])).map((count) => Number(count ?? 0));
}
