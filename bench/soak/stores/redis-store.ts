import { setTimeout as sleep } from 'node:timers/promises';
import { RedisProcess } from '../../../test/support/processes/redis/redis-process';
import type { WeirProcess } from '../../../test/support/processes/weir-process';
import { DURABLE } from '../../suite/processes/stores';
import type { SoakStore } from './soak-store';
import { storedCounts } from './stored-counts';

/** A Redis of its own, with a local cache in the service. It keeps all counters. */
export class RedisStore implements SoakStore {
  readonly #redis: RedisProcess;
  readonly env: Readonly<Record<string, string>>;

  private constructor(redis: RedisProcess) {
    this.#redis = redis;
    this.env = {
      BACKEND_TYPE: 'kvstore',
      KVSTORE_URL: redis.address,
      KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION: 'true',
      LOCAL_CACHE_SIZE_IN_BYTES: String(1_024 * 1_024),
    };
  }

  static async start(): Promise<RedisStore> {
    return new RedisStore(await RedisProcess.start({ directives: DURABLE }));
  }

  readonly restart = async (weir: WeirProcess, away: number): Promise<void> => {
    await this.#redis.crash();
    await weir.until('the service has noticed', async () => !(await weir.http('/healthcheck')).ok);
    await sleep(away);
    await this.#redis.run();
    await weir.until('the service has reached the store again', async () => (await weir.http('/healthcheck')).ok);
  };

  async retire(): Promise<void> {}

  counts(): Promise<ReadonlyMap<number, number>> {
    return storedCounts(this.#redis.control);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#redis[Symbol.asyncDispose]();
  }
}
