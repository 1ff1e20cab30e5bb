import type { RulePlace } from '../../rules/rule-config';
import type { ExplainedDescriptor, ExplainedStep, Explanation, RuleReference } from '../../streams/ports/operator';
import { visibleLines } from '../visible';

/** A human-readable explanation: the answer, then for each descriptor the look-up and the result. */
export function formatExplanation({ answer, error, descriptors }: Explanation): string {
  const first =
    answer === null
      ? `error: ${error?.message ?? 'there would be no answer'}`
      : `${answer.overallCode}: ${answer.reason}`;
  return visibleLines([first, ...descriptors.flatMap(formatDescriptor)]);
}

function formatDescriptor(descriptor: ExplainedDescriptor, index: number): readonly string[] {
  const { entries, steps, reason, status, counter, rule, nearest } = descriptor;
  const name = entries.map(({ key, value }) => `${key}=${value}`).join(',');
  const lines = [`descriptor ${index + 1}: ${name}`, ...steps.map(formatStep)];
  if (rule !== null) lines.push(`  rule ${nameOf(rule)}`);
  lines.push(`  ${status === null ? '' : `${status.code}: `}${reason}`);
  if (counter !== null) {
    lines.push(`  ${counter.requestsPerUnit} per ${counter.unit.toLowerCase()}, resets ${counter.resetAt}`);
    lines.push(`  key ${counter.cacheKey}, count ${counter.count ?? 'not read'}`);
  }
  if (nearest !== null)
    lines.push(`  nearest${nearest.rule === null ? '' : ` ${nameOf(nearest.rule)}`}: ${nearest.difference}`);
  return lines;
}

function formatStep({ key, value, candidates, otherValues, keys, omitted }: ExplainedStep, index: number): string {
  const tried = candidates.map(
    ({ rule, outcome }) => `${rule.value === '' ? 'any value' : `'${rule.value}'`} ${outcome}`,
  );
  if (omitted > 0) tried.push(`${omitted} more`);
  if (otherValues > 0) tried.push(`${otherValues} with other values`);
  if (keys.length > 0) tried.push(`no rule has the key; the keys are ${keys.join(', ')}`);
  return `  level ${index + 1}, ${key}=${value}: ${tried.join('; ')}`;
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
