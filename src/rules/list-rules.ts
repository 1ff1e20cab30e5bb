import type { Rule } from './rule-tree';
import type { Ruleset } from './ruleset';
import { plainStatisticsKey } from './statistics-key';
import { walkRules } from './walk-rules';

/**
 * One line for each rule with a `rate_limit`, in no particular order, as `/rlconfig` shows them:
 * `<key path>: unit=<U> requests_per_unit=<n>, shadow_mode: <b>, quota_mode: <b>`. These are the lines of the Go service, in which an
 * unlimited rule has the unit UNKNOWN and 0 requests, as if it were banned; a comment after the line says what it is.
 */
export function* listRules(ruleset: Ruleset): IterableIterator<string> {
  for (const level of ruleset.domains.values()) {
    for (const { rule } of walkRules(level)) if (rule.limit !== undefined) yield describe(rule, rule.limit);
  }
}

function describe(rule: Rule, { unlimited, unit, requestsPerUnit }: NonNullable<Rule['limit']>): string {
  return (
    `${plainStatisticsKey(rule)}: unit=${unit?.name ?? 'UNKNOWN'} requests_per_unit=${requestsPerUnit}, ` +
    `shadow_mode: ${rule.shadowMode}, quota_mode: ${rule.quotaMode}${unlimited ? ' # unlimited' : ''}`
  );
}
