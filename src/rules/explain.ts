import type { Level, Rule } from './rule-tree';
import type { KeyValue, Ruleset } from './ruleset';

/** How one rule of an entry's key came off. */
export interface Candidate {
  readonly rule: Rule;
  /** `passed over`: it was tried and does not match. `not tried`: an earlier one had matched. */
  readonly outcome: 'chosen' | 'passed over' | 'not tried';
}

/** What happened at one level of the tree. */
export interface ExplainedLevel {
  readonly entry: KeyValue;
  /** The rules of the entry's key in the order in which they are tried, those with another value left out. */
  readonly candidates: readonly Candidate[];
  /** How many rules of the entry's key have another value, without wildcards. */
  readonly otherValues: number;
  /** When no rule has the entry's key: the keys that there are rules of. */
  readonly keys: readonly string[];
}

/** What the walk ended with. */
export type Outcome =
  /** No rule file names the domain. */
  | 'unknown domain'
  /** A descriptor without entries matches nothing. */
  | 'no entries'
  /** At the last level shown, no rule matches. */
  | 'no match'
  /** Entries remain, but nothing is nested in the rule that matched. */
  | 'too deep'
  /** The rule that matched has no limit: whitelisted, or a placeholder for nested rules. */
  | 'no limit'
  /** The rule that matched has a limit, and counts or is unlimited. */
  | 'limit';

/** Why a descriptor meets the rule that it meets, or none. */
export interface Explanation {
  readonly levels: readonly ExplainedLevel[];
  readonly outcome: Outcome;
  /** The rule that the walk ended at; undefined when it ended at none. It decides only when the outcome is `limit`. */
  readonly rule: Rule | undefined;
}

/** Explains step by step what {@link matchRule} does with a descriptor. It asks the same tree. */
export function explainMatch(ruleset: Ruleset, domain: string, entries: readonly KeyValue[]): Explanation {
  const levels: ExplainedLevel[] = [];
  let level = ruleset.domain(domain);
  if (level === undefined) return { levels, outcome: 'unknown domain', rule: undefined };
  let rule: Rule | undefined;
  for (const entry of entries) {
    if (level === undefined) return { levels, outcome: 'too deep', rule };
    rule = level.find(entry.key, entry.value);
    levels.push(explainLevel(level, entry, rule));
    if (rule === undefined) return { levels, outcome: 'no match', rule };
    level = rule.nested;
  }
  if (rule === undefined) return { levels, outcome: 'no entries', rule };
  return { levels, outcome: rule.limit === undefined ? 'no limit' : 'limit', rule };
}

function explainLevel(level: Level, entry: KeyValue, chosen: Rule | undefined): ExplainedLevel {
  const rules = level.rulesOf(entry.key);
  const exact = rules.filter(({ value }) => value === entry.value && value !== '');
  const wildcards = rules.filter((rule) => rule.wildcard !== undefined && !exact.includes(rule));
  const tried = [...exact, ...wildcards, ...rules.filter(({ value }) => value === '')];
  const at = chosen === undefined ? tried.length : tried.indexOf(chosen);
  return {
    entry,
    candidates: tried.map((rule, index) => ({
      rule,
      outcome: index === at ? 'chosen' : index < at ? 'passed over' : 'not tried',
    })),
    otherValues: rules.length - tried.length,
    keys: rules.length === 0 ? [...new Set(Array.from(level.rules(), ({ key }) => key))] : [],
  };
}
