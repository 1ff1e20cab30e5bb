import type { Outcome } from '../counting/algorithms/algorithm';
import type { Limit } from '../counting/limit';
import type { RuleStatistics } from '../statistics/rule-statistics';
import type { LimitedDescriptor } from './resolution';

/** Counts the hits of a call in the statistics of its limit, however they are decided; once for each call. */
export function countHits({ isNegative, statistics, callHits, purpose }: LimitedDescriptor): void {
  if (purpose === 'ask') statistics.asks += 1;
  if (isNegative) {
    statistics.totalNegativeHits += callHits;
    return;
  }
  statistics.totalHits += callHits;
  statistics.calls += 1;
}

/**
 * Compares a count with a limit and updates the statistics, which are all in hits, not in calls.
 *
 * @param hits the call's hits, whether they were added or not
 * @param after the count after the call's own hits, or the stored count if they were not added. If it is less than
 *   `hits`, which is possible only when they were not added, the count before is above every threshold, as in the Go
 *   service's unsigned arithmetic.
 * @returns whether the count is over the limit, regardless of shadow mode
 */
export function judge(limit: Limit, hits: number, after: number, statistics: RuleStatistics): boolean {
  const before = after >= hits ? after - hits : Infinity;
  if (after > limit.requestsPerUnit) {
    countOver(limit, hits, before, after, statistics);
    return true;
  }
  countWithin(limit, hits, before, after, statistics);
  return false;
}

/**
 * As {@link judge}, for an ask or a report: of a report that was the first to exceed the limit, the hits up to it are
 * within the limit, and the others over.
 */
export function judgeServed(limited: LimitedDescriptor): boolean {
  const { limit, hits, countAfter, statistics, isOver, purpose } = limited;
  if (purpose === 'ask') {
    if (isOver) statistics.asksDenied += 1;
    return isOver;
  }
  const before = Math.max(0, countAfter - hits);
  const within = isOver ? 0 : Math.min(hits, limit.capacity - before);
  countWithin(limit, within, before, before + within, statistics);
  statistics.overLimit += hits - within;
  if (limit.shadowMode) statistics.shadowMode += hits - within;
  return isOver;
}

/**
 * Whether a limit that was asked, or got a report, denies the next call. A plain one in fixed windows lets calls of 0
 * hits pass until it is exceeded.
 */
export function isUsedUp({ limit, countAfter, outcome }: LimitedDescriptor): boolean {
  if (outcome !== undefined) return outcome.remaining === 0;
  return limit.postpaid ? countAfter >= limit.requestsPerUnit : countAfter > limit.requestsPerUnit;
}

/** Until when a limit that is over denies a single hit, too, in Unix seconds; rounded down. */
export function closedUntil(limit: Limit, outcome: Outcome | undefined, nowSeconds: number): number {
  const isInBlock = outcome?.blockedUntil !== undefined;
  const isFull = outcome === undefined || (limit.isFixedWindow && outcome.remaining === 0 && !isInBlock);
  return isFull ? limit.endOfWindow(nowSeconds) : nowSeconds + outcome.retryAfterSeconds;
}

/** As {@link judge}, for a limit with an algorithm: of a call that is denied, all hits are over the limit. */
export function judgeOutcome(limited: LimitedDescriptor, outcome: Outcome): boolean {
  const { limit, addedHits: hits, callHits, statistics } = limited;
  if (outcome.isAllowed) countWithin(limit, hits, outcome.used - hits, outcome.used, statistics);
  else {
    statistics.overLimit += callHits;
    if (outcome.startsBlock === true) statistics.blocks += 1;
    if (limit.shadowMode) statistics.shadowMode += callHits;
  }
  return !outcome.isAllowed;
}

/** Updates the statistics of a call whose key is over its limit according to the local cache: all its hits are over. */
export function countOverByLocalCache(limit: Limit, hits: number, statistics: RuleStatistics): void {
  statistics.overLimit += hits;
  statistics.overLimitWithLocalCache += hits;
  if (limit.shadowMode) statistics.shadowMode += hits;
}

function countWithin(
  { nearThreshold }: Limit,
  hits: number,
  before: number,
  after: number,
  statistics: RuleStatistics,
): void {
  statistics.withinLimit += hits;
  if (after > nearThreshold) statistics.nearLimit += before >= nearThreshold ? hits : after - nearThreshold;
}

function countOver(
  { requestsPerUnit, nearThreshold, shadowMode }: Limit,
  hits: number,
  before: number,
  after: number,
  statistics: RuleStatistics,
): void {
  let over = hits;
  if (before < requestsPerUnit) {
    // The call itself crossed the limit: of the hits up to the limit, those above the threshold were near it.
    over = after - requestsPerUnit;
    const near = requestsPerUnit - Math.max(nearThreshold, before);
    statistics.nearLimit += near;
    statistics.nearLimitPartial += near;
  }
  statistics.overLimit += over;
  if (shadowMode) statistics.shadowMode += over;
}
