import type { RuleStatistics } from '../statistics/rule-statistics';
import type { AppliedLimit } from './applied-limit';

/**
 * Holds a count against a limit and moves the statistics of the decision, all of them in hits and not in calls.
 *
 * @param after the count after the call's own hits, or the stored count when they were not added
 * @param hits the call's hits, added or not. A count before them below zero, which only a count that they were not added
 *   to can give, lies beyond every threshold, as in the Go service's unsigned arithmetic.
 * @returns whether the count is over the limit, shadow mode not regarded
 */
export function judge(limit: AppliedLimit, hits: number, after: number, statistics: RuleStatistics): boolean {
  const before = after >= hits ? after - hits : Infinity;
  if (after > limit.requestsPerUnit) {
    countOver(limit, hits, before, after, statistics);
    return true;
  }
  statistics.withinLimit += hits;
  if (after > limit.nearThreshold) {
    statistics.nearLimit += before >= limit.nearThreshold ? hits : after - limit.nearThreshold;
  }
  return false;
}

/** Moves the statistics of a call whose key the local cache knows to be over: all its hits are. */
export function countOverByLocalCache(limit: AppliedLimit, hits: number, statistics: RuleStatistics): void {
  statistics.overLimit += hits;
  statistics.overLimitWithLocalCache += hits;
  if (limit.shadowMode) statistics.shadowMode += hits;
}

function countOver(
  { requestsPerUnit, nearThreshold, shadowMode }: AppliedLimit,
  hits: number,
  before: number,
  after: number,
  statistics: RuleStatistics,
): void {
  let over = hits;
  if (before < requestsPerUnit) {
    // The call itself crossed the limit: the part up to the limit was near it at the most.
    over = after - requestsPerUnit;
    statistics.nearLimit += requestsPerUnit - Math.max(nearThreshold, before);
  }
  statistics.overLimit += over;
  if (shadowMode) statistics.shadowMode += over;
}
