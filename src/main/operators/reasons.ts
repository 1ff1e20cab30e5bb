import type { ExplainedRequest } from '../../limiter/explanations/explained-request';
import { isQuota } from '../../limiter/decision';
import { OverallCode } from '../../limiter/overall-code';
import { Code, type Verdict } from '../../limiter/verdict';
import type { ExplainedCounter, ExplainedDescriptor } from '../../streams/ports/operator';

/** Why a descriptor has its status, in one sentence without a full stop. */
export function reasonOf({
  outcome,
  replacedBy,
  counter,
  status,
  isCounted,
}: Pick<ExplainedDescriptor, 'outcome' | 'replacedBy' | 'counter' | 'status'> & {
  /** False if STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT keeps its hits from being counted. */
  readonly isCounted: boolean;
}): string {
  switch (outcome) {
    case 'unknown domain':
      return 'no limit applies, because the rules do not have the domain';
    case 'no entries':
      return 'no limit applies, because the descriptor has no entries';
    case 'no match':
      return 'no limit applies, because no rule matches';
    case 'too deep':
      return 'no limit applies, because the descriptor has more entries than rules are nested';
    case 'no limit':
      return 'no limit applies, because the rule has no rate_limit';
    case 'unlimited':
      return 'the rule is unlimited';
    case 'replaced':
      return `the rule is not applied, because ${replacedBy?.statisticsKey} replaces it`;
    default:
      if (counter === null || status === null) return 'the count cannot be read';
      return isCounted ? reasonOfCount(counter, status.code) : reasonOfRead(counter);
  }
}

function reasonOfRead({ count }: ExplainedCounter): string {
  return `the count would stay ${count}, because another limit is over and STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT is set`;
}

function reasonOfCount(counter: ExplainedCounter, code: 'OK' | 'OVER_LIMIT'): string {
  const { hits, isNegativeHits, isInLocalCache, count, countAfter, requestsPerUnit, shadowMode } = counter;
  if (isNegativeHits) return `${hits} would be subtracted from the count of ${count}, which never is over the limit`;
  const isOver = isInLocalCache || (countAfter ?? 0) > requestsPerUnit;
  const shadow = isOver && shadowMode && code === 'OK' ? ', which shadow mode allows' : '';
  if (isInLocalCache) {
    return `the local cache has the counter as over the limit until LOCAL_CACHE_MAX_AGE has passed or its window ends${shadow}`;
  }
  const counted = `the count would be ${countAfter} after ${hits} ${hits === 1 ? 'hit' : 'hits'}`;
  return `${counted}, ${isOver ? 'over' : 'within'} the limit of ${requestsPerUnit}${shadow}`;
}

/** Why a request has its overall code. */
export function reasonOfAnswer({ options, descriptors }: ExplainedRequest, { overallCode, statuses }: Verdict): string {
  const over = statuses.flatMap(({ code }, index) => (code === Code.OVER_LIMIT ? [index] : []));
  if (over.length === 0) return 'no descriptor is over its limit';
  const [first] = over;
  const isQuotaAt = descriptors.map(({ resolution }) => isQuota(resolution, options));
  const hard = over.find((index) => !isQuotaAt[index]);
  const reason =
    hard === undefined
      ? `descriptor ${(first ?? 0) + 1} is over its quota`
      : `descriptor ${hard + 1} is over its limit`;
  if (overallCode === Code.OVER_LIMIT) return hard === undefined ? 'every quota is used up' : reason;
  const withoutShadow = new OverallCode();
  statuses.forEach(({ code }, index) => withoutShadow.add(code, isQuotaAt[index] === true));
  const isAllowed = withoutShadow.code === Code.OK;
  return isAllowed ? `${reason}, but not every quota is used up` : `${reason}, which SHADOW_MODE allows`;
}
