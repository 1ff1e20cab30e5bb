import type { RuleStatistics } from '../statistics/rule-statistics';
import type { AppliedLimit } from './applied-limit';

/**
 * Compares a count with a limit and updates the statistics, which are all in hits, not in calls.
 *
 * @param hits the call's hits, whether they were added or not
 * @param after the count after the call's own hits, or the stored count if they were not added. If it is less than `hits`,
 *   which is possible only when they were not added, the count before is above every threshold, as in the Go service's unsigned
 *   arithmetic.
 * @returns whether the count is over the limit, regardless of shadow mode
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

/** Updates the statistics of a call whose key is over its limit according to the local cache: all its hits are over. */
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
    // The call itself crossed the limit: of the hits up to the limit, those above the threshold were near it.
    over = after - requestsPerUnit;
    statistics.nearLimit += requestsPerUnit - Math.max(nearThreshold, before);
  }
  statistics.overLimit += over;
  if (shadowMode) statistics.shadowMode += over;
}
