import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { RedisProcess } from '../../test/support/processes/redis/redis-process';
import type { WeirProcess } from '../../test/support/processes/weir-process';
import { DURABLE } from '../suite/processes/stores';
import { DOMAIN, type Settings } from '../suite/scenarios/loads';
import { valueText } from '../suite/scenarios/messages';
import { COUNTED } from './model';
import type { SoakSetup } from './report';

/** A store of a soak, seen from outside of the service. */
export interface SoakStore extends AsyncDisposable {
  /** Settings of a service that uses it. */
  readonly env: Settings;
  /**
   * Kills it, and resolves when the service has reached it again. Undefined for a store that is part of the service.
   *
   * @param away milliseconds between its end and its start
   */
  readonly restart: ((weir: WeirProcess, away: number) => Promise<void>) | undefined;
  /**
   * Is called while no call is in flight, at least once in two generations. The values below this one are not called
   * any more.
   */
  retire(weir: WeirProcess, below: number): Promise<void>;
  /** The counts of all values below this one, also of those that have been retired, by value. */
  counts(weir: WeirProcess, below: number): Promise<ReadonlyMap<number, number>>;
}

/** @param values those of each generation */
export async function startSoakStore(store: SoakSetup['store'], values: number): Promise<SoakStore> {
  return store === 'redis' ? RedisStore.start() : new MemoryStore(values);
}

/** How many generations of values have room. The keys of the oldest ones are evicted when the next one is called. */
const GENERATIONS = 5;
const KEYS_PER_VALUE = 2;
/** Requests to the operators' API in flight. */
const CONCURRENT = 20;

/**
 * The memory of the service, which is always full. Counters are read through the operators' API, before they are
 * evicted.
 */
class MemoryStore implements SoakStore {
  readonly env: Settings;
  readonly restart = undefined;
  readonly #counts = new Map<number, number>();
  /** The first value whose counter has not been read. */
  #next = 0;

  /** @param values those of each generation */
  constructor(values: number) {
    this.env = { BACKEND_TYPE: 'memory', MEMORY_MAX_KEYS: String(GENERATIONS * KEYS_PER_VALUE * values) };
  }

  async retire(weir: WeirProcess, below: number): Promise<void> {
    const readNext = async (): Promise<void> => {
      while (this.#next < below) {
        const value = this.#next;
        this.#next += 1;
        this.#counts.set(value, await counterOf(weir, value));
      }
    };
    await Promise.all(Array.from({ length: CONCURRENT }, readNext));
  }

  async counts(weir: WeirProcess, below: number): Promise<ReadonlyMap<number, number>> {
    await this.retire(weir, below);
    return this.#counts;
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

async function counterOf(weir: WeirProcess, value: number): Promise<number> {
  const path = `/api/counters?domain=${DOMAIN}&descriptor=${COUNTED}=${valueText(value)}`;
  const response = await fetch(`http://127.0.0.1:${weir.ports.debug}${path}`);
  if (!response.ok) throw new Error(`GET ${path}: ${response.status} ${await response.text()}`);
  return ((await response.json()) as { readonly count: number }).count;
}

/** A Redis of its own, with a local cache in the service. It keeps all counters. */
class RedisStore implements SoakStore {
  readonly #redis: RedisProcess;
  readonly env: Settings;

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
    const held = /^ratelimit\.store\.breaker_open\S*: 1$/m;
    await weir.until('calls are sent to the store again', async () => !held.test(await weir.debug('/stats')));
  };

  async retire(): Promise<void> {}

  counts(): Promise<ReadonlyMap<number, number>> {
    return storedCounts(this.#redis.control);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#redis[Symbol.asyncDispose]();
  }
}

const BATCH = 10_000;

/** The counts of the values in the store, by value. */
async function storedCounts(control: Redis): Promise<ReadonlyMap<number, number>> {
  const counts = new Map<number, number>();
  let cursor = '0';
  do {
    const [next, keys] = await control.scan(cursor, 'MATCH', `*_${COUNTED}_v-*`, 'COUNT', BATCH);
    cursor = next;
    if (keys.length === 0) continue;
    const values = await control.mget(keys);
    for (const [index, key] of keys.entries()) {
      const value = Number(/_v-(\d+)_/.exec(key)?.[1]);
      // SCAN may return a key twice.
      counts.set(value, Number(values[index]));
    }
  } while (cursor !== '0');
  return counts;
}
