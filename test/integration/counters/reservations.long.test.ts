import { LARGEST_COUNT } from '../../../src/limiter/counter-operation';
import { DecisionError } from '../../../src/limiter/decision-error';
import { ClusterStore } from '../../../src/sinks/counters/kvstore/cluster-store';
import type { CommandRunner, SendCommand } from '../../../src/sinks/counters/kvstore/commands';
import { readDeployment } from '../../../src/sinks/counters/kvstore/deployment';
import { Instance, type Store } from '../../../src/sinks/counters/kvstore/instance';
import { kvstoreReservations } from '../../../src/sinks/counters/kvstore/reservations';
import { ServerStore } from '../../../src/sinks/counters/kvstore/server-store';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { until } from '../../support/waiting/until';
import { instance, options } from '../kvstore/options';
import { Caller } from './reservation-caller';

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

function randomOf<T>(values: readonly T[]): T {
  return values[Math.floor(Math.random() * values.length)]!;
}

/** Makes a call again with the same id until the store has answered it. */
async function again(call: () => Promise<string>): Promise<string> {
  for (;;) {
    const answer = await call();
    if (!answer.startsWith('store_')) return answer;
  }
}

/** A reservation from its beginning to its end. Resolves with what it leaves counted of the first limit; of the others, that is 0. */
async function play(callers: readonly Caller[], id: string): Promise<number> {
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
    const deployment = readDeployment(main);
    const parts = {
      options: main,
      deployment,
      store: options(main),
      tls: undefined,
      name: 'main',
      poolName: 'redis_pool',
    };
    const { servers } = deployment;
    const store: Store =
      servers.kind === 'cluster'
        ? new ClusterStore(servers.seeds, new Instance(parts))
        : new ServerStore(servers, new Instance(parts));
    let isConnected = false;
    store.connected$.subscribe((state) => (isConnected = state));
    await until('it is connected', () => isConnected);
    const flapping = new FlappingStore(store, 0.1);
    function callerOn(runner: CommandRunner): Caller {
      const more = { records: runner, isCluster: type === 'cluster', jitter: 1 };
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
    store.close();
    expect(counts.map(Number)).toEqual([expected, 0, 0]);
  },
);
