import type { RulePlace } from '../rules/rule-config';
import { calendarText, windowText } from '../rules/unit';
import type {
  ExplainedDescriptor,
  ExplainedStep,
  Explanation,
  ListedLimit,
  ListedRule,
  RuleReference,
} from '../operators/answers';
import { counted } from '../text/counted';
import { visibleLines } from '../text/visible';

/** A human-readable explanation: the answer, then for each descriptor the look-up and the result. */
export function formatExplanation({ answer, error, descriptors }: Explanation): string {
  const first =
    answer === null
      ? `error: ${error?.message ?? 'there would be no answer'}`
      : `${answer.overallCode}: ${answer.reason}`;
  return visibleLines([first, ...descriptors.flatMap(formatDescriptor)]);
}

function formatDescriptor(descriptor: ExplainedDescriptor, index: number): readonly string[] {
  const { entries, steps, reason, status, counter, otherCounters, rule, nearest } = descriptor;
  const name = entries.map(({ key, value }) => `${key}=${value}`).join(',');
  const lines = [`descriptor ${index + 1}: ${name}`, ...steps.map(formatStep)];
  if (rule !== null) lines.push(`  rule ${nameOf(rule)}`);
  lines.push(`  ${status === null ? '' : `${status.code}: `}${reason}`);
  for (const each of counter === null ? [] : [counter, ...otherCounters]) {
    lines.push(`  ${formatLimit(each)}, resets ${each.resetAt}`);
    const by = each.answeredByPolicy ? `, answered by the policy ${each.answeredByPolicy}` : '';
    const leased = each.leased ? `, of which ${each.leased} are leased here` : '';
    lines.push(`  key ${each.cacheKey}, count ${each.count ?? 'not read'}${leased}${by}`);
  }
  if (nearest !== null)
    lines.push(`  nearest${nearest.rule === null ? '' : ` ${nameOf(nearest.rule)}`}: ${nearest.difference}`);
  return lines;
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

/** A limit as it is listed, or with its counter, and the modes of its rule. */
type Limit = Omit<ListedLimit, 'unlimited' | 'replaces' | 'lease'> &
  Partial<Pick<ListedLimit, 'lease'>> &
  Partial<Pick<ListedRule, 'shadowMode' | 'enforcePercent' | 'quotaMode' | 'onStoreFailure'>>;

/** A limit with its name and its modes. */
export function formatLimit(limit: Limit): string {
  const { requestsPerUnit, unit, unitMultiplier, calendar, name, shadowMode = false, enforcePercent = null } = limit;
  const { quotaMode = false, onStoreFailure = null, lease = null } = limit;
  const parts = [unit === null ? 'unlimited' : `${requestsPerUnit} per ${windowText(unit, unitMultiplier ?? 1)}`];
  parts.push(...algorithmParts(limit));
  if (calendar !== null) parts.push(calendarText(unit ?? '', calendar));
  if (lease !== null) parts.push(lease ? 'leased' : 'not leased');
  if (name !== '') parts.push(`name ${name}`);
  if (enforcePercent !== null) {
    parts.push(`enforced for ${enforcePercent} % of callers${shadowMode ? ', not for this one' : ''}`);
  } else if (shadowMode) parts.push('shadow mode');
  if (quotaMode) parts.push('quota');
  if (onStoreFailure !== null && onStoreFailure !== 'error') parts.push(`if the store fails, ${onStoreFailure}`);
  return parts.join(', ');
}

/** What is said of a limit that does not count in fixed windows. */
export function algorithmParts({ algorithm, burst }: Pick<Limit, 'algorithm' | 'burst'>): readonly string[] {
  if (algorithm === null) return [];
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
