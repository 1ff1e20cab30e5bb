import type { DecisionError } from '../counting/decision-error';
import { isQuota } from '../limiter/decision';
import type { LimitedDescriptor } from '../limiter/resolution';
import type { Trial } from '../limiter/trial';
import { Code, OverallCode, type Verdict } from '../limiter/verdict';
import type { FailurePolicy, RulePlace } from '../rules/rule-config';
import { activeText, activityText, blockText, calendarText, durationText, rateText } from '../rules/unit';
import { counted } from '../text/counted';
import { visibleLines } from '../text/visible';
import type {
  EnforcementModes,
  ExplainedCounter,
  ExplainedDescriptor,
  ExplainedStep,
  Explanation,
  ListedLimit,
  RuleReference,
} from './explanation';

/** A human-readable explanation: the answer, then for each descriptor the look-up and the result. */
export function formatExplanation({ answer, error, descriptors }: Explanation): string {
  const first =
    answer === null
      ? `error: ${error?.message ?? 'there would be no answer'}`
      : `${answer.overallCode}: ${answer.reason}`;
  return visibleLines([first, ...descriptors.flatMap(formatDescriptor)]);
}

function formatDescriptor(descriptor: ExplainedDescriptor, index: number): readonly string[] {
  const { entries, countedAs, steps, reason, status, counter, otherCounters, rule, nearest } = descriptor;
  const lines = [`descriptor ${index + 1}: ${entriesText(entries)}`, ...steps.map(formatStep)];
  if (rule !== null) lines.push(`  rule ${nameOf(rule)}`);
  if (countedAs.length > 0) lines.push(`  counted as ${entriesText(countedAs)}`);
  lines.push(`  ${status === null ? '' : `${status.code}: `}${reason}`);
  for (const each of counter === null ? [] : [counter, ...otherCounters]) {
    lines.push(`  ${formatLimit(each)}${each.algorithm === 'max_concurrent' ? '' : `, resets ${each.resetAt}`}`);
    const by = each.answeredByPolicy ? `, answered by the policy ${each.answeredByPolicy}` : '';
    const leased = each.leased ? `, of which ${each.leased} are leased here` : '';
    const overdrawn = each.overdrawn ? `, overdrawn by ${each.overdrawn}` : '';
    lines.push(`  key ${each.cacheKey}, count ${each.count ?? 'not read'}${overdrawn}${leased}${by}`);
  }
  if (nearest !== null)
    lines.push(`  nearest${nearest.rule === null ? '' : ` ${nameOf(nearest.rule)}`}: ${nearest.difference}`);
  return lines;
}

function entriesText(entries: ExplainedDescriptor['entries']): string {
  return entries.map(({ key, value }) => `${key}=${value}`).join(',');
}

const OUTCOMES = { chosen: 'matches', 'passed over': 'does not match', 'not tried': 'is not tried' } as const;

function formatStep({ key, value, candidates, otherValues, keys, omitted }: ExplainedStep, index: number): string {
  const tried = candidates.map(({ rule, outcome }) => {
    return `${rule.value === '' ? 'the rule without a value' : `'${rule.value}'`} ${OUTCOMES[outcome]}`;
  });
  if (omitted > 0) tried.push(`${counted(omitted, 'rule')} not listed`);
  if (otherValues > 0)
    tried.push(otherValues === 1 ? '1 rule has another value' : `${otherValues} rules have other values`);
  if (keys.length > 0) tried.push(`no rule has the key; the keys are ${keys.join(', ')}`);
  return `  level ${index + 1}, ${key}=${value}: ${tried.join('; ')}`;
}

/** A limit of an answer, and what is known of the modes of its rule. */
export type LimitInWords = Omit<ListedLimit, 'unlimited' | 'replaces' | 'lease' | 'activity'> &
  Partial<
    Pick<ListedLimit, 'lease' | 'activity'> & EnforcementModes & { readonly onStoreFailure: FailurePolicy | null }
  >;

