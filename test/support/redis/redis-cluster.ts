import { freePorts } from '../free-ports';
import { until } from '../until';
import { RedisProcess, type RedisProcessOptions } from './redis-process';

const SLOTS = 16_384;

export interface RedisClusterOptions extends Omit<RedisProcessOptions, 'mode'> {
  /** 0 or 1 for each master. */
  readonly replicas?: 0 | 1;
  /** Milliseconds after which a node that is silent is taken for gone. */
  readonly nodeTimeout?: number;
  /** Directives for one server, for example under which port it is announced. */
  readonly directivesOf?: (index: number) => readonly string[];
}

/** A real cluster of three masters. */
export class RedisCluster implements AsyncDisposable {
  private constructor(
    readonly masters: readonly RedisProcess[],
    readonly replicas: readonly RedisProcess[],
    private readonly busPorts: readonly number[],
  ) {}

  static async start(options: RedisClusterOptions = {}): Promise<RedisCluster> {
    const { replicas = 0, nodeTimeout = 1000, directives = [], directivesOf = () => [], ...rest } = options;
    const busPorts = await freePorts(6);
    const servers = await Promise.all(
      Array.from({ length: 3 + 3 * replicas }, (_, index) =>
        RedisProcess.start({
          ...rest,
          directives: [
            ...['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeout)],
            ...[
              '--cluster-config-file',
              'nodes.conf',
              '--cluster-port',
              String(busPorts[index]),
              '--repl-diskless-sync-delay',
              '0',
            ],
            ...directives,
            ...directivesOf(index),
          ],
        }),
      ),
    );
    const cluster = new RedisCluster(servers.slice(0, 3), servers.slice(3), busPorts);
    try {
      await cluster.#form();
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
    return cluster;
  }

  get servers(): readonly RedisProcess[] {
    return [...this.masters, ...this.replicas];
  }

  get url(): string {
    return this.masters.map(({ address }) => address).join(',');
  }

  /** The master that holds a slot, as its first server sees it. */
  async ownerOf(slot: number): Promise<RedisProcess> {
    const ranges = (await this.masters[0]?.control.call('CLUSTER', 'SLOTS')) as [number, number, [string, number]][];
    const range = ranges.find(([first, last]) => first <= slot && slot <= last);
    const owner = this.servers.find(({ port }) => port === range?.[2][1]);
    if (owner === undefined) throw new Error(`nobody holds slot ${slot}`);
    return owner;
  }

  /** Whether every server that runs sees all slots held. */
  async isWell(servers = this.servers): Promise<boolean> {
    const states = await Promise.all(servers.map(({ control }) => control.cluster('INFO')));
    return states.every((state) => /cluster_state:ok/.test(state) && /cluster_slots_ok:16384/.test(state));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.servers.map((server) => server[Symbol.asyncDispose]()));
  }

  async #form(): Promise<void> {
    const [first] = this.masters as [RedisProcess, ...RedisProcess[]];
    const bounds = [0, 1, 2, 3].map((part) => Math.floor((SLOTS * part) / 3));
    for (const [index, server] of this.servers.entries()) {
      await server.control.cluster('SET-CONFIG-EPOCH', index + 1);
      if (index < 3) {
        await server.control.cluster('ADDSLOTSRANGE', bounds[index] as number, (bounds[index + 1] as number) - 1);
      }
      if (index > 0) await server.control.call('CLUSTER', 'MEET', '127.0.0.1', first.port, this.busPorts[0] as number);
    }
    await until('the cluster is formed', () => this.isWell());
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
