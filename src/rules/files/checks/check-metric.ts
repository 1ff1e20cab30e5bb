import type { RuleConfig } from '../../rule-config';
import type { ProblemReport } from '../problems/problem-report';
import type { RulePlaces } from '../fields/reading';
import type { Place } from '../problems/source-text';

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

/**
 * A limit of 0 bans what it matches (document 1, rule 8). A ban says whom it bans: some level of its path has a `value`, and be
 * it `*`. A 0 where no level has one is warned about, because elsewhere 0 often means "no limit".
 * @param path the rule with those that it lies in
 */
export function checkZeroLimit(
  path: readonly RuleConfig[],
  rule: RuleConfig,
  places: RulePlaces,
  report: ProblemReport,
): void {
  const limit = rule.rateLimit;
  if (limit === undefined || limit.unlimited || limit.requestsPerUnit !== 0 || rule.shadowMode) return;
  if (path.some(({ value }) => value !== '')) return;
  const place = places.get(rule);
  if (place?.requestsPerUnit === undefined) return;
  const message = 'a limit of 0 refuses every request with this key, whatever its value';
  const advice = 'To let all pass, write `unlimited: true` instead; if the ban is meant, say so with `value: "*"`.';
  report.add(place.source, place.requestsPerUnit, 'zero-limit-for-all', message, advice);
}
