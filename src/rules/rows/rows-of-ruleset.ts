import type { RuleConfig } from '../rule-config';
import type { Level, Rule } from '../rule-tree';
import type { Ruleset } from '../ruleset';
import type { RuleRow } from './rule-rows';

/**
 * The rows from which `RowsBuilder` builds an equal ruleset, one at a time: nothing is copied in advance. Wildcards of rules that have
 * not been searched yet are compiled.
 */
export function* rowsOfRuleset({ domains }: Ruleset): IterableIterator<RuleRow> {
  const last = { file: '' };
  for (const [domain, level] of domains) {
    yield { domain };
    yield* rowsOfLevel(level, 0, last);
  }
}

/** @param last the file of the last row */
function* rowsOfLevel(level: Level, depth: number, last: { file: string }): IterableIterator<RuleRow> {
  for (const rule of level.rules()) {
    const { place } = rule;
    if (place !== undefined && place.file !== last.file) {
      last.file = place.file;
      yield { file: place.file };
    }
    const row = { depth, rule: configOf(rule) };
    yield place === undefined ? row : { ...row, line: place.line, column: place.column };
    if (rule.nested !== undefined) yield* rowsOfLevel(rule.nested, depth + 1, last);
  }
  for (const wildcards of level.compiledKeys()) yield { depth, wildcards };
}

function configOf(rule: Rule): RuleConfig {
  const { key, value, limit, shadowMode, quotaMode, detailedMetric, valueToMetric, shareThreshold, metadata } = rule;
  return {
    key,
    value,
    rateLimit: limit && { ...limit, unit: limit.unit?.name },
    shadowMode,
    quotaMode,
    detailedMetric,
    valueToMetric,
    shareThreshold,
    metadata,
    descriptors: [],
  };
}
