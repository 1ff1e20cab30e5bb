import { kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/connections/options';
import { RecordedLog } from '../../support/data/recorded-log';
import type { FaultRow } from './fault-table';
import type { Load } from './load';
import { instance, options } from './options';
import { playFault } from './play-fault';

const CALLERS = 4;

/** Servers that take over from one another, and go on from one test to the next. */
export interface Deployment {
  readonly type: Exclude<InstanceOptions['type'], 'single'>;
  readonly url: string;
  /** KVSTORE_TIMEOUT */
  readonly timeout: number;
  readonly stored: (keys: readonly string[]) => Promise<readonly number[]>;
  /** A failover loses and makes connections by the dozen; the log tells it in fewer lines than this. */
  readonly logLines: number;
}

export interface Course {
  readonly begin: (load: Load) => unknown;
  readonly end?: (load: Load) => unknown;
  /** Puts the servers in order again for the next test. */
  readonly repair?: () => unknown;
  readonly losesData?: boolean;
}

/** Lets callers go on through a fault of such servers: see {@link playFault}. */
export async function playFailover(deployment: Deployment, row: FaultRow, course: Course): Promise<void> {
  const { type, url, timeout, stored, logLines } = deployment;
  const { begin, end, repair, losesData } = course;
  const log = new RecordedLog();
  const counters = kvstoreCounters(options(instance(url, { type, timeout, poolSize: CALLERS }), { log }));
  try {
    await playFault({ row, counters, callers: CALLERS, timeout, begin, end, stored, losesData });
  } finally {
    await repair?.();
  }
  expect(log.lines.length).toBeLessThan(logLines);
}
