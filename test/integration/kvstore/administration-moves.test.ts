import { firstValueFrom } from 'rxjs';
import { type KvstoreCounters, kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { keySlot } from '../../../src/sinks/counters/kvstore/stores/cluster/key-slot';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { apply, operation } from '../counters/scenarios';
import { instance, options } from './options';

/** Two counters of one slot. */
const STORED = { key: '{slot}_stored', windowSeconds: 3600 };
const ABSENT = { key: '{slot}_absent', windowSeconds: 3600 };
const SLOT = keySlot(STORED.key);

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await RedisCluster.start();
});
afterAll(() => cluster[Symbol.asyncDispose]());

let counters: KvstoreCounters;
beforeEach(async () => {
  counters = kvstoreCounters(options(instance(cluster.url, { type: 'cluster', timeout: 60_000 })));
  await firstValueFrom(counters.ready$);
  await Promise.all([counters.clearCounter(STORED), counters.clearCounter(ABSENT)]);
  await apply(counters, operation(STORED.key, 5, STORED));
});
afterEach(() => counters.close());

async function counts(): Promise<readonly number[]> {
  const stored = await Promise.all([counters.readCounter(STORED), counters.readCounter(ABSENT)]);
  return stored.map(({ count }) => count);
}

describe('counters whose slot moves to another node', () => {
  it('are read, set and cleared by operators while the slot is moving', async () => {
    await cluster.move([SLOT], async () => {
      expect(await counts()).toEqual([5, 0]);
      // The first node still has the one, the node that imports the slot gets the other.
      expect(await counters.setCounter(STORED, 7)).toMatchObject({ count: 5 });
      expect(await counters.setCounter(ABSENT, 3)).toMatchObject({ count: 0 });
      expect(await counts()).toEqual([7, 3]);
      expect(await apply(counters, operation(ABSENT.key, 1, ABSENT))).toEqual([4]);
      expect(await counters.clearCounter(ABSENT)).toMatchObject({ count: 4 });
    });
    expect(await counts()).toEqual([7, 0]);
  });

  it('are found where they are when the slot has moved', async () => {
    await cluster.move([SLOT], () => Promise.resolve());
    expect(await counters.setCounter(STORED, 9)).toMatchObject({ count: 5 });
    expect(await counts()).toEqual([9, 0]);
    expect(await apply(counters, operation(STORED.key, 1, STORED))).toEqual([10]);
  });
});
