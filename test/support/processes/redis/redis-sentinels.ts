import { until } from '../../waiting/until';
import { RedisProcess, type RedisProcessOptions } from './redis-process';

const MASTER_NAME = 'counters';
/**
 * Milliseconds without an answer after which sentinels consider the master down, for a failover that a test waits for.
 */
const DOWN_AFTER = 500;
/** Milliseconds that no master is silent for: one that waits for a busy machine is not taken for down. The default. */
const NEVER = 600_000;

interface RedisSentinelsOptions extends Omit<RedisProcessOptions, 'mode'> {
  /** Lines of the sentinels' configuration. */
  readonly sentinelLines?: readonly string[];
  readonly sentinelOptions?: Omit<RedisProcessOptions, 'mode' | 'configuration'>;
  /** The port that the sentinels connect to for the master; default: its own. */
  readonly masterPort?: (master: RedisProcess) => number;
}

/** A real master with one replica, and three sentinels that monitor them. */
export class RedisSentinels implements AsyncDisposable {
  private constructor(
    readonly master: RedisProcess,
    readonly replica: RedisProcess,
    readonly sentinels: readonly RedisProcess[],
  ) {}

  static async start(options: RedisSentinelsOptions = {}): Promise<RedisSentinels> {
    const { directives = [], sentinelLines = [], masterPort, sentinelOptions, ...server } = options;
    const started: RedisProcess[] = [];
    async function start(process: RedisProcessOptions): Promise<RedisProcess> {
      const running = await RedisProcess.start(process);
      started.push(running);
      return running;
    }
    try {
      const common = ['--repl-diskless-sync-delay', '0', ...directives];
      const master = await start({ ...server, directives: common });
      const monitoredPort = masterPort?.(master) ?? master.port;
      const follow = ['--replicaof', '127.0.0.1', String(monitoredPort)];
      function sentinel(): Promise<RedisProcess> {
        return start({
          ...sentinelOptions,
          mode: ['--sentinel'],
          configuration: () => [
            `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${monitoredPort} 2`,
            `sentinel down-after-milliseconds ${MASTER_NAME} ${NEVER}`,
            `sentinel failover-timeout ${MASTER_NAME} 2000`,
            ...sentinelLines,
          ],
        });
      }
      const replica = await start({ ...server, directives: [...common, ...follow] });
      await until('the replica follows', () => isFollowed(master));
      // Sentinels look for replicas when they start and then every ten seconds, so the replica has to follow before.
      const sentinels = await Promise.all([sentinel(), sentinel(), sentinel()]);
      const deployment = new RedisSentinels(master, replica, sentinels);
      await deployment.#settle();
      return deployment;
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

  /** From now on, the sentinels promote the replica soon after the master does not answer. */
  failOverWhenSilent(): Promise<void> {
    return this.#considerDownAfter(DOWN_AFTER);
  }

  /** From now on, a master that does not answer stays the master. */
  neverFailOver(): Promise<void> {
    return this.#considerDownAfter(NEVER);
  }

  async #considerDownAfter(milliseconds: number): Promise<void> {
    const change = ['SET', MASTER_NAME, 'down-after-milliseconds', milliseconds] as const;
    await Promise.all(this.sentinels.map(({ control }) => control.call('SENTINEL', ...change)));
  }

  /** The port of the current master, according to the first sentinel. */
  async masterPort(): Promise<number> {
    const reply = await this.sentinels[0]?.control.call('SENTINEL', 'get-master-addr-by-name', MASTER_NAME);
    return Number((reply as [string, string])[1]);
  }

  async failOver(): Promise<void> {
    const before = await this.masterPort();
    await until('a failover begins', () =>
      this.sentinels[0]?.control.call('SENTINEL', 'FAILOVER', MASTER_NAME).then(Boolean, () => false),
    );
    await until('the master has changed', async () => (await this.masterPort()) !== before);
  }

  /** The current master. */
  async currentMaster(): Promise<RedisProcess> {
    const port = await this.masterPort();
    const server = this.servers.find((each) => each.port === port);
    if (server === undefined) throw new Error(`no server listens on ${port}`);
    return server;
  }

  /** Makes the other server a replica of the current master; the sentinels would take ten seconds to do so. */
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

/** A value of a list in which names and values alternate. */
function fieldOf(fields: readonly string[], name: string): string | undefined {
  return fields[fields.indexOf(name) + 1];
}
