import type { Offender, OffenderSummary } from './offender';

type Listed = OffenderSummary['offenders'][number];

/**
 * Merges what several sketches have counted of parts of the calls: of periods, or of processes. The result has the guarantees of one
 * sketch that counted all of them: `limited` is never too low, and too high by at most `error`.
 *
 * @param capacity how many offenders the result lists at most
 */
export function mergeOffenders(summaries: readonly OffenderSummary[], capacity: number): OffenderSummary {
  const merged = new Map<string, Listed>();
  const floor = summaries.reduce((sum, summary) => sum + summary.floor, 0);
  for (const summary of summaries) {
    for (const offender of summary.offenders) {
      const known = merged.get(offender.key);
      // A summary that does not list an offender may have counted up to its floor; that of this one is known exactly.
      const { limited, error } = known ?? { limited: floor, error: floor };
      merged.set(offender.key, {
        ...offender,
        limited: limited - summary.floor + offender.limited,
        error: error - summary.floor + offender.error,
      });
    }
  }
  const sorted = [...merged.values()].sort(byLimited);
  return {
    since: summaries.reduce((earliest, { since }) => Math.min(earliest, since), Infinity),
    floor: Math.max(floor, sorted[capacity]?.limited ?? 0),
    offenders: sorted.slice(0, capacity),
  };
}

/** Those with the most limited calls first; equal ones in a fixed order. */
function byLimited(one: Offender & { readonly key: string }, other: typeof one): number {
  return other.limited - one.limited || (one.key < other.key ? -1 : 1);
}
