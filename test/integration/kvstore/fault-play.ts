import { firstValueFrom } from 'rxjs';
import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/connections/options';
import { type KvstoreCounters, kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { RecordedLog } from '../../support/data/recorded-log';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { FaultProxy } from '../../support/servers/fault-proxy';
import { until } from '../../support/waiting/until';
import type { FaultRow } from './fault-rows';
import { Load, storedCounts } from './load';
import { instance, options } from './options';

/** KVSTORE_POOL_SIZE unless a course has another, and the number of callers: the pipeline has as many windows in flight. */
const CONNECTIONS = 4;
/** What a busy machine may add to a timeout, in milliseconds. A call that no timeout ends waits for the end of the fault, or longer. */
const TOLERANCE = 30_000;

interface FaultPlay {
  readonly row: FaultRow;
  readonly counters: KvstoreCounters;
  readonly callers: number;
  /** KVSTORE_TIMEOUT */
  readonly timeout: number;
  readonly begin: (load: Load) => unknown;
  readonly end: (load: Load) => unknown;
  /** The counts that the store holds for these keys at the end. */
  readonly stored: (keys: readonly string[]) => Promise<readonly number[]>;
  /** Counts may be lost with a server. No hit may be applied twice even then. */
  readonly losesData?: boolean | undefined;
}

/** Plays a fault under load, and compares the callers' results with the row of the table and with the store. */
async function playFault({ row, counters, callers, timeout, ...play }: FaultPlay): Promise<Load> {
  const load = new Load(counters);
  try {
    await firstValueFrom(counters.ready$);
    load.start(callers);
    await until('calls succeed', () => load.count('OK') > 50);
    await play.begin(load);
    if (row.callersSee.length > 0) await until('calls fail', () => load.seen.length > 1);
    await play.end(load);
    load.restartStreak();
    await until('all calls succeed again', () => load.streak > 300);
    await load.stop();
    // On a busy machine, any call may take longer than the timeout.
    expect(['OK', 'store_timeout', ...row.callersSee]).toEqual(expect.arrayContaining([...load.seen]));
    expect(load.longestWait).toBeLessThan(timeout + TOLERANCE);
    const mistakes = load.mistakes(await play.stored([...load.keys.keys()]));
    expect(mistakes).toMatchObject({ appliedTwice: [], unexpected: [] });
    if (play.losesData !== true) expect(mistakes).toMatchObject({ lost: 0, wrongCounts: 0 });
    return load;
  } finally {
    await load.stop();
    await counters.close();
  }
}

/** A running test of a single server. */
export interface Scene {
  readonly server: RedisProcess;
  readonly proxy: FaultProxy;
  readonly load: Load;
  readonly counters: KvstoreCounters;
  readonly log: RecordedLog;
}

/** A fault, and how it ends. */
export interface SingleFaultCourse {
  readonly begin: (scene: Scene) => unknown;
  readonly end?: (scene: Scene) => unknown;
  readonly losesData?: boolean;
  readonly directives?: readonly string[];
  readonly poolSize?: number;
  /** Further expectations, after the recovery. */
  readonly then?: (scene: Scene) => unknown;
}

/** Plays a fault of a single server behind a proxy. @param timeout KVSTORE_TIMEOUT in milliseconds */
export async function playSingleFault(course: SingleFaultCourse, row: FaultRow, timeout: number): Promise<void> {
  await using server = await RedisProcess.start({ directives: course.directives ?? [] });
  await using proxy = await FaultProxy.start(() => server);
  const log = new RecordedLog();
  const { poolSize: callers = CONNECTIONS, begin, end, losesData, then } = course;
  const counters = kvstoreCounters(options(instance(proxy.address, { timeout, poolSize: callers }), { log }));
  const scene = { server, proxy, counters, log };
  const load = await playFault({
    ...{ row, counters, callers, timeout, losesData },
    begin: (running) => begin({ ...scene, load: running }),
    end: (running) => end?.({ ...scene, load: running }),
    stored: (keys) => storedCounts(server.control, keys),
  });
  await then?.({ ...scene, load });
}

/**
 * One line when the store is back, however many connections were lost or tried before it. On a busy machine, a connection that was
 * just opened may time out, which is another outage.
 */
export function expectLinePerOutage({ log }: Scene): void {
  const states = log.messages.flatMap(
    (message) => /(cannot connect|connected) to the counter store/.exec(message)?.[1] ?? [],
  );
  expect([states[0], states.at(-1)]).toEqual(['cannot connect', 'connected']);
  expect(states.join()).not.toMatch(/connected,connected/);
  expect(log.lines.length).toBeLessThan(12 * states.filter((state) => state === 'connected').length);
}

/** A fault of servers that take over from one another, and how it ends. */
export interface FailoverCourse<S> {
  /** Resolves with the server that has the fault. */
  readonly begin: (servers: S, load: Load) => Promise<RedisProcess>;
  readonly end?: (servers: S, faulty: RedisProcess) => unknown;
  /** Restores the servers for the next test. */
  readonly repair?: (servers: S, faulty: RedisProcess) => unknown;
  readonly losesData?: boolean;
}

/** Servers that are shared by the tests of a file. */
export interface FaultyServers<S> {
  readonly servers: S;
  readonly main: Partial<InstanceOptions> & { readonly url: string; readonly timeout: number };
  readonly stored: (keys: readonly string[]) => Promise<readonly number[]>;
  /** Called after each test. */
  readonly repair: (repair: () => unknown) => Promise<unknown>;
  /** Fewer log lines than this are expected, although a failover loses and opens dozens of connections. */
  readonly maxLogLines: number;
}

/** Plays a fault of such servers. */
export async function playFailover<S>(
  course: FailoverCourse<S>,
  row: FaultRow,
  { servers, main, stored, repair, maxLogLines }: FaultyServers<S>,
): Promise<void> {
  const log = new RecordedLog();
  const counters = kvstoreCounters(options(instance(main.url, { ...main, poolSize: CONNECTIONS }), { log }));
  let faulty: RedisProcess | undefined;
  try {
    await playFault({
      ...{ row, counters, callers: CONNECTIONS, timeout: main.timeout, stored, losesData: course.losesData },
      begin: async (load) => {
        faulty = await course.begin(servers, load);
      },
      end: () => course.end?.(servers, faulty!),
    });
  } finally {
    await repair(() => faulty && course.repair?.(servers, faulty));
  }
  // On a busy machine, a connection that was just opened may time out, which is another outage.
  const outages = log.messages.filter((message) => message.startsWith('connected to')).length;
  expect(log.lines.length).toBeLessThan(maxLogLines * Math.max(1, outages));
}