/** A limit with its name and its modes. */
export function formatLimit(limit: LimitInWords): string {
  const { requestsPerUnit, unit, unitMultiplier, calendar, name, shadowMode = false, enforcePercent = null } = limit;
  const { quotaMode = false, onStoreFailure = null, lease = null, active, activity, blockFor } = limit;
  const parts = [unit === null ? 'unlimited' : rateText(requestsPerUnit, unit, unitMultiplier ?? 1)];
  parts.push(...algorithmParts(limit));
  if (calendar !== null) parts.push(calendarText(unit ?? '', calendar));
  if (limit.postpaid) parts.push('postpaid');
  if (lease !== null) parts.push(lease ? 'leased' : 'not leased');
  if (name !== '') parts.push(`name ${name}`);
  if (enforcePercent !== null) {
    parts.push(`enforced for ${enforcePercent} % of callers${shadowMode ? ', not for this one' : ''}`);
  } else if (shadowMode) parts.push('shadow mode');
  if (quotaMode) parts.push('quota');
  if (onStoreFailure !== null && onStoreFailure !== 'error') parts.push(`if the store fails, ${onStoreFailure}`);
  if (blockFor) parts.push(`blocks for ${blockText(blockFor)}`);
  if (active) parts.push(`active ${activeText(active)}${activity ? activityText(activity) : ''}`);
  return parts.join(', ');
}

/** What is said of a limit that does not count in fixed windows. */
export function algorithmParts({ algorithm, burst }: Pick<LimitInWords, 'algorithm' | 'burst'>): readonly string[] {
  if (algorithm === null || algorithm === 'max_concurrent') return [];
  return [algorithm.replace('_', ' '), ...(burst === null ? [] : [`burst ${burst}`])];
}

function nameOf({ statisticsKey, place }: RuleReference): string {
  const at = placeOf(place);
  return at === '' ? statisticsKey : `${statisticsKey} (${at})`;
}

/** `file:line:column`; empty when it is not known. */
export function placeOf(place: RulePlace | null): string {
  if (place === null) return '';
  return place.line === 0 ? place.file : `${place.file}:${place.line}:${place.column}`;
}

const REASONS: Readonly<Partial<Record<ExplainedDescriptor['outcome'], string>>> = {
  'unknown domain': 'no limit applies, because the rules do not have the domain',
  'no entries': 'no limit applies, because the descriptor has no entries',
  'no match': 'no limit applies, because no rule matches',
  'too deep': 'no limit applies, because the descriptor has more entries than rules are nested',
  'no limit': 'no limit applies, because the rule has no rate_limit',
  unlimited: 'the rule is unlimited',
  denied: 'no rule matches, and on_unmatched denies that',
};

/**
 * Why a descriptor has its status, in one sentence without a full stop.
 *
 * @param activeFrom when a limit of the rule applies, if none does now
 */
export function reasonOf(
  { outcome, replacedBy, counter, status }: Omit<ExplainedDescriptor, 'reason'>,
  limited: LimitedDescriptor | undefined,
  activeFrom: string | undefined,
): string {
  if (outcome === 'inactive') return `no limit applies at this hour: the rule is not active until ${activeFrom}`;
  if (outcome === 'replaced') return `the rule is not applied, because ${replacedBy?.statisticsKey} replaces it`;
  const reason = REASONS[outcome];
  if (reason !== undefined) return reason;
  if (limited === undefined || counter === null || status === null) return 'the count cannot be read';
  const isDenied = limited.outcome?.isAllowed === false;
  const isCounted = limited.addedHits !== 0 || limited.callHits === 0 || isDenied;
  const counts = isCounted ? reasonOfCount(counter, status.code, isDenied) : reasonOfRead(counter, limited);
  const { failure } = limited;
  const ofLimit = failure === undefined ? counts : reasonOfPolicy(counter, failure, counts);
  return outcome === 'default' ? `no rule matches, so default_rate_limit applies: ${ofLimit}` : ofLimit;
}

