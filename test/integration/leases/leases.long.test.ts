import { setTimeout as wait } from 'node:timers/promises';
import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import { keySlot } from '../../../src/sinks/counters/kvstore/slots';
import { RemoteCounters, serveCounters } from '../../../src/workers/counters';
import { integersOf } from '../../support/data/seeded-random';
import { serverStates } from '../../support/data/server-states';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { until } from '../../support/waiting/until';
import { channelPair } from '../../support/workers/channel-pair';
import { connected, instance } from '../kvstore/options';
import { Play, limitOf } from './play';

/** In each test; and how many of them leases decide at least. */
const CALLS = 250_000;
const SAVED = 10_000;
/** How often something happens in that time. */
const ROUNDS = 25;
/** Seconds that keys live after their windows: none of this test ends. */
const LONG = { expirationJitterMaxSeconds: 1e8 };
/** Only ends a test that hangs: a busy machine makes a thousand calls a second. */
const HANGS = 900_000;

const below = integersOf('disturbances');

/** Does something after each part of the calls. */
async function disturbed(play: Play, disturb: (round: number) => Promise<unknown>): Promise<void> {
  const during = (async () => {
    for (let round = 1; round <= ROUNDS; round += 1) {
      await until('some calls are made', () => play.made > (CALLS * round) / (ROUNDS + 1), HANGS);
      await disturb(round);
      if (round % 4 === 0) await play.kill();
    }
  })();
  await play.run(CALLS, SAVED, during);
}

async function stall(server: RedisProcess): Promise<void> {
  server.signal('SIGSTOP');
  await wait(20 + below(280));
  server.signal('SIGCONT');
}

/** No more than the bounds allow has passed, though more was called. */
function expectBounds(play: Play, lacked?: ReadonlyMap<string, number>): void {
  expect(play.beyond(lacked)).toEqual([]);
  // The limits were reached.
  expect(play.denied).toBeGreaterThan(CALLS / 50);
}

describe('no more than the limits pass on instances with leases and without', () => {
  it(
    'that are killed while Redis stalls, with clocks 5 s apart',
    async () => {
      await using redis = await RedisProcess.start();
      const play = new Play({
        instances: 6,
        open: () => connected(instance(redis.address), LONG),
        skews: [0, 2_500, -2_500],
      });
      await disturbed(play, () => stall(redis));
      expectBounds(play);
    },
    HANGS,
  );

  it(
    'while slots with their counters move in a cluster, and its masters stall',
    async () => {
      await using cluster = await RedisCluster.start();
      const play = new Play({ instances: 5, open: () => connected(instance(cluster.url, { type: 'cluster' }), LONG) });
      await disturbed(play, async (round) => {
        const master = cluster.masters[round % 3]!;
        if (round % 2 === 0) return stall(master);
        const keys = (await master.control.keys('*')).toSorted().slice(-10);
        if (keys.length === 0) return;
        const { made } = play;
        await cluster.move(keys.map(keySlot), () => until('calls are made', () => play.made > made + 200));
      });
      expectBounds(play);
    },
    HANGS,
  );

  it(
    'except for what the replica lacked that takes over from a master',
    async () => {
      await using servers = await RedisSentinels.start();
      const main = instance(servers.url, { type: 'sentinel', timeout: 500 });
      const play = new Play({ instances: 5, open: () => connected(main, LONG) });
      let lacked: ReadonlyMap<string, number> = new Map();
      await disturbed(play, async (round) => {
        if (round !== Math.ceil(ROUNDS / 2)) return stall(await servers.currentMaster());
        lacked = await failOver(servers, play);
      });
      // Otherwise it lacked nothing.
      expect([...lacked.values()].some((hits) => hits > 0)).toBe(true);
      expectBounds(play, lacked);
    },
    HANGS,
  );

  it(
    'of workers that lease from the memory of their primary, which stalls',
    async () => {
      const memory = new MemoryCounters({ maxKeys: 100_000, now: Date.now });
      let held: Promise<unknown> = Promise.resolve();
      const play = new Play({
        instances: 4,
        open: async () => {
          const { primary, worker } = channelPair(undefined, () => held);
          serveCounters(primary, memory);
          return new RemoteCounters(worker, { windowSpan: 0, servers: serverStates() });
        },
      });
      await disturbed(play, () => (held = wait(20 + below(280))));
      await memory.close();
      expectBounds(play);
    },
    HANGS,
  );
});

