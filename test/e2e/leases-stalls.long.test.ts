import { readFileSync } from 'node:fs';
import { RuleFolder } from '../support/data/rule-folder';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { WeirProcess } from '../support/processes/weir-process';
import { Load } from './shop';
import { Clients, OK, OVER_LIMIT } from './workers/instance';

const RULES = `domain: shop
descriptors:
  - key: busy
    on_store_failure: deny
    rate_limit: { unit: year, requests_per_unit: 1000000000, lease: true }
`;
/**
 * How often Redis is stopped at most until calls pass meanwhile: on a busy machine, what was held may be over before.
 */
const STOPS = 20;

/**
 * Callers of the leased key, and what they got for calls that they began and that were answered while Redis was
 * stopped.
 */
class Callers implements AsyncDisposable {
  readonly codes: Record<number, number> = { [OK]: 0, [OVER_LIMIT]: 0 };
  readonly whileStopped: Record<number, number> = { [OK]: 0, [OVER_LIMIT]: 0 };
  readonly load: Load;
  #stops = 0;
  #isStopped = false;

  private constructor(
    readonly redis: RedisProcess,
    readonly weir: WeirProcess,
    readonly clients: Clients,
  ) {
    let next = 0;
    this.load = new Load(async () => {
      const client = clients.all[(next += 1) % clients.all.length]!;
      const stop = this.#isStopped ? this.#stops : undefined;
      const { overallCode } = await client.shouldRateLimit('shop', ['busy=a']);
      this.codes[overallCode]! += 1;
      if (this.#isStopped && stop === this.#stops) this.whileStopped[overallCode]! += 1;
    }, 16);
  }

  static async of(redis: RedisProcess, weir: WeirProcess): Promise<Callers> {
    const callers = new Callers(redis, weir, await Clients.open(weir, 2));
    await callers.load.more(2_000, weir);
    return callers;
  }

  /** Stops Redis until something is so. */
  async stopUntil(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
    const { redis, weir } = this;
    redis.signal('SIGSTOP');
    await weir.until('Redis to be stopped', () => / T /.test(readFileSync(`/proc/${redis.pid}/stat`, 'latin1')));
    this.#stops += 1;
    this.#isStopped = true;
    try {
      await weir.until(what, isSo);
    } finally {
      this.#isStopped = false;
      redis.signal('SIGCONT');
    }
  }

  /** Whether nothing is held. */
  async areUsedUp(): Promise<boolean> {
    const statistics = await this.weir.statistics();
    const [granted, used, returned, unused] = ['granted', 'used', 'returned', 'unused'].map((name) =>
      statistics.get(`ratelimit.lease.${name}`)!,
    ) as [number, number, number, number];
    return granted === used + returned + unused;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.load[Symbol.asyncDispose]();
    this.clients[Symbol.dispose]();
  }
}

async function storedCount({ control }: RedisProcess): Promise<number> {
  const [key] = await control.keys('*busy_a*');
  return Number(await control.get(key!));
}

it('calls on a leased key pass while Redis is stopped, until what is held is used up, and Redis then has each of them once', async () => {
  await using redis = await RedisProcess.start();
  await using rules = await RuleFolder.with({ 'shop.yaml': RULES });
  const env = { ...rules.env, BACKEND_TYPE: 'redis', REDIS_URL: redis.address, KVSTORE_TIMEOUT: '1h' };
  await using weir = await WeirProcess.start({ env });
  await using callers = await Callers.of(redis, weir);
  for (let stops = 0; stops < STOPS && callers.whileStopped[OK] === 0; stops += 1) {
    await callers.stopUntil('nothing to be held', () => callers.areUsedUp());
    await callers.load.more(1_000, weir);
  }
  await callers.load[Symbol.asyncDispose]();
  expect([callers.load.failures, callers.codes]).toEqual([[], { [OK]: callers.load.answered, [OVER_LIMIT]: 0 }]);
  expect(callers.whileStopped[OK]).toBeGreaterThan(0);
  await weir.until('all to be given back', async () => (await storedCount(redis)) === callers.load.answered);
});

it('calls on a leased key are answered by the policy when Redis is stopped for longer, and by counts when it is back', async () => {
  await using redis = await RedisProcess.start();
  await using rules = await RuleFolder.with({ 'shop.yaml': RULES });
  const env = { ...rules.env, BACKEND_TYPE: 'redis', REDIS_URL: redis.address, STORE_DECISION_TIMEOUT: '1s' };
  await using weir = await WeirProcess.start({ env });
  await using callers = await Callers.of(redis, weir);
  await callers.stopUntil('the policy to answer', () => callers.whileStopped[OVER_LIMIT]! > 100);
  const passed = callers.codes[OK]!;
  await weir.until('calls to pass again', () => callers.codes[OK]! > passed + 1_000);
  await callers.load[Symbol.asyncDispose]();
  expect(callers.load.failures).toEqual([]);
  // What the policy has denied may be counted, too, and so may hits that were granted too late.
  expect(await storedCount(redis)).toBeGreaterThanOrEqual(callers.codes[OK]!);
});
