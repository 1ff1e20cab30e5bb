import { firstValueFrom } from 'rxjs';
import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/deployment';
import type { KvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { RecordedLog } from '../../support/data/recorded-log';
import type { RedisProcess } from '../../support/processes/redis/redis-process';
import { until } from '../../support/waiting/until';
import type { FaultRow } from './fault-rows';
import { Load } from './load';
import { instance, openKvstore } from './options';

/**
 * KVSTORE_POOL_SIZE unless a course has another, and the number of callers: the pipeline has as many windows in flight.
 */
export const CONNECTIONS = 4;
/**
 * What a busy machine may add to a timeout, in milliseconds. A call that no timeout ends waits for the end of the
 * fault, or longer.
 */
const TOLERANCE = 30_000;

/** A running test. `D` is what its kind of deployment has in addition. */
export type Scene<D> = D & {
  /** The server that has the fault, as a rule. */
  readonly server: RedisProcess;
  readonly load: Load;
  readonly counters: KvstoreCounters;
  readonly log: RecordedLog;
};

type Act<D> = (scene: Scene<D>) => unknown;

/** A fault, and how it ends. */
export interface Course<D> {
  readonly begin: Act<D>;
  readonly end?: Act<D>;
  /** Restores servers that are shared with the next test, also after a failure. */
  readonly repair?: Act<D>;
  /** Further expectations, after the recovery. */
  readonly then?: Act<D>;
  /** Counts may be lost with a server. No hit may be applied twice even then. */
  readonly losesData?: boolean;
  readonly directives?: readonly string[];
  readonly poolSize?: number;
}

export interface Deployment<D> {
  readonly main: Partial<InstanceOptions> & { readonly url: string; readonly timeout: number };
  readonly parts: D & Pick<Scene<D>, 'server'>;
  /** The counts that the store holds for these keys at the end. */
  readonly stored: (keys: readonly string[]) => Promise<readonly number[]>;
}

/** Plays a fault under load, and compares the callers' results with the row of the table and with the store. */
export async function playFault<D>(course: Course<D>, row: FaultRow, deployment: Deployment<D>): Promise<void> {
  const { main, parts, stored } = deployment;
  const { poolSize = CONNECTIONS, losesData = false } = course;
  const log = new RecordedLog();
  const counters = openKvstore(instance(main.url, { ...main, poolSize }), { log });
  const load = new Load(counters);
  const scene: Scene<D> = { ...parts, load, counters, log };
  try {
    await firstValueFrom(counters.ready$);
    load.start(poolSize);
    await until('calls succeed', () => load.count('OK') > 50);
    await course.begin(scene);
    if (row.callersSee.length > 0) await until('calls fail', () => load.seen.length > 1);
    await course.end?.(scene);
    await load.recovers(300);
    // On a busy machine, any call may take longer than the timeout.
    expect(['OK', 'store_timeout', ...row.callersSee]).toEqual(expect.arrayContaining([...load.seen]));
    expect(load.longestWait).toBeLessThan(main.timeout + TOLERANCE);
    const mistakes = load.mistakes(await stored([...load.keys.keys()]));
    expect(mistakes).toMatchObject({
      appliedTwice: [],
      unexpected: [],
      ...(!losesData && { lost: 0, wrongCounts: 0 }),
    });
  } finally {
    await load.stop();
    await counters.close();
    await course.repair?.(scene);
  }
  await course.then?.(scene);
}

/**
 * One line when the store is back, however many connections were lost or tried before it. On a busy machine, a
 * connection that was just opened may time out, which is another outage.
 */
export function expectLinePerOutage({ log }: { readonly log: RecordedLog }): void {
  const states = log.messages.flatMap(
    (message) => /(cannot connect|connected) to the counter store/.exec(message)?.[1] ?? [],
  );
  expect([states[0], states.at(-1)]).toEqual(['cannot connect', 'connected']);
  expect(states.join()).not.toMatch(/connected,connected/);
  expectFewLines({ log }, 12);
}

/** Fewer log lines than this for each outage, although a failover loses and opens dozens of connections. */
export function expectFewLines({ log }: { readonly log: RecordedLog }, most: number): void {
  const outages = log.messages.filter((message) => message.startsWith('connected to')).length;
  expect(log.lines.length).toBeLessThan(most * Math.max(1, outages));
}
