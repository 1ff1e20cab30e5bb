import { MemcachedProcess } from '../../../test/support/processes/memcached-process';
import { RedisCluster } from '../../../test/support/processes/redis/redis-cluster';
import { RedisProcess } from '../../../test/support/processes/redis/redis-process';
import type { Settings } from '../scenarios/loads';
import type { StoreName } from '../scenarios/scenarios';

/** With these, a killed Redis has lost no count that it had replied with. */
export const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'no'];

/** Commands that a store has received since its start. */
export interface Commands {
  /** Reads of what clients have written, each of which may have several commands; 0 for a store that does not say. */
  readonly reads: number;
  /** All that it executed, which includes those that scripts called. */
  readonly executed: number;
}

/** A running counter store. */
export interface RunningStore extends AsyncDisposable {
  /** The settings with which the service uses it. */
  readonly env: Settings;
  /** Its processes; none for the memory of the service. */
  readonly pids: readonly number[];
  /** Undefined for stores that do not count commands in this way. */
  commands(): Promise<Commands | undefined>;
  /** Bytes of memory that it uses for data; undefined for the memory of the service. */
  memory(): Promise<number | undefined>;
}

const MEBIBYTES = 1_024 * 1_024;

export function startStore(name: StoreName): Promise<RunningStore> {
  return STARTERS[name]();
}

const STARTERS: Readonly<Record<StoreName, () => Promise<RunningStore>>> = {
  memory: async () => ({
    // Room for 1,000,000 live keys and for those of the next day, should it begin.
    env: { BACKEND_TYPE: 'memory', MEMORY_MAX_KEYS: '2000000', MEMORY_MAX_BYTES: String(1_024 * MEBIBYTES) },
    pids: [],
    commands: () => Promise.resolve(undefined),
    memory: () => Promise.resolve(undefined),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }),
  redis: async () => {
    const redis = await RedisProcess.start();
    return onRedis([redis], { KVSTORE_URL: redis.address }, redis);
  },
  'redis-cluster': async () => {
    const cluster = await RedisCluster.start();
    return onRedis(cluster.servers, { KVSTORE_TYPE: 'cluster', KVSTORE_URL: cluster.url }, cluster);
  },
  memcached: async () => {
    const memcached = await MemcachedProcess.start({ args: ['-m', '1024'] });
    async function statistic(name: string): Promise<number> {
      const text = await memcached.command('stats\r\n', /^END\r\n/m);
      return Number(new RegExp(`^STAT ${name} (\\S+)\r$`, 'm').exec(text)?.[1]);
    }
    return {
      env: { BACKEND_TYPE: 'plaincache', PLAINCACHE_HOST_PORT: memcached.address },
      pids: [await statistic('pid')],
      commands: async () => {
        const [gets, sets, increments] = [
          await statistic('cmd_get'),
          await statistic('cmd_set'),
          (await statistic('incr_hits')) + (await statistic('incr_misses')),
        ];
        return { reads: 0, executed: gets + sets + increments };
      },
      memory: () => statistic('bytes'),
      [Symbol.asyncDispose]: () => memcached[Symbol.asyncDispose](),
    };
  },
};

function onRedis(servers: readonly RedisProcess[], env: Settings, owner: AsyncDisposable): RunningStore {
  async function sum(read: (info: string) => number): Promise<number> {
    const infos = await Promise.all(servers.map(({ control }) => control.info('everything')));
    return infos.reduce((total, info) => total + read(info), 0);
  }
  return {
    env: { BACKEND_TYPE: 'kvstore', ...env },
    pids: servers.map(({ pid }) => pid),
    commands: async () => ({ reads: await sum(readsProcessed), executed: await sum(commandsExecuted) }),
    memory: () => sum((info) => field(info, 'used_memory_dataset')),
    [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose](),
  };
}

function field(info: string, name: string): number {
  return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]);
}

function calls(info: string, command: string): number {
  return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(info)?.[1] ?? 0);
}

function readsProcessed(info: string): number {
  return field(info, 'total_reads_processed') - calls(info, 'info');
}

function commandsExecuted(info: string): number {
  // Without those of the benchmark itself.
  return field(info, 'total_commands_processed') - calls(info, 'info');
}
