import type { RuleConfig } from '../rule-config';
import type { ProblemReport } from './problem-report';
import type { RulePlaces } from './reading';

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
