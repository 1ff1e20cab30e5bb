import { until } from '../../waiting/until';
import { RedisProcess, type RedisProcessOptions } from './redis-process';

export const MASTER_NAME = 'counters';

export interface RedisSentinelsOptions extends Omit<RedisProcessOptions, 'mode'> {
  /** Milliseconds after which sentinels take a silent master for gone. */
  readonly downAfter?: number;
  /** Directives of the servers, not of the sentinels; by index, the first is the master. */
  readonly directivesOf?: (index: number) => readonly string[];
  /** Lines of the sentinels' configuration. */
  readonly sentinelLines?: readonly string[];
  readonly sentinelOptions?: Omit<RedisProcessOptions, 'mode' | 'configuration'>;
  /** Where the sentinels find the master, when not at its own port. */
  readonly masterPort?: (master: RedisProcess) => number;
}

/** A real master with one replica, and three sentinels that watch them. */
export class RedisSentinels implements AsyncDisposable {
  private constructor(
    readonly master: RedisProcess,
    readonly replica: RedisProcess,
    readonly sentinels: readonly RedisProcess[],
  ) {}

  static async start(options: RedisSentinelsOptions = {}): Promise<RedisSentinels> {
    const { downAfter = 500, directives = [], directivesOf = () => [], sentinelLines = [], ...rest } = options;
    const { masterPort = ({ port }: RedisProcess) => port, sentinelOptions = {}, ...server } = rest;
    const started: RedisProcess[] = [];
    async function start(process: RedisProcessOptions): Promise<RedisProcess> {
      const running = await RedisProcess.start(process);
      started.push(running);
      return running;
    }
    try {
      const common = ['--repl-diskless-sync-delay', '0', ...directives];
      const master = await start({ ...server, directives: [...common, ...directivesOf(0)] });
      const at = masterPort(master);
      const follow = ['--replicaof', '127.0.0.1', String(at)];
      function sentinel(): Promise<RedisProcess> {
        return start({
          ...sentinelOptions,
          mode: ['--sentinel'],
          configuration: () => [
            `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${at} 2`,
            `sentinel down-after-milliseconds ${MASTER_NAME} ${downAfter}`,
            `sentinel failover-timeout ${MASTER_NAME} 2000`,
            ...sentinelLines,
          ],
        });
      }
      const replica = await start({ ...server, directives: [...common, ...follow, ...directivesOf(1)] });
      await until('the replica follows', () => isFollowed(master));
      // They look at once and then every ten seconds: what they are to find has to be there.
      const sentinels = await Promise.all([sentinel(), sentinel(), sentinel()]);
      const made = new RedisSentinels(master, replica, sentinels);
      await made.#settle();
      return made;
    } catch (error) {
      await Promise.all(started.map((process) => process[Symbol.asyncDispose]()));
      throw error;
    }
  }

  get url(): string {
    return [MASTER_NAME, ...this.sentinels.map(({ address }) => address)].join(',');
  }

  get servers(): readonly RedisProcess[] {
    return [this.master, this.replica];
  }

  /** The port of the master of the moment, as the first sentinel has it. */
  async masterPort(): Promise<number> {
    const reply = await this.sentinels[0]?.control.call('SENTINEL', 'get-master-addr-by-name', MASTER_NAME);
    return Number((reply as [string, string])[1]);
  }

  async failOver(): Promise<void> {
    const before = await this.masterPort();
    await until('a failover begins', () =>
      this.sentinels[0]?.control.call('SENTINEL', 'FAILOVER', MASTER_NAME).then(
        () => true,
        () => false,
      ),
    );
    await until('the master has changed', async () => (await this.masterPort()) !== before);
  }

  /** The server that is the master of the moment. */
  async currentMaster(): Promise<RedisProcess> {
    const port = await this.masterPort();
    const server = this.servers.find((each) => each.port === port);
    if (server === undefined) throw new Error(`no server listens on ${port}`);
    return server;
  }

  /** Makes the other server follow the master of the moment; the sentinels would take ten seconds to. */
  async rejoin(): Promise<void> {
    await until('the sentinels agree', () => this.#agree());
    const master = await this.currentMaster();
    for (const server of this.servers) {
      if (server !== master) await server.control.call('REPLICAOF', '127.0.0.1', master.port);
    }
    await until('the replica follows', () => isFollowed(master));
  }

  async #agree(): Promise<boolean> {
    const states = await Promise.all(
      this.sentinels.map(async ({ control }) => {
        const master = (await control.call('SENTINEL', 'MASTER', MASTER_NAME)) as string[];
        return [fieldOf(master, 'flags'), fieldOf(master, 'num-other-sentinels'), fieldOf(master, 'port')].join();
      }),
    );
    return new Set(states).size === 1 && /^master,2,/.test(states[0] as string);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.servers, ...this.sentinels].map((server) => server[Symbol.asyncDispose]()));
  }

  async #settle(): Promise<void> {
    await until('the sentinels know each other', () => this.#agree());
    await until('the sentinels know the replica', async () => {
      const known = await Promise.all(
        this.sentinels.map(({ control }) => control.call('SENTINEL', 'REPLICAS', MASTER_NAME) as Promise<string[][]>),
      );
      return known.every((replicas) => replicas.length === 1);
    });
  }
}

async function isFollowed({ control }: RedisProcess): Promise<boolean> {
  return /slave0:.*state=online/.test(await control.info('replication'));
}

/** Of a list of names and values in turn. */
function fieldOf(fields: readonly string[], name: string): string | undefined {
  return fields[fields.indexOf(name) + 1];
}
