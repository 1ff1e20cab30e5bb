import type { Level, Rule } from './rule-tree';
import type { Ruleset } from './ruleset';
import { plainStatisticsKey } from './statistics-key';

/**
 * One line for each rule with a `rate_limit`, sorted, as `/rlconfig` shows them:
 * `<key path>: unit=<U> requests_per_unit=<n>, shadow_mode: <b>, quota_mode: <b>`. These are the lines of the Go service, in which an
 * unlimited rule has the unit UNKNOWN and 0 requests, as if it were banned; a comment after the line says what it is.
 */
export function listRules(ruleset: Ruleset): readonly string[] {
  const lines: string[] = [];
  for (const level of ruleset.domains.values()) collect(level, lines);
  return lines.sort();
}

function collect(level: Level, lines: string[]): void {
  for (const rule of level.rules()) {
    if (rule.limit !== undefined) lines.push(describe(rule, rule.limit));
    if (rule.nested !== undefined) collect(rule.nested, lines);
  }
}

function describe(rule: Rule, { unlimited, unit, requestsPerUnit }: NonNullable<Rule['limit']>): string {
  return (
    `${plainStatisticsKey(rule)}: unit=${unit?.name ?? 'UNKNOWN'} requests_per_unit=${requestsPerUnit}, ` +
    `shadow_mode: ${rule.shadowMode}, quota_mode: ${rule.quotaMode}${unlimited ? ' # unlimited' : ''}`
  );
}
