import { firstValueFrom } from 'rxjs';
import type { KvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { until } from '../../support/waiting/until';
import type { FaultRow } from './fault-table';
import { Load } from './load';

/** What the event loop of a busy machine may add to a timeout. */
const A_LITTLE = 1000;

export interface FaultPlay {
  readonly row: FaultRow;
  readonly counters: KvstoreCounters;
  /** As many as connections, as the pipeline has it. */
  readonly callers: number;
  /** KVSTORE_TIMEOUT */
  readonly timeout: number;
  readonly begin: (load: Load) => unknown;
  readonly end?: ((load: Load) => unknown) | undefined;
  /** What the store holds for these keys, when all is over. */
  readonly stored: (keys: readonly string[]) => Promise<readonly number[]>;
  /** What is stored may be lost with a server; what was not applied twice stays so. */
  readonly losesData?: boolean | undefined;
}

/** Lets callers go on through a fault, and compares what they saw with the row of the table and with the store. */
export async function playFault(play: FaultPlay): Promise<void> {
  const { row, counters, callers, timeout, begin, end, stored, losesData = false } = play;
  const load = new Load(counters);
  try {
    await firstValueFrom(counters.ready$);
    load.start(callers);
    await until('calls pass', () => load.count('OK') > 50);
    await begin(load);
    if (row.callersSee.length > 0) await until('callers notice', () => load.seen.length > 1);
    await end?.(load);
    load.restartStreak();
    await until('calls pass again, all of them', () => load.streak > 300);
    await load.stop();
    expect(['OK', ...row.callersSee]).toEqual(expect.arrayContaining([...load.seen]));
    expect(load.longestWait).toBeLessThan(timeout + A_LITTLE);
    const mistakes = load.mistakes(await stored([...load.keys.keys()]));
    expect(mistakes).toMatchObject({ appliedTwice: [], unexpected: [] });
    if (!losesData) expect(mistakes).toMatchObject({ lost: 0, wrongCounts: 0 });
  } finally {
    await load.stop();
    await counters.close();
  }
}
