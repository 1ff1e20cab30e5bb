import { freePorts } from '../free-ports';
import { until } from '../../waiting/until';
import { RedisProcess, type RedisProcessOptions } from './redis-process';

const SLOTS = 16_384;
/** Node timeouts, in milliseconds: by default longer than a busy machine keeps a node waiting. */
const PATIENT = 60_000;
const IMPATIENT = 1_000;
const COMMON = [
  ...['--cluster-enabled', 'yes', '--cluster-node-timeout', String(PATIENT)],
  ...['--cluster-config-file', 'nodes.conf', '--repl-diskless-sync-delay', '0'],
];

interface RedisClusterOptions extends Omit<RedisProcessOptions, 'mode'> {
  /** Replicas for each master. */
  readonly replicas?: 0 | 1;
  /** Directives for one server, for example the port that it announces. */
  readonly directivesOf?: (index: number) => readonly string[];
}

/** The servers of slots, each with its first slot, its last one, and the address of the master. */
type SlotRanges = readonly (readonly [first: number, last: number, master: readonly [host: string, port: number]])[];

/** A cluster of three real masters, with or without replicas. */
export class RedisCluster implements AsyncDisposable {
  readonly masters: readonly RedisProcess[];
  readonly replicas: readonly RedisProcess[];

  private constructor(readonly servers: readonly RedisProcess[]) {
    this.masters = servers.slice(0, 3);
    this.replicas = servers.slice(3);
  }

  static async start(options: RedisClusterOptions = {}): Promise<RedisCluster> {
    const { replicas = 0, directives = [], directivesOf = () => [], ...rest } = options;
    const busPorts = await freePorts(6);
    const servers = await Promise.all(
      Array.from({ length: 3 + 3 * replicas }, (_, index) =>
        RedisProcess.start({
          ...rest,
          directives: [...COMMON, '--cluster-port', String(busPorts[index]), ...directives, ...directivesOf(index)],
        }),
      ),
    );
    const cluster = new RedisCluster(servers);
    try {
      await cluster.#form(busPorts[0]);
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
    return cluster;
  }

  get url(): string {
    return this.masters.map(({ address }) => address).join(',');
  }

  /** The master that holds a slot, according to the first master. */
  async ownerOf(slot: number): Promise<RedisProcess> {
    const range = (await rangesOf(this.masters[0])).find(([first, last]) => first <= slot && slot <= last);
    const owner = this.servers.find(({ port }) => port === range?.[2][1]);
    if (owner === undefined) throw new Error(`no server holds slot ${slot}`);
    return owner;
  }

  /** The counts that the current masters hold for these keys; 0 for an absent key. */
  async storedCounts(keys: readonly string[]): Promise<readonly number[]> {
    await until('all slots are held', () => this.isHealthy(this.servers.filter(({ isUp }) => isUp)));
    const masters = await this.#currentMasters();
    const found = new Map<string, number>();
    for (const { control } of masters) {
      const pipeline = control.pipeline();
      for (const key of keys) pipeline.get(key);
      // A node replies with MOVED for keys that it does not hold.
      for (const [index, [error, count]] of ((await pipeline.exec()) ?? []).entries()) {
        if (error === null) found.set(keys[index] as string, Number(count));
        else if (!error.message.startsWith('MOVED')) throw error;
      }
    }
    return keys.map((key) => {
      const count = found.get(key);
      if (count === undefined) throw new Error(`no master holds ${key}`);
      return count;
    });
  }

  /**
   * Moves slots with their keys to one master that does not hold the first of them. Only one, because several at the
   * same time would each claim the newest configuration.
   *
   * @param halfWay called when the move of the slots is announced and no key has been moved
   */
  async move(slots: readonly number[], halfWay: () => Promise<unknown>): Promise<void> {
    const masters = await this.#currentMasters();
    const owners = await Promise.all([...new Set(slots)].map((slot) => this.ownerOf(slot)));
    const to = masters.find((master) => master !== owners[0]) as RedisProcess;
    const toId = await to.control.cluster('MYID');
    const moves = [...new Set(slots)]
      .map((slot, index) => ({ slot, from: owners[index] as RedisProcess }))
      .filter(({ from }) => from !== to);
    for (const { slot, from } of moves) {
      await to.control.cluster('SETSLOT', slot, 'IMPORTING', await from.control.cluster('MYID'));
      await from.control.cluster('SETSLOT', slot, 'MIGRATING', toId);
    }
    await halfWay();
    for (const { slot, from } of moves) {
      for (;;) {
        const keys = await from.control.cluster('GETKEYSINSLOT', slot, 100);
        if (keys.length === 0) break;
        await from.control.call('MIGRATE', '127.0.0.1', to.port, '', 0, 5000, 'KEYS', ...keys);
      }
      for (const { control } of [to, from, ...masters]) await control.cluster('SETSLOT', slot, 'NODE', toId);
    }
  }

  /** From now on, a node that does not answer soon counts as failed, and its replica takes over. */
  failOverWhenSilent(): Promise<void> {
    return this.#setNodeTimeout(IMPATIENT);
  }

  /** From now on, nodes wait for one another longer than a busy machine keeps one waiting. */
  bePatient(): Promise<void> {
    return this.#setNodeTimeout(PATIENT);
  }

  async #setNodeTimeout(milliseconds: number): Promise<void> {
    await Promise.all(this.servers.map(({ control }) => control.config('SET', 'cluster-node-timeout', milliseconds)));
  }

