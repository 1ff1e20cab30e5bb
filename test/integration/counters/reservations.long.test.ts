import { LARGEST_COUNT } from '../../../src/counting/operation';
import { DecisionError } from '../../../src/counting/decision-error';
import type { CommandRunner } from '../../../src/sinks/counters/kvstore/administration';
import type { SendCommand } from '../../../src/sinks/counters/kvstore/commands';
import { kvstoreReservations } from '../../../src/sinks/counters/kvstore/reservations';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { workersOf } from '../../support/processes/worker-processes';
import { until } from '../../support/waiting/until';
import { Shop } from '../../e2e/shop';
import { descriptor, request } from '../../support/data/requests';
import { connected, connectedStore, instance } from '../kvstore/options';
import { Caller, DUE } from './reservation-caller';
import { reservationScenarios } from './reservation-scenarios';

/** A real store of which a share of the steps fails, before the server has it or as its reply is lost. */
class FlappingStore implements CommandRunner {
  failures = 0;

  constructor(
    readonly store: CommandRunner,
    readonly share: number,
  ) {}

  async run<T>(key: string, commands: (send: SendCommand) => Promise<T>): Promise<T> {
    const chance = Math.random();
    const isBefore = chance < this.share / 2;
    if (!isBefore) {
      const result = await this.store.run(key, commands);
      if (chance >= this.share) return result;
    }
    this.failures += 1;
    throw new DecisionError('store_failed', 'a test');
  }
}

/** The calls of a {@link Caller}. */
type Calls = Pick<Caller, 'reserve' | 'settle' | 'cancel'>;

interface Answer {
  readonly error?: { readonly code: string };
  readonly decision?: {
    readonly overallCode: string;
    readonly statuses: readonly { readonly limitRemaining?: number }[];
  };
  readonly state?: string;
  readonly descriptors?: readonly Readonly<Record<'reserved' | 'hits' | 'added', string>>[];
}

/** The same calls to a service over HTTP, on connections that can be lost with a worker. */
class HttpCaller implements Calls {
  failures = 0;

  constructor(readonly shop: Shop) {}

  reserve(id: string, uses: readonly { name: string; hits: number }[], { ttl = 5_000 } = {}): Promise<string> {
    const descriptors = uses.map(({ name, hits }) => ({ entries: [{ key: name, value: 'x' }], hitsAddend: hits }));
    return this.#call('POST', '', { domain: 'd', descriptors, ttl: `${ttl / 1_000}s`, id });
  }

  settle(id: string, hits: number | readonly number[]): Promise<string> {
    return this.#call('POST', `/${id}/settle`, { hits });
  }

  cancel(id: string): Promise<string> {
    return this.#call('DELETE', `/${id}`);
  }

  async #call(method: string, path: string, content?: unknown): Promise<string> {
    const init = content === undefined ? { method } : { method, body: JSON.stringify(content) };
    const answer = await this.shop.weir
      .http(`/v1/reservations${path}`, init)
      .then((response) => response.json() as Promise<Answer>)
      .catch((): Answer => ({ error: { code: 'store_lost' } }));
    const { error, decision, state, descriptors = [] } = answer;
    if (error !== undefined) {
      this.failures += 1;
      return error.code;
    }
    if (decision !== undefined) return `reserved ${decision.overallCode === 'OK'} ${decision.statuses.length}`;
    return `${state} ${descriptors.map(({ reserved, hits, added }) => `${reserved}>${hits}:${added}`).join()}`;
  }
}

function randomOf<T>(values: readonly T[]): T {
  return values[Math.floor(Math.random() * values.length)]!;
}

/** Makes a call again with the same id until it is answered, by the store and a worker. */
function again(call: () => Promise<string>): Promise<string> {
  return until('the call is answered', async () => {
    const answer = await call();
    return !/^(store_|unavailable)/.test(answer) && answer;
  });
}

/**
 * A reservation from its beginning to its end. Resolves with what it leaves counted of the first limit; of the others,
 * that is 0.
 */
async function play(callers: readonly Calls[], id: string): Promise<number> {
  const [tried, quota] = [randomOf([0, 0, 1, 7, 40]), randomOf([0, 3, LARGEST_COUNT - 1, LARGEST_COUNT])];
  const uses = [
    { name: 'tried', hits: tried },
    { name: 'first', hits: quota },
    { name: 'other', hits: 0 },
  ];
  const made = await again(() => randomOf(callers).reserve(id, uses, { ttl: 3_600_000 }));
  expect(made).toMatch(/^reserved true /);
  const used = randomOf([0, 1, 7, 90]);
  if (Math.random() < 0.5 || tried + quota === 0) {
    const cancelled = await again(() => randomOf(callers).cancel(id));
    expect(cancelled).toMatch(/^cancelled /);
    return 0;
  }
  const settled = await again(() => randomOf(callers).settle(id, [used, 0, 0]));
  expect(settled).toMatch(new RegExp(`^settled ${tried}>${used}:${used - tried},`));
  return used;
}

