import type { Level, Rule } from './rule-tree';
import type { Entry, Ruleset } from './ruleset';

/** One rule of an entry's key, and what the search did with it. */
export interface Candidate {
  readonly rule: Rule;
  /** `passed over`: tried, but does not match. `not tried`: an earlier rule matched. */
  readonly outcome: 'chosen' | 'passed over' | 'not tried';
}

/** The search at one level of the tree. */
export interface ExplainedLevel {
  readonly entry: Entry;
  /** The rules of the entry's key in the order in which they are tried, without those of another exact value. */
  readonly candidates: readonly Candidate[];
  /** How many rules of the entry's key have another exact value. */
  readonly otherValues: number;
  /** When no rule has the entry's key: the keys that the rules of the level have. */
  readonly keys: readonly string[];
}

/** How the search ended. */
export type MatchOutcome =
  /** No rule file names the domain. */
  | 'unknown domain'
  /** A descriptor without entries matches nothing. */
  | 'no entries'
  /** No rule matches at the last level listed. */
  | 'no match'
  /** Entries remain, but no rules are nested in the rule that matched. */
  | 'too deep'
  /** The rule that matched has no limit: whitelisted, or a placeholder for nested rules. */
  | 'no limit'
  /** The rule that matched has a limit or is unlimited. */
  | 'limit';

/** Why a descriptor matches a rule, or none. */
export interface Explanation {
  readonly levels: readonly ExplainedLevel[];
  readonly outcome: MatchOutcome;
  /** The last rule that matched, if any. It applies only when the outcome is `limit`. */
  readonly rule: Rule | undefined;
}

/** Explains step by step what {@link matchRule} does with a descriptor, by a search of the same tree. */
export function explainMatch(ruleset: Ruleset, domain: string, entries: readonly Entry[]): Explanation {
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

function explainLevel(level: Level, entry: Entry, chosen: Rule | undefined): ExplainedLevel {
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