  async #currentMasters(): Promise<RedisProcess[]> {
    const up = this.servers.filter(({ isUp }) => isUp);
    const roles = await Promise.all(up.map(async ({ control }) => (await control.role())[0]));
    return up.filter((_, index) => roles[index] === 'master');
  }

  /** Whether the other servers see all slots held, and none by this server. */
  async isHealthyWithout(server: RedisProcess): Promise<boolean> {
    const others = this.servers.filter((each) => each !== server);
    const ranges = await rangesOf(others[0]);
    return ranges.every(([, , [, port]]) => port !== server.port) && this.isHealthy(others);
  }

  /** Whether all of these servers see all slots held. */
  async isHealthy(servers = this.servers): Promise<boolean> {
    const states = await Promise.all(servers.map(({ control }) => control.cluster('INFO')));
    return states.every((state) => /cluster_state:ok/.test(state) && /cluster_slots_ok:16384/.test(state));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.servers.map((server) => server[Symbol.asyncDispose]()));
  }

  async #form(busPort: number): Promise<void> {
    const [first] = this.masters as [RedisProcess, ...RedisProcess[]];
    const bounds = [0, 1, 2, 3].map((part) => Math.floor((SLOTS * part) / 3));
    for (const [index, server] of this.servers.entries()) {
      await server.control.cluster('SET-CONFIG-EPOCH', index + 1);
      if (index < 3) {
        await server.control.cluster('ADDSLOTSRANGE', bounds[index] as number, (bounds[index + 1] as number) - 1);
      }
      if (index > 0) await server.control.call('CLUSTER', 'MEET', '127.0.0.1', first.port, busPort);
    }
    await until('the cluster is formed', () => this.isHealthy());
    for (const [index, replica] of this.replicas.entries()) {
      const master = this.masters[index] as RedisProcess;
      const id = await master.control.cluster('MYID');
      await until('the replica knows its master', () => replica.control.cluster('REPLICATE', id).catch(() => false));
    }
    for (const replica of this.replicas) {
      await until('the replica follows', async () => (await replica.control.info()).includes('master_link_status:up'));
    }
  }
}

/** Which masters hold the slots, according to one server. */
async function rangesOf(server: RedisProcess | undefined): Promise<SlotRanges> {
  return (await server?.control.call('CLUSTER', 'SLOTS')) as SlotRanges;
}
