import { type KvstoreCounters, kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { RecordedLog } from '../../support/data/recorded-log';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { FaultProxy } from '../../support/servers/fault-proxy';
import type { FaultRow } from './fault-table';
import type { Load } from './load';
import { instance, options } from './options';
import { playFault } from './play-fault';
import { storedCounts } from './stored-counts';

/** KVSTORE_TIMEOUT in milliseconds, for faults that end with it. */
const TIMEOUT = 300;

/** A running fault test. */
export interface Scene {
  readonly server: RedisProcess;
  readonly proxy: FaultProxy;
  readonly load: Load;
  readonly counters: KvstoreCounters;
  readonly log: RecordedLog;
}

/** A fault, and how it ends. */
export interface SingleFaultCourse {
  /** Begins the fault. */
  readonly begin: (scene: Scene) => unknown;
  /** Ends it. */
  readonly end?: (scene: Scene) => unknown;
  /** Counts may be lost with the server. No hit may be applied twice even then. */
  readonly losesData?: boolean;
  readonly directives?: readonly string[];
  readonly poolSize?: number;
  /** KVSTORE_TIMEOUT in milliseconds. */
  readonly timeout?: number;
  /** Further expectations, after the recovery. */
  readonly then?: (scene: Scene) => unknown;
}

/** Plays a fault of a single server behind a proxy: see {@link playFault}. */
export async function playSingleFault(row: FaultRow, course: SingleFaultCourse): Promise<void> {
  await using server = await RedisProcess.start({ directives: course.directives ?? [] });
  await using proxy = await FaultProxy.start(() => server);
  const log = new RecordedLog();
  const { poolSize: callers = 4, timeout = TIMEOUT } = course;
  const counters = kvstoreCounters(options(instance(proxy.address, { timeout, poolSize: callers }), { log }));
  const scene = { server, proxy, counters, log };
  const { begin, end, losesData } = course;
  let seen: Load | undefined;
  await playFault({
    row,
    counters,
    callers,
    timeout,
    begin: (load) => begin({ ...scene, load: (seen = load) }),
    end: (load) => end?.({ ...scene, load }),
    stored: (keys) => storedCounts(server.control, keys),
    losesData,
  });
  if (seen !== undefined) await course.then?.({ ...scene, load: seen });
}

/**
 * One line when the store is back, however many connections were lost or tried before it. On a busy machine, a connection that was
 * just opened may time out, which is another outage.
 */
export function expectLinePerOutage({ log }: Scene): void {
  const states = log.messages.flatMap(
    (message) => /(cannot connect|connected) to the counter store/.exec(message)?.[1] ?? [],
  );
  expect(states[0]).toBe('cannot connect');
  expect(states.at(-1)).toBe('connected');
  expect(states.join()).not.toMatch(/connected,connected/);
  expect(log.lines.length).toBeLessThan(12 * states.filter((state) => state === 'connected').length);
}
