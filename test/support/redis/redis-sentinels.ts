import { until } from '../until';
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
    const start = async (process: RedisProcessOptions): Promise<RedisProcess> => {
      const running = await RedisProcess.start(process);
      started.push(running);
      return running;
    };
    try {
      const common = ['--repl-diskless-sync-delay', '0', ...directives];
      const master = await start({ ...server, directives: [...common, ...directivesOf(0)] });
      const at = masterPort(master);
      const follow = ['--replicaof', '127.0.0.1', String(at)];
      const sentinel = (): Promise<RedisProcess> =>
        start({
          ...sentinelOptions,
          mode: ['--sentinel'],
          configuration: () => [
            `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${at} 2`,
            `sentinel down-after-milliseconds ${MASTER_NAME} ${downAfter}`,
            `sentinel failover-timeout ${MASTER_NAME} 2000`,
            ...sentinelLines,
          ],
        });
      const [replica, ...sentinels] = await Promise.all([
        start({ ...server, directives: [...common, ...follow, ...directivesOf(1)] }),
        sentinel(),
        sentinel(),
        sentinel(),
      ]);
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

  /** Whether the sentinels know each other and a replica that is of use. */
  async isWell(): Promise<boolean> {
    const states = await Promise.all(
      this.sentinels.map(async ({ control }) => {
        const master = (await control.call('SENTINEL', 'MASTER', MASTER_NAME)) as string[];
        const replicas = (await control.call('SENTINEL', 'REPLICAS', MASTER_NAME)) as string[][];
        const of = (fields: readonly string[], name: string): string | undefined => fields[fields.indexOf(name) + 1];
        return (
          of(master, 'flags') === 'master' &&
          of(master, 'num-other-sentinels') === '2' &&
          replicas.some((replica) => of(replica, 'flags') === 'slave' && of(replica, 'master-link-status') === 'ok')
        );
      }),
    );
    return !states.includes(false);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.servers, ...this.sentinels].map((server) => server[Symbol.asyncDispose]()));
  }

  async #settle(): Promise<void> {
    await until('the sentinels know each other and the replica', () => this.isWell());
  }
}