/** Why the hits of a limit would not be counted, although it would not deny them. */
function reasonOfRead({ count }: ExplainedCounter, { group }: LimitedDescriptor): string {
  const cause = group?.isOver === true ? 'another descriptor is denied' : 'another limit is over';
  return `the count would stay ${count}, because ${cause} and STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT is set`;
}

/** @param counts why it has its status where a count of this instance answers */
function reasonOfPolicy(
  { answeredByPolicy: policy }: ExplainedCounter,
  { message }: DecisionError,
  counts: string,
): string {
  const answer = policy === 'local' ? `this instance counts: ${counts}` : `the policy ${policy} answers`;
  return `${message}, so that ${answer}`;
}

function reasonOfCount(counter: ExplainedCounter, code: 'OK' | 'OVER_LIMIT', isDenied: boolean): string {
  const { hits, isNegativeHits, isInLocalCache, count, leased, countAfter, shadowMode, enforcePercent } = counter;
  const open = counter.openReservations ?? 0;
  const most = counter.burst ?? counter.requestsPerUnit;
  if (isNegativeHits) return `${hits} would be subtracted from the count of ${count}, which never is over the limit`;
  const isOver = isInLocalCache || isDenied || (countAfter ?? 0) > most;
  const allows = enforcePercent === null ? 'shadow mode' : 'enforce_percent';
  const shadow = isOver && shadowMode && code === 'OK' ? `, which ${allows} allows` : '';
  if (counter.algorithm === 'max_concurrent')
    return `${count} of at most ${counted(most, 'reservation')} are open${shadow}`;
  const held = leased === null || leased === 0 ? '' : `${leased} of ${counted(count ?? 0, 'hit')} are leased here; `;
  if (isInLocalCache) {
    const end = counter.blockFor ? 'its block' : 'its window';
    return (
      'the local cache has the counter as over the limit until LOCAL_CACHE_MAX_AGE has passed or ' +
      `${end} ends${shadow}`
    );
  }
  const { block, blockFor } = counter;
  if (block) return `the caller is blocked until ${block.until}, for ${durationText(block.seconds)}${shadow}`;
  const starts = blockFor ? ', and would start a block' : '';
  if (isDenied)
    return (
      `${held}${count} of at most ${most} hits count, so that ${counted(hits, 'hit')} would be too ` +
      `many${starts}${shadow}`
    );
  const reserved = open > 0 ? `, with ${counted(open, 'open reservation')}` : '';
  const change = `the count would be ${countAfter} after ${counted(hits, 'hit')}${reserved}`;
  return `${held}${change}, ${isOver ? 'over' : 'within'} the limit of ${most}${shadow}`;
}

/** Why a request has its overall code. */
export function reasonOfAnswer({ options, decision }: Trial, { overallCode, statuses }: Verdict): string {
  const { resolutions } = decision;
  const over = statuses.flatMap(({ code }, index) => (code === Code.OVER_LIMIT ? [index] : []));
  const byPolicy = resolutions.map(({ limited }) => limited?.failure && limited.limit.onStoreFailure);
  if (over.length === 0) {
    return `no descriptor is over its limit${byPolicy.includes('allow') ? ', as far as they could be counted' : ''}`;
  }
  const [first] = over;
  const isQuotaAt = resolutions.map((resolution) => isQuota(resolution, options));
  function isDenied(index: number): boolean {
    return byPolicy[index] === 'deny' || resolutions[index]?.kind === 'denied';
  }
  const hard = over.find((index) => !isQuotaAt[index]);
  const reason =
    hard === undefined
      ? `descriptor ${(first ?? 0) + 1} is over its quota`
      : `descriptor ${hard + 1} is ${isDenied(hard) ? 'denied' : 'over its limit'}`;
  if (overallCode === Code.OVER_LIMIT) return hard === undefined ? 'every quota is used up' : reason;
  const withoutShadow = new OverallCode();
  statuses.forEach(({ code }, index) => withoutShadow.add(code, isQuotaAt[index] === true));
  const isAllowed = withoutShadow.code === Code.OK;
  return isAllowed ? `${reason}, but not every quota is used up` : `${reason}, which SHADOW_MODE allows`;
}
