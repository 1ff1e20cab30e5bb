import { cacheKeyBody } from '../../limiter/cache-key';
import type { Candidate, ExplainedLevel, Explanation } from '../../rules/explain';
import { KEY_TOLERANCE, nearestName } from '../../text/nearest-name';
import type { Entry, Rule, RuleLimit } from '../../rules/rule-tree';
import { statisticsKey } from '../../rules/statistics-key';
import { escapeStatisticsKey } from '../../statistics/escape';

const MAX_KEYS = 10;

/** A human-readable explanation: for each level the rules in the order in which they are tried, then the result. */
export function explanationText(domain: string, entries: readonly Entry[], explanation: Explanation): string {
  const lines = [`domain ${domain}`];
  for (const [index, level] of explanation.levels.entries()) lines.push(...formatLevel(level, index + 1));
  lines.push(...formatResult(domain, entries, explanation));
  return `${lines.join('\n')}\n`;
}

function formatLevel({ entry, candidates, otherValues, keys }: ExplainedLevel, number: number): string[] {
  const lines = [`level ${number}: ${show(entry)}`];
  if (keys.length > 0) {
    const more = keys.length > MAX_KEYS ? `, and ${keys.length - MAX_KEYS} more` : '';
    lines.push(`  no rule has the key ${entry.key}; the keys are ${keys.slice(0, MAX_KEYS).join(', ')}${more}`);
    const nearest = nearestName(entry.key, keys, KEY_TOLERANCE);
    if (nearest !== undefined) lines.push(`  did you mean ${nearest}?`);
    return lines;
  }
  if (!candidates.some(({ rule }) => rule.value === entry.value))
    lines.push(`  value '${entry.value}': no rule has this value`);
  for (const candidate of candidates) lines.push(`  ${formatCandidate(candidate, entry)}`);
  if (otherValues > 0)
    lines.push(`  ${otherValues} ${otherValues === 1 ? 'rule has another value' : 'rules have other values'}`);
  return lines;
}

function formatCandidate({ rule, outcome }: Candidate, entry: Entry): string {
  const name =
    rule.value === ''
      ? 'without value'
      : rule.value === entry.value
        ? `value '${rule.value}'`
        : `wildcard '${rule.value}'`;
  if (outcome === 'chosen') return `${name}: matches`;
  return outcome === 'passed over' ? `${name}: does not match` : `${name}: not tried, because an earlier rule matches`;
}

function formatResult(domain: string, entries: readonly Entry[], { levels, outcome, rule }: Explanation): string[] {
  switch (outcome) {
    case 'unknown domain':
      return [
        `result: no limit, because no rule file has the domain; counted as ${escapeStatisticsKey(domain)}.domain_not_found`,
      ];
    case 'no entries':
      return ['result: no limit, because the descriptor has no entries'];
    case 'no match':
      return [`result: no limit, because no rule matches at level ${levels.length}`];
    case 'too deep':
      return [
        `result: no limit, because the descriptor has ${entries.length} entries and no rules are nested below level ${levels.length}`,
      ];
    case 'no limit': {
      const detail = rule?.nested === undefined ? 'which exempts matching requests' : 'only nested rules';
      return [`result: no limit, because the rule has no rate_limit, ${detail}`];
    }
    default:
      return rule?.limit === undefined ? [] : formatLimit(limitOf(domain, entries, { rule, limit: rule.limit }));
  }
}

function formatLimit(limit: ReturnType<typeof limitOf>): string[] {
  const { unit, requestsPerUnit, shadowMode, quotaMode } = limit;
  const statistics = `statistics key: ${limit.statisticsKey}`;
  const replaces = limit.replaces.length > 0 ? [`replaces: ${limit.replaces.join(', ')}`] : [];
  const name = limit.name === '' ? [] : [`name: ${limit.name}`];
  if (unit === null || limit.unlimited) {
    return ['result: unlimited; always OK, and nothing is counted in the store', ...name, ...replaces, statistics];
  }
  const shadow = shadowMode ? '; shadow mode (the response is always OK)' : '';
  return [
    `result: ${requestsPerUnit} per ${unit.toLowerCase()}${shadow}${quotaMode ? '; quota mode' : ''}`,
    ...name,
    ...replaces,
    `cache key: ${limit.cacheKeyBody}<start of the ${unit.toLowerCase()} in Unix seconds>`,
    statistics,
  ];
}

function show({ key, value }: Entry): string {
  return `${key}=${value}`;
}

/** An explanation as one JSON object: what the text shows, without the suggestions. */
export function explanationJson(domain: string, entries: readonly Entry[], explanation: Explanation): string {
  const { levels, outcome, rule } = explanation;
  const limit = outcome === 'limit' ? rule?.limit : undefined;
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
    limit: rule === undefined || limit === undefined ? null : limitOf(domain, entries, { rule, limit }),
  };
  return `${JSON.stringify(result, undefined, 2)}\n`;
}

/** The limit of the rule that applies, as the JSON has it. */
function limitOf(
  domain: string,
  entries: readonly Entry[],
  { rule, limit }: { readonly rule: Rule; readonly limit: RuleLimit },
) {
  const { unit, requestsPerUnit, unlimited, name, replaces } = limit;
  return {
    unit: unit?.name ?? null,
    requestsPerUnit: unlimited ? null : requestsPerUnit,
    unlimited,
    name,
    replaces,
    shadowMode: rule.shadowMode,
    quotaMode: rule.quotaMode,
    /** Without the start of the window, which follows it. */
    cacheKeyBody: unlimited ? null : cacheKeyBody('', domain, entries, rule),
    statisticsKey: escapeStatisticsKey(statisticsKey(rule, entries)),
  };
}
