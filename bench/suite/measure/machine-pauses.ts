import { once } from 'node:events';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

/** Pauses up to this many milliseconds are not recorded: reading the clock takes less. */
const THRESHOLD = 0.05;

/** How long programs that could run are stopped by the system, or by the machine under it, in milliseconds. */
export interface MachinePauses {
  /** The wait that 99 % of the calls do not exceed, if each is due at a random time; see {@link waitAt}. */
  readonly p99: number;
  /** The same for 99.9 %. */
  readonly p999: number;
  readonly longest: number;
}

/** Lets a thread for each core do nothing but read the clock for so many milliseconds. */
export async function measurePauses(milliseconds: number): Promise<MachinePauses> {
  const threads = cpus().map(() => pausesOfThread(milliseconds));
  const pauses = (await Promise.all(threads)).flat();
  const time = milliseconds * threads.length;
  return { p99: waitAt(0.99, pauses, time), p999: waitAt(0.999, pauses, time), longest: Math.max(0, ...pauses) };
}

/**
 * The wait that this share of the calls does not exceed, when calls are due at random times within `time`: a call that is due during a
 * pause waits for the rest of it.
 */
export function waitAt(share: number, pauses: readonly number[], time: number): number {
  const exceeded = (1 - share) * time;
  let wait = 0;
  let sum = 0;
  // Each pause longer than the wait contributes what it is longer by; together they have to be what may be exceeded.
  for (const [index, pause] of pauses.toSorted((one, other) => other - one).entries()) {
    sum += pause;
    wait = Math.max(wait, (sum - exceeded) / (index + 1));
  }
  return wait;
}

async function pausesOfThread(milliseconds: number): Promise<readonly number[]> {
  const workerData = { milliseconds, threshold: THRESHOLD };
  const thread = new Worker(join(__dirname, 'pauses-thread.cjs'), { workerData });
  const [pauses] = (await once(thread, 'message')) as [readonly number[]];
  return pauses;
}
