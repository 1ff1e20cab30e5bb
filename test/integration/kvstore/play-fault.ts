import { firstValueFrom } from 'rxjs';
import type { KvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { until } from '../../support/waiting/until';
import type { FaultRow } from './fault-table';
import { Load } from './load';

/** What a busy machine may add to a timeout, in milliseconds. A call that no timeout ends waits for the end of the fault, or longer. */
const TOLERANCE = 30_000;

export interface FaultPlay {
  readonly row: FaultRow;
  readonly counters: KvstoreCounters;
  /** As many as connections: the pipeline has as many windows in flight. */
  readonly callers: number;
  /** KVSTORE_TIMEOUT */
  readonly timeout: number;
  readonly begin: (load: Load) => unknown;
  readonly end?: ((load: Load) => unknown) | undefined;
  /** The counts that the store holds for these keys at the end. */
  readonly stored: (keys: readonly string[]) => Promise<readonly number[]>;
  /** Counts may be lost with a server. No hit may be applied twice even then. */
  readonly losesData?: boolean | undefined;
}

/** Plays a fault under load, and compares the callers' results with the row of the table and with the store. */
export async function playFault(play: FaultPlay): Promise<void> {
  const { row, counters, callers, timeout, begin, end, stored, losesData = false } = play;
  const load = new Load(counters);
  try {
    await firstValueFrom(counters.ready$);
    load.start(callers);
    await until('calls succeed', () => load.count('OK') > 50);
    await begin(load);
    if (row.callersSee.length > 0) await until('calls fail', () => load.seen.length > 1);
    await end?.(load);
    load.restartStreak();
    await until('all calls succeed again', () => load.streak > 300);
    await load.stop();
    // On a busy machine, any call may take longer than the timeout.
    expect(['OK', 'store_timeout', ...row.callersSee]).toEqual(expect.arrayContaining([...load.seen]));
    expect(load.longestWait).toBeLessThan(timeout + TOLERANCE);
    const mistakes = load.mistakes(await stored([...load.keys.keys()]));
    expect(mistakes).toMatchObject({ appliedTwice: [], unexpected: [] });
    if (!losesData) expect(mistakes).toMatchObject({ lost: 0, wrongCounts: 0 });
  } finally {
    await load.stop();
    await counters.close();
  }
}
