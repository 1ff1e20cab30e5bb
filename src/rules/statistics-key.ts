import type { Rule } from './rule-tree';
import type { KeyValue } from './ruleset';

/**
 * The statistics key of a rule, `<domain>.<key>[_<value>].<nested key>[_<value>]…`, unescaped (document 1, section 2.1).
 * Which value a level writes depends on the rule's metric flags; `entries` are the request's, one for each level.
 */
export function statisticsKey(rule: Rule, entries: readonly KeyValue[]): string {
  let key = rule.domain;
  let level = 0;
  for (const step of rule.path) {
    key += `.${step.key}${valuePart(step, rule, entries[level]?.value ?? '')}`;
    level += 1;
  }
  return key;
}

/** The statistics key of a rule without any request value: what the rules alone determine. */
export function plainStatisticsKey(rule: Rule): string {
  return rule.path.reduce((key, step) => `${key}.${step.key}${configuredPart(step)}`, rule.domain);
}

/** The levels of the rule's path whose request values stand in its statistics key. */
export function runtimeStatisticsLevels(rule: Rule): readonly number[] {
  return rule.path.flatMap((step, level) =>
    step.isToldApart && (rule.detailedMetric || step.valueToMetric) ? [level] : [],
  );
}

/** The part behind a level's key, with its `_`. */
function valuePart(step: Rule, matched: Rule, requestValue: string): string {
  const { detailedMetric } = matched;
  if (step.shareThreshold && (detailedMetric || step.valueToMetric)) return `_${beforeWildcard(step.value)}`;
  if (step.shareThreshold) return configuredPart(step);
  if (detailedMetric) return `_${requestValue}`;
  if (step.valueToMetric && !step.isExplicit) return requestValue === '' ? '' : `_${requestValue}`;
  return configuredPart(step);
}

function configuredPart(step: Rule): string {
  return step.value === '' ? '' : `_${step.value}`;
}

function beforeWildcard(pattern: string): string {
  return pattern.slice(0, pattern.indexOf('*'));
}
