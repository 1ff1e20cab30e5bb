import { CONDITIONS, type Fault } from '../streams/server-report';
import { QUIET } from '../streams/server-state';
import { type ShownServer, type ShownServers, sumOfRates } from '../streams/server-views';
import { grouped } from '../text/grouped';
import type { WorkerPool } from './pool';

/** The servers of the stores as the workers that run have reported them last. */
export function serversOf(pool: Pick<WorkerPool, 'workers' | 'workers$'>): ShownServers {
  return {
    changed$: pool.workers$,
    get shown() {
      return mergeServers(pool.workers.flatMap(({ servers }) => servers));
    },
  };
}

/**
 * Each server once: in the worst condition that a worker sees, since the first of them saw it, with the requests of
 * all.
 */
export function mergeServers(seen: readonly ShownServer[]): readonly ShownServer[] {
  return Array.from(grouped(seen, ({ store, server }) => `${store} ${server}`).values(), mergeAlike);
}

function mergeAlike(alike: readonly ShownServer[]): ShownServer {
  const worst = alike.reduce((one, other) => (badness(other) > badness(one) ? other : one));
  const since = alike.filter(({ condition }) => condition === worst.condition).map((each) => each.since);
  return {
    ...worst,
    since: Math.min(...since),
    troubleSince: most(alike, 'troubleSince', Math.min),
    isHeldBack: alike.some(({ isHeldBack }) => isHeldBack),
    lastSuccess: most(alike, 'lastSuccess', Math.max),
    lastFault: mergeFaults(alike.flatMap(({ lastFault }) => lastFault ?? [])),
    affected: alike.reduce<number | undefined>(
      (sum, { affected }) => (affected === undefined ? sum : (sum ?? 0) + affected),
      undefined,
    ),
    rates: sumOfRates(alike.map(({ rates }) => rates)),
  };
}

function badness({ condition }: ShownServer): number {
  return CONDITIONS.indexOf(condition);
}

function most(
  alike: readonly ShownServer[],
  date: 'troubleSince' | 'lastSuccess',
  of: (...dates: readonly number[]) => number,
): number | undefined {
  const dates = alike.flatMap((server) => server[date] ?? []);
  return dates.length === 0 ? undefined : of(...dates);
}

/** The last fault, as all workers have seen it. */
function mergeFaults(faults: readonly Fault[]): Fault | undefined {
  const [last, ...others] = faults.toSorted((one, other) => endOf(other) - endOf(one));
  if (last === undefined) return undefined;
  const merged = { ...last };
  for (const { began, milliseconds, calls, isUp } of others) {
    if (began + milliseconds + QUIET <= merged.began) break;
    const end = endOf(merged);
    merged.began = Math.min(began, merged.began);
    merged.milliseconds = end - merged.began;
    merged.calls += calls;
    merged.isUp &&= isUp;
  }
  return merged;
}

function endOf({ began, milliseconds }: Fault): number {
  return began + milliseconds;
}
