import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import { Code } from '../../../src/limiter/verdict';
import { RemoteCounters, serveCounters } from '../../../src/workers/counters';
import type { Counters } from '../../../src/streams/ports/counters';
import type { ReservationStore } from '../../../src/streams/ports/reservations';
import { descriptor } from '../../support/data/requests';
import { serverStates } from '../../support/data/server-states';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { channelPair } from '../../support/workers/channel-pair';
import { connected, instance } from '../kvstore/options';
import { Caller, RULES, STARTS_AT } from './reservation-caller';
import { type Player, playReservations } from './reservation-play';
import { Service } from './rule-scenarios';

export const MODEL_STORES = ['memory', 'memory with two workers', 'Redis', 'Redis Cluster'] as const;

interface Clock {
  now: number;
}

/** A store of a process, on one clock. */
interface Stored {
  readonly counters: Counters;
  readonly reservations: ReservationStore;
}

/** Plays random calls on a store of this kind, which must answer as the model does. */
export async function expectModelOn(kind: (typeof MODEL_STORES)[number], runs: number): Promise<void> {
  const clock = { now: STARTS_AT };
  if (kind === 'memory' || kind === 'memory with two workers') {
    return playReservations(() => playerInMemory(clock, kind === 'memory' ? 0 : 2), { runs });
  }
  await using server = kind === 'Redis' ? await RedisProcess.start() : await RedisCluster.start();
  const main = server instanceof RedisCluster ? instance(server.url, { type: 'cluster' }) : instance(server.address);
  // Two instances of one store.
  const both = await Promise.all([1, 2].map(() => connected(main, { now: () => clock.now * 1000 })));
  const stores = both.map((counters) => ({ counters, reservations: counters.reservations }));
  await playReservations(() => playerOn(clock, stores), { runs, isCluster: kind === 'Redis Cluster' });
}

function playerInMemory(clock: Clock, workers: number): Player {
  const memory = new MemoryCounters({ maxKeys: 10_000, now: () => clock.now });
  const remote = Array.from({ length: workers }, () => {
    const { primary, worker } = channelPair();
    serveCounters(primary, memory);
    return new RemoteCounters(worker, { windowSpan: 0, servers: serverStates() });
  });
  const stores = workers === 0 ? [memory] : remote;
  const player = playerOn(
    clock,
    stores.map((counters) => ({ counters, reservations: counters })),
  );
  return {
    ...player,
    [Symbol.dispose]: () => {
      player[Symbol.dispose]();
      for (const each of [memory, ...remote]) void each.close();
    },
  };
}

let prefixes = 0;

/** @param stores of which each call takes another one */
function playerOn(clock: Clock, stores: readonly Stored[]): Player {
  const prefix = `model${(prefixes += 1)}_`;
  // The beginning of an hour of a day that no other player has.
  clock.now += 10 * 86_400_000;
  clock.now -= clock.now % 3_600_000;
  const callers = stores.map(({ reservations }) => new Caller(reservations, prefix));
  const services = stores.map(
    ({ counters }) => new Service(RULES, counters, { cacheKeyPrefix: prefix }, () => clock.now),
  );
  let calls = 0;
  function next<T>(of: readonly T[]): T {
    return of[(calls += 1) % of.length]!;
  }
  function caller(): Caller {
    const one = next(callers);
    one.now = clock.now;
    return one;
  }
  return {
    reserve: async (id, uses, terms) => (await caller().reserve(id, uses, terms)).replace(/^denied.*/, 'denied'),
    settle: (id, hits) => caller().settle(id, hits),
    cancel: (id) => caller().cancel(id),
    call: async ({ name, hits }) => {
      const { overallCode } = await next(services).decide('d', [descriptor(`${name}=x`, { hitsAddend: hits })]);
      return overallCode === Code.OK ? 'OK' : 'OVER';
    },
    left: async (name) => {
      // What is denied holds nothing, but gives back what has expired.
      const uses = [
        { name: 'closed', hits: 1 },
        { name, hits: 0 },
      ];
      const read = await caller().reserve(`read-${name}`, uses);
      const [, left] = /^denied false 0,(\d+)$/.exec(read) ?? [];
      if (left === undefined) throw new Error(`${name}: ${read}`);
      return Number(left);
    },
    pass: (milliseconds) => Promise.resolve((clock.now += milliseconds)),
    [Symbol.dispose]: () => services.forEach((service) => service[Symbol.dispose]()),
  };
}