it.each(['single', 'cluster'] as const)(
  'reservations of any number of hits leave what was settled on a store that flaps (%s)',
  async (type) => {
    await using server = type === 'single' ? await RedisProcess.start() : await RedisCluster.start();
    const main = instance(server instanceof RedisCluster ? server.url : server.address, { type });
    const store = await connectedStore(main);
    const flapping = new FlappingStore(store, 0.1);
    function callerOn(runner: CommandRunner): Caller {
      const more = { ...DUE, records: runner, isCluster: type === 'cluster', jitter: 1 };
      return new Caller(kvstoreReservations({ storeOf: () => runner, ...more }), 'long_');
    }
    const callers = [callerOn(flapping), callerOn(flapping), callerOn(flapping)];
    // On a cluster, a reservation that is half made is waited for.
    const rounds = type === 'cluster' ? 8 : 40;
    let expected = 0;
    for (let round = 0; round < rounds; round += 1) {
      const ids = Array.from({ length: 25 }, (_, index) => `r${round}-${index}`);
      for (const tried of await Promise.all(ids.map((id) => play(callers, id)))) expected += tried;
    }
    expect(flapping.failures).toBeGreaterThan(20);
    const counters = ['tried', 'first', 'other'].map((name) => `long_d_${name}_x_1699999980`);
    const counts = await Promise.all(counters.map((key) => store.run(key, (send) => send('GET', key))));
    await store.close();
    expect(counts.map(Number)).toEqual([expected, 0, 0]);
  },
);

const DAYS = `domain: d
descriptors:
  - { key: tried, shadow_mode: true, rate_limit: { unit: year, requests_per_unit: 10 } }
  - { key: first, quota_mode: true, rate_limit: { unit: year, requests_per_unit: 10 } }
  - { key: other, quota_mode: true, rate_limit: { unit: year, requests_per_unit: 20 } }
`;

it.each(['memory', 'Redis'] as const)(
  'reservations of any number of hits leave what was settled while workers are killed, and Redis with its data (%s)',
  async (kind) => {
    // What it has answered survives a kill. With `everysec`, replies may leave before the file is written, when the
    // disk is busy.
    const directives = ['--appendonly', 'yes', '--appendfsync', 'always'];
    await using redis = await RedisProcess.start({ directives });
    const store = kind === 'memory' ? {} : { BACKEND_TYPE: 'kvstore', KVSTORE_URL: redis.address };
    await using shop = await Shop.start({ env: { ...store, WORKERS: '2' } }, DAYS);
    const caller = new HttpCaller(shop);
    let expected = 0;
    for (let round = 0; round < 8; round += 1) {
      let isPlayed = false;
      const ids = Array.from({ length: 100 }, (_, index) => `w${round}-${index}`);
      const played = Promise.all(ids.map((id) => play([caller], id))).finally(() => (isPlayed = true));
      const [victim] = await shop.weir.until('a worker', () => workersOf(shop.weir).length > 0 && workersOf(shop.weir));
      process.kill(victim!.pid, 'SIGKILL');
      if (kind === 'Redis' && !isPlayed) {
        await redis.crash();
        await redis.run();
      }
      for (const tried of await played) expected += tried;
    }
    expect(caller.failures).toBeGreaterThan(8);
    const left = ['tried', 'first', 'other'].map(async (key) => {
      return (JSON.parse(await shop.weir.debug(`/api/counters?domain=d&descriptor=${key}=x`)) as { count: number })
        .count;
    });
    expect(await Promise.all(left)).toEqual([expected, 0, 0]);
  },
);

it.each(['Redis', 'Redis Cluster'] as const)(
  '12,000 reservations whose process has ended are given back exactly by another one (%s)',
  async (kind) => {
    await using server = kind === 'Redis' ? await RedisProcess.start() : await RedisCluster.start();
    const masters = server instanceof RedisCluster ? server.masters : [server];
    const main = server instanceof RedisCluster ? instance(server.url, { type: 'cluster' }) : instance(server.address);
    const [owner, other] = [await connected(main), await connected(main)];
    const reservations = new Caller(owner.reservations, 'p_');
    // On one counter, and on one of its own each.
    async function reserve(made: number): Promise<void> {
      const value = made % 2 === 0 ? 'one' : `v${made}`;
      const call = { request: request('d', [descriptor(`tried=${value}`, { hitsAddend: 3 })]), id: undefined };
      await reservations.reservations.reserve({ ...call, ttl: 20_000, onExpiry: 'cancel' });
    }
    for (let made = 0; made < 12_000; made += 100) {
      await Promise.all(Array.from({ length: 100 }, (_, index) => reserve(made + index)));
    }
    await reservations.reserve('stays', [{ name: 'tried', hits: 5 }]);
    const subscription = other.reservations.freed$!.subscribe();
    async function counted(): Promise<number> {
      let sum = 0;
      // To read them takes the time of this process, too.
      await new Promise((resolve) => setTimeout(resolve, 500));
      for (const { control } of masters) {
        const keys = await control.keys('p_d_tried_*_1699999980');
        for (const count of keys.length === 0 ? [] : await Promise.all(keys.map((key) => control.get(key))))
          sum += Number(count);
      }
      return sum;
    }
    // On a busy machine the first ones have expired before the last ones are made.
    expect(await counted()).toBeGreaterThan(1_000);
    await until('all is back', async () => (await counted()) === 5);
    subscription.unsubscribe();
  },
);

describe('reservations in Redis behind sentinels', () => {
  reservationScenarios('Redis behind sentinels', 50);
});
