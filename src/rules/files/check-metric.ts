import type { RuleConfig } from '../rule-config';
import type { ProblemReport } from './problem-report';
import type { RulePlaces } from './reading';
import type { Place } from './source-text';

/** Keys whose values the proxy fills in with addresses of its clients: there are as many as there are clients. */
const UNBOUNDED_KEYS = new Set(['remote_address', 'masked_remote_address']);

/**
 * Finds rules that write an unbounded set of values into statistics keys. A key of one's own may be as unbounded, but only its
 * owner knows; of these everybody does.
 * @param path the rule with those that it lies in
 */
export function checkMetric(
  path: readonly RuleConfig[],
  rule: RuleConfig,
  places: RulePlaces,
  report: ProblemReport,
): void {
  if (rule.rateLimit === undefined) return;
  // `detailed_metric` of the rule that counts writes the values of all levels; `value_to_metric` that of its own level.
  for (const level of path) {
    if (!isUnbounded(level)) continue;
    if (rule.detailedMetric) warn(rule, level, 'detailed_metric', places.get(rule)?.detailedMetric, places, report);
    else if (level.valueToMetric)
      warn(level, level, 'value_to_metric', places.get(level)?.valueToMetric, places, report);
  }
}

function isUnbounded({ key, value, shareThreshold }: RuleConfig): boolean {
  return UNBOUNDED_KEYS.has(key) && !shareThreshold && (value === '' || value.includes('*'));
}

function warn(
  rule: RuleConfig,
  level: RuleConfig,
  field: string,
  at: Place | undefined,
  places: RulePlaces,
  report: ProblemReport,
): void {
  const source = places.get(rule)?.source;
  if (source === undefined || at === undefined) return;
  const message = `\`${field}\` makes statistics of their own for every ${level.key} that ever calls`;
  const advice = `Take ${field} out; beyond a bound such statistics are added up in the rule's plain key anyway.`;
  report.add(source, at, 'unbounded-metric', message, advice);
}
