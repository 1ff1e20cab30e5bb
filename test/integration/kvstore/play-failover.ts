import { kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/connections/options';
import { RecordedLog } from '../../support/data/recorded-log';
import type { FaultRow } from './fault-table';
import type { Load } from './load';
import { instance, options } from './options';
import { playFault } from './play-fault';

const CALLERS = 4;

/** Servers that take over from one another; they are shared by the tests of a file. */
export interface Deployment {
  readonly type: Exclude<InstanceOptions['type'], 'single'>;
  readonly url: string;
  /** KVSTORE_TIMEOUT */
  readonly timeout: number;
  readonly stored: (keys: readonly string[]) => Promise<readonly number[]>;
  /** Fewer log lines than this are expected, although a failover loses and opens dozens of connections. */
  readonly maxLogLines: number;
}

/** A fault, and how it ends. */
export interface FaultCourse {
  readonly begin: (load: Load) => unknown;
  readonly end?: (load: Load) => unknown;
  /** Restores the servers for the next test. */
  readonly repair?: () => unknown;
  readonly losesData?: boolean;
}

/** Plays a fault of such servers: see {@link playFault}. */
export async function playFailover(deployment: Deployment, row: FaultRow, course: FaultCourse): Promise<void> {
  const { type, url, timeout, stored, maxLogLines } = deployment;
  const { begin, end, repair, losesData } = course;
  const log = new RecordedLog();
  const counters = kvstoreCounters(options(instance(url, { type, timeout, poolSize: CALLERS }), { log }));
  try {
    await playFault({ row, counters, callers: CALLERS, timeout, begin, end, stored, losesData });
  } finally {
    await repair?.();
  }
  // On a busy machine, a connection that was just opened may time out, which is another outage.
  const outages = log.messages.filter((message) => message.startsWith('connected to')).length;
  expect(log.lines.length).toBeLessThan(maxLogLines * Math.max(1, outages));
}