it(
  'at most twice the limit passes where clocks are 5 s apart and keys expire with their windows, as without leases',
  async () => {
    await using redis = await RedisProcess.start();
    const play = new Play({
      instances: 2,
      open: () => connected(instance(redis.address), { expirationJitterMaxSeconds: 0 }),
      skews: [0, 5_000],
      beginnings: 2,
    });
    await play.run(CALLS / 10, SAVED / 10, Promise.resolve());
    expect(play.beyond()).toEqual([]);
  },
  HANGS,
);

const READ_ALL = `
local all = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  all[#all + 1], all[#all + 2] = key, redis.call('GET', key)
end
return all
`;

/** The values in a reply to it, by key. */
function valuesIn(reply: unknown): ReadonlyMap<string, string> {
  const list = reply as string[];
  return new Map(Array.from({ length: list.length / 2 }, (_, pair) => [list[2 * pair]!, list[2 * pair + 1]!]));
}

/**
 * Cuts the replica off, crashes the master some calls later, and waits until the replica has taken over. Returns the
 * hits that it lacked, by the name of the counter.
 */
async function failOver(servers: RedisSentinels, play: Play): Promise<ReadonlyMap<string, number>> {
  const { master, replica } = servers;
  await servers.failOverWhenSilent();
  await master.control.call('ACL', 'SETUSER', 'default', '-psync', '-sync');
  await master.control.call('CLIENT', 'KILL', 'TYPE', 'replica');
  const cutAt = Date.now() * 1000;
  const { made } = play;
  await until('calls are made', () => play.made > made + 500);
  // Nothing is counted between what is read and the crash.
  const replies = await master.control.multi().eval(READ_ALL, 0).call('CLIENT', 'PAUSE', '60000', 'ALL').exec();
  await master.crash();
  const old = valuesIn(replies![0]![1]);
  const taken = valuesIn(await replica.control.eval(READ_ALL, 0));
  await until('the replica is the master', async () => (await servers.currentMaster()) === replica);
  const lacked = new Map<string, number>();
  for (const [key, value] of old) {
    const name = nameOf(key);
    lacked.set(name, (lacked.get(name) ?? 0) + lackedOf(name, [value, taken.get(key) ?? '0'], cutAt));
  }
  return lacked;
}

/** The name of a counter in a {@link Play}. */
function nameOf(key: string): string {
  return (/^{_d_(.+)_}/.exec(key) ?? /^d_(.+)$/.exec(key))![1]!;
}

/** @param cutAt when the replica was cut off, in Unix microseconds */
function lackedOf(name: string, [old, taken]: readonly [string, string], cutAt: number): number {
  const { algorithm, requestsPerUnit, unitMultiplier } = limitOf(name);
  if (algorithm === undefined) return Number(old) - Number(taken);
  if (algorithm === 'token_bucket') {
    const [fullAt, takenFullAt] = [old, taken].map((value) => Number.parseInt(value));
    return Math.max(0, fullAt! - Math.max(takenFullAt!, cutAt)) / ((unitMultiplier * 1e6) / requestsPerUnit);
  }
  const [[window, hits], [takenWindow, takenHits]] = [old, taken].map((value) => {
    return [Math.floor(Number(value) / 2 ** 32), Number(value) % 2 ** 32] as const;
  }) as [readonly [number, number], readonly [number, number]];
  return window === takenWindow ? hits - takenHits : hits;
}
