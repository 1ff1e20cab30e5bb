import type { RuleLimit } from './rule-config';
import type { Entry, Rule } from './rule-tree';
import { windowLabel } from './unit';
import { Wildcard } from './wildcards';

/**
 * The statistics key of a rule, `<domain>.<key>[_<value>].<nested key>[_<value>]…`, unescaped. The metric flags of the
 * rules determine which value each level contributes.
 * @param entries those of the request, one for each level
 */
export function statisticsKey(rule: Rule, entries: readonly Entry[]): string {
  let key = rule.domain;
  let level = 0;
  for (const step of rule.path) {
    key += `.${step.key}${valuePart(step, rule, entries[level]?.value ?? '')}`;
    level += 1;
  }
  return key;
}

/** The statistics key of a rule without request values: the part that depends on the rules alone. */
export function plainStatisticsKey(rule: Rule): string {
  return rule.path.reduce((key, step) => `${key}.${step.key}${configuredPart(step)}`, rule.domain);
}

/**
 * The statistics key of a rule by which operators find it: its only one, or without request values if it has a key for
 * each of these, which then has their sums.
 */
export function listedStatisticsKey(rule: Rule): string {
  return runtimeStatisticsLevels(rule).length > 0 ? plainStatisticsKey(rule) : statisticsKey(rule, rule.path);
}

/**
 * What follows the statistics key of a rule for one of its limits: nothing, or with `rate_limits` the window,
 * `.5minute`.
 */
export function limitSuffix({ options }: Rule, { unit, unitMultiplier }: RuleLimit): string {
  return options.hasLimitList && unit !== undefined ? `.${windowLabel(unit, unitMultiplier)}` : '';
}

/** The indices of the levels whose request values are part of the rule's statistics key. */
export function runtimeStatisticsLevels(rule: Rule): readonly number[] {
  return rule.path.flatMap((step, level) =>
    step.countsByValue && (rule.options.detailedMetric || step.options.valueToMetric) ? [level] : [],
  );
}

/** The part after a level's key, including the `_`. */
function valuePart(step: Rule, matched: Rule, requestValue: string): string {
  const { detailedMetric } = matched.options;
  const { shareThreshold, valueToMetric } = step.options;
  if (shareThreshold && (detailedMetric || valueToMetric)) return beforeWildcard(step);
  if (shareThreshold) return configuredPart(step);
  if (detailedMetric) return `_${requestValue}`;
  if (valueToMetric && !step.isExplicit) return requestValue === '' ? '' : `_${requestValue}`;
  return configuredPart(step);
}

function configuredPart(step: Rule): string {
  return step.value === '' ? '' : `_${step.value}`;
}

/** The value up to its first `*`; the whole text of a list, a network or a regular expression. */
function beforeWildcard({ value, matcher }: Rule): string {
  return `_${matcher instanceof Wildcard ? matcher.first : value}`;
}
