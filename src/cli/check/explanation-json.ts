import { cacheKeyBody } from '../../limiter/cache-key';
import type { Explanation } from '../../rules/explain';
import type { Rule } from '../../rules/rule-tree';
import type { Entry } from '../../rules/ruleset';
import { statisticsKey } from '../../rules/statistics-key';
import { escapeStatisticsKey } from '../../statistics/escape';

/** An explanation as one JSON object: what the text shows, without the suggestions. */
export function explanationJson(domain: string, entries: readonly Entry[], explanation: Explanation): string {
  const { levels, outcome, rule } = explanation;
  const result = {
    domain,
    entries,
    levels: levels.map(({ entry, candidates, otherValues, keys }) => ({
      entry,
      candidates: candidates.map((candidate) => ({
        key: candidate.rule.key,
        value: candidate.rule.value,
        outcome: candidate.outcome,
      })),
      otherValues,
      keys,
    })),
    outcome,
    limit: outcome === 'limit' && rule !== undefined ? limitJson(domain, entries, rule) : null,
  };
  return `${JSON.stringify(result, undefined, 2)}\n`;
}

function limitJson(domain: string, entries: readonly Entry[], rule: Rule) {
  const { limit, shadowMode, quotaMode } = rule;
  const isCounted = limit?.unlimited === false;
  return {
    unit: limit?.unit?.name ?? null,
    requestsPerUnit: isCounted ? limit.requestsPerUnit : null,
    unlimited: !isCounted,
    name: limit?.name ?? '',
    replaces: limit?.replaces ?? [],
    shadowMode,
    quotaMode,
    /** Without the start of the window, which follows it. */
    cacheKeyBody: isCounted ? cacheKeyBody('', domain, entries, rule) : null,
    statisticsKey: escapeStatisticsKey(statisticsKey(rule, entries)),
  };
}
