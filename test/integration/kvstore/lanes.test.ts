import { setTimeout as wait } from 'node:timers/promises';
import { firstValueFrom } from 'rxjs';
import type { DecisionError } from '../../../src/limiter/decision-error';
import { type KvstoreCounters, kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/connections/options';
import { keySlot } from '../../../src/sinks/counters/kvstore/stores/cluster/key-slot';
import { LaneClient } from '../../support/clients/lane-client';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { until } from '../../support/waiting/until';
import { operation } from '../counters/scenarios';
import { instance, options } from './options';

const opened: KvstoreCounters[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((counters) => counters.close()));
});

async function open(main: InstanceOptions, perSecond?: InstanceOptions): Promise<KvstoreCounters> {
  const counters = kvstoreCounters(options(main, { perSecond }));
  opened.push(counters);
  await firstValueFrom(counters.ready$);
  return counters;
}

/** What became of a call, in the order in which calls end. */
class Outcomes {
  readonly ended: string[] = [];
  readonly #calls: Promise<void>[] = [];

  add(name: string, call: Promise<readonly number[]>): void {
    this.#calls.push(
      call.then(
        () => void this.ended.push(`${name}: OK`),
        ({ code }: DecisionError) => void this.ended.push(`${name}: ${code}`),
      ),
    );
  }

  get done(): Promise<unknown> {
    return Promise.all(this.#calls);
  }
}

describe('a per-second instance that hangs', () => {
  let main: RedisProcess;
  let perSecond: RedisProcess;
  beforeAll(async () => {
    [main, perSecond] = await Promise.all([RedisProcess.start(), RedisProcess.start()]);
  });
  afterEach(() => perSecond.signal('SIGCONT'));
  afterAll(() => Promise.all([main[Symbol.asyncDispose](), perSecond[Symbol.asyncDispose]()]));

  it('does not hold up a call of the main instance', async () => {
    const counters = await open(instance(main.address), instance(perSecond.address));
    using client = new LaneClient(counters);
    const outcomes = new Outcomes();
    perSecond.signal('SIGSTOP');
    for (let call = 0; call < 100; call += 1) {
      if (call % 10 === 0) outcomes.add('per second', client.call([operation('s', 1, { windowSeconds: 1 })]));
      outcomes.add('main', client.call([operation('m', 1)]));
      await wait(1);
    }
    await until('the main calls have ended', () => outcomes.ended.length >= 100);
    expect(outcomes.ended.slice(0, 100)).toEqual(Array.from({ length: 100 }, () => 'main: OK'));
    perSecond.signal('SIGCONT');
    await outcomes.done;
  });

  it('fails its own calls only, by its own pool policy', async () => {
    const counters = await open(
      instance(main.address, { poolOnEmptyBehavior: 'WAIT', poolSize: 1 }),
      instance(perSecond.address, {
        timeout: 5_000,
        poolOnEmptyBehavior: 'ERROR',
        poolOnEmptyWaitDuration: 200,
        poolSize: 1,
      }),
    );
    using client = new LaneClient(counters);
    const outcomes = new Outcomes();
    perSecond.signal('SIGSTOP');
    outcomes.add('first', client.call([operation('s', 1, { windowSeconds: 1 })]));
    await wait(5);
    outcomes.add('second', client.call([operation('s', 1, { windowSeconds: 1 })]));
    outcomes.add('main', client.call([operation('m', 1)]));
    await outcomes.done;
    expect(outcomes.ended.toSorted()).toEqual(['first: store_timeout', 'main: OK', 'second: store_pool_empty']);
    expect(outcomes.ended.at(-1)).toBe('first: store_timeout');
  });

  it('has its own pipeline window', async () => {
    const counters = await open(instance(main.address), instance(perSecond.address, { pipelineWindow: 200 }));
    using client = new LaneClient(counters);
    const before = Number(/total_commands_processed:(\d+)/.exec(await perSecond.control.info())?.[1]);
    const calls = Array.from({ length: 20 }, async (_, index) => {
      await wait(index);
      return client.call([operation('w', 1, { windowSeconds: 1 })]);
    });
    await Promise.all(calls);
    const after = Number(/total_commands_processed:(\d+)/.exec(await perSecond.control.info())?.[1]);
    // One window: its script call, the INFO itself, and what loads the script; 20 windows would be 20 calls at least.
    expect(after - before).toBeLessThan(15);
  });

  it('fails a call of both instances without holding up others', async () => {
    const counters = await open(instance(main.address), instance(perSecond.address, { timeout: 5_000 }));
    using client = new LaneClient(counters);
    const outcomes = new Outcomes();
    perSecond.signal('SIGSTOP');
    outcomes.add('both', client.call([operation('b', 1), operation('b', 1, { windowSeconds: 1 })]));
    outcomes.add('main', client.call([operation('m', 1)]));
    await outcomes.done;
    expect(outcomes.ended).toEqual(['main: OK', 'both: store_timeout']);
  });
});

describe('a node of a cluster that hangs', () => {
  let cluster: RedisCluster;
  let stopped: RedisProcess;
  beforeAll(async () => {
    cluster = await RedisCluster.start();
    stopped = cluster.servers[0] as RedisProcess;
  });
  afterEach(() => stopped.signal('SIGCONT'));
  afterAll(() => cluster[Symbol.asyncDispose]());

  it.each([0, 1, 2])('does not hold up the keys of other nodes, with parallelism %i', async (parallelism) => {
    const counters = await open(
      instance(cluster.url, { type: 'cluster', timeout: 5_000, clusterPipelineParallelism: parallelism }),
    );
    using client = new LaneClient(counters);
    const keys = Array.from({ length: 30 }, (_, index) => `hangs_${parallelism}_${index}`);
    const owners = await Promise.all(keys.map((key) => cluster.ownerOf(keySlot(key))));
    const elsewhere = owners.filter((owner) => owner !== stopped).length;
    const outcomes = new Outcomes();
    stopped.signal('SIGSTOP');
    keys.forEach((key, index) =>
      outcomes.add(owners[index] === stopped ? 'on it' : 'elsewhere', client.call([operation(key, 1)])),
    );
    await outcomes.done;
    expect(outcomes.ended).toEqual([
      ...Array.from({ length: elsewhere }, () => 'elsewhere: OK'),
      ...Array.from({ length: 30 - elsewhere }, () => 'on it: store_timeout'),
    ]);
    expect(elsewhere).toBeGreaterThan(0);
    expect(elsewhere).toBeLessThan(30);
  });
});

describe('KVSTORE_CLUSTER_PIPELINE_PARALLELISM', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.start();
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  it.each([
    [0, 4, 4],
    [1, 4, 1],
    [2, 4, 2],
    [3, 2, 2],
    [9, 4, 4],
  ])('of %i with a pool of %i sends a call to %i nodes at a time at most', async (parallelism, poolSize, expected) => {
    const counters = await open(
      instance(cluster.url, { type: 'cluster', poolSize, clusterPipelineParallelism: parallelism }),
    );
    expect(counters.laneOf(operation('k', 1)).instance.lanesAtOnce).toBe(expected);
    using client = new LaneClient(counters);
    const batch = Array.from({ length: 12 }, (_, index) => operation(`width_${parallelism}_${poolSize}_${index}`, 1));
    expect(await client.call(batch)).toEqual(batch.map(() => 1));
  });
});
