import type { Level, Rule } from './rule-tree';
import type { Entry, Ruleset } from './ruleset';
import { UNLIMITED_WORK, type WorkBudget } from './wildcards';

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
  /** How many more candidates there are, apart from the chosen one; see {@link ExplainOptions.maxCandidates}. */
  readonly omitted: number;
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

export interface ExplainOptions {
  /** As in {@link matchRule}. */
  readonly budget?: WorkBudget;
  /** How many candidates of a level are listed at most, in addition to the chosen one. Default: all. */
  readonly maxCandidates?: () => number;
  /** How many keys of a level are listed at most. Default: all. */
  readonly maxKeys?: number;
}

/**
 * Explains step by step what {@link matchRule} does with a descriptor, by a search of the same tree.
 *
 * @throws TooMuchWork when the wildcards need more work than the budget has
 */
export function explainMatch(
  ruleset: Ruleset,
  { domain, entries }: { readonly domain: string; readonly entries: readonly Entry[] },
  options: ExplainOptions = {},
): Explanation {
  const levels: ExplainedLevel[] = [];
  let level = ruleset.domain(domain);
  if (level === undefined) return { levels, outcome: 'unknown domain', rule: undefined };
  let rule: Rule | undefined;
  for (const entry of entries) {
    if (level === undefined) return { levels, outcome: 'too deep', rule };
    rule = level.find(entry.key, entry.value, options.budget ?? UNLIMITED_WORK);
    levels.push(explainLevel(level, { entry, chosen: rule }, options));
    if (rule === undefined) return { levels, outcome: 'no match', rule };
    level = rule.nested;
  }
  if (rule === undefined) return { levels, outcome: 'no entries', rule };
  return { levels, outcome: rule.limit === undefined ? 'no limit' : 'limit', rule };
}

function explainLevel(
  level: Level,
  { entry, chosen }: { readonly entry: Entry; readonly chosen: Rule | undefined },
  { maxCandidates = () => Infinity, maxKeys = Infinity }: ExplainOptions,
): ExplainedLevel {
  const candidates: Candidate[] = [];
  const most = maxCandidates();
  let isFound = false;
  for (const rule of triedRules(level, entry)) {
    if (candidates.length >= most) break;
    candidates.push({ rule, outcome: rule === chosen ? 'chosen' : isFound ? 'not tried' : 'passed over' });
    isFound ||= rule === chosen;
  }
  if (chosen !== undefined && !isFound) candidates.push({ rule: chosen, outcome: 'chosen' });
  const tried = countTried(level, entry);
  const count = level.countOf(entry.key);
  return {
    entry,
    candidates,
    omitted: tried - candidates.length,
    otherValues: count - tried,
    keys: count === 0 ? firstOf(level.keys(), maxKeys) : [],
  };
}

/** The rules of an entry's key in the order in which they are tried, without those of another exact value. */
function* triedRules(level: Level, { key, value }: Entry): IterableIterator<Rule> {
  const exact = value === '' ? undefined : level.get(key, value);
  if (exact !== undefined) yield exact;
  for (const rule of level.wildcardsOf(key)) if (rule !== exact) yield rule;
  const withoutValue = level.get(key, '');
  if (withoutValue !== undefined) yield withoutValue;
}

/** How many rules {@link triedRules} returns. */
function countTried(level: Level, { key, value }: Entry): number {
  const exact = value === '' ? undefined : level.get(key, value);
  const isExplicit = exact !== undefined && exact.wildcard === undefined;
  return Number(isExplicit) + level.wildcardsOf(key).length + Number(level.get(key, '') !== undefined);
}

function firstOf<T>(items: Iterable<T>, most: number): readonly T[] {
  const first: T[] = [];
  for (const item of items) {
    if (first.length >= most) break;
    first.push(item);
  }
  return first;
}
