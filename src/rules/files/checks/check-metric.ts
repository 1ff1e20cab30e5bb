import type { RuleConfig } from '../../rule-config';
import type { RuleLocation } from '../fields/read-context';
import type { CheckContext } from './check-context';

/** Keys whose values are addresses of the proxy's clients: there are as many values as clients. */
const UNBOUNDED_KEYS = new Set(['remote_address', 'masked_remote_address']);

/**
 * Warns about rules that put an unbounded set of values into statistics keys. Only keys that the proxy itself fills in are
 * checked: how many values another key has is not known.
 * @param path the rule, preceded by the rules that contain it
 */
export function checkMetric(rule: RuleConfig, path: readonly RuleConfig[], context: CheckContext): void {
  if (rule.rateLimit === undefined) return;
  // `detailed_metric` of the rule with the limit writes the values of all levels; `value_to_metric` that of its own level.
  for (const level of path) {
    if (!isUnbounded(level)) continue;
    if (rule.detailedMetric) warn(level, 'detailed_metric', rule);
    else if (level.valueToMetric) warn(level, 'value_to_metric', level);
  }

  function warn(level: RuleConfig, field: 'detailed_metric' | 'value_to_metric', owner: RuleConfig) {
    const location = context.locationOf(owner);
    const range = rangeOf(field, location);
    if (location === undefined || range === undefined) return;
    context.report(location, range, {
      code: 'unbounded-metric',
      message: `\`${field}\` creates separate statistics for every ${level.key}`,
      advice: `Remove ${field}; above a maximum, such statistics are counted under the rule's plain key anyway.`,
    });
  }
}

function rangeOf(field: 'detailed_metric' | 'value_to_metric', location: RuleLocation | undefined) {
  return field === 'detailed_metric' ? location?.detailedMetric : location?.valueToMetric;
}

function isUnbounded({ key, value, shareThreshold }: RuleConfig): boolean {
  return UNBOUNDED_KEYS.has(key) && !shareThreshold && (value === '' || value.includes('*'));
}

/**
 * Warns about a limit of 0, which rejects every request that matches, where no level of the path has a `value`: elsewhere 0
 * often means "no limit". A `value` on any level, even `*`, shows that the ban is intended.
 * @param path the rule, preceded by the rules that contain it
 */
export function checkZeroLimit(rule: RuleConfig, path: readonly RuleConfig[], context: CheckContext): void {
  const limit = rule.rateLimit;
  if (limit === undefined || limit.unlimited || limit.requestsPerUnit !== 0 || rule.shadowMode) return;
  if (path.some(({ value }) => value !== '')) return;
  const location = context.locationOf(rule);
  if (location?.requestsPerUnit === undefined) return;
  context.report(location, location.requestsPerUnit, {
    code: 'zero-limit-for-all',
    message: 'a limit of 0 rejects every request with this key, for every value',
    advice: 'To allow them all, write `unlimited: true`; if the ban is intended, add `value: "*"` to make it explicit.',
  });
}
