import type { Entry, Level, Rule } from '../rules/rule-tree';
import { type Ruleset, type Search, matchRule } from '../rules/ruleset';
import { UNLIMITED_WORK } from '../rules/wildcards';
import type { MatchOutcome } from './explanation';

/** A descriptor with its domain. */
export interface AskedDescriptor {
  readonly domain: string;
  readonly entries: readonly Entry[];
}

/** Where the search for the rule of a descriptor has ended. */
export interface Match {
  readonly outcome: MatchOutcome;
  /** The last rule that matched, if any. It applies only when the outcome is `limit`. */
  readonly rule: Rule | undefined;
  /** The level that was searched last; undefined: none was. */
  readonly level: Level | undefined;
  /** How many levels were searched. */
  readonly depth: number;
}

/**
 * Searches the rule of a descriptor as a decision does.
 *
 * @throws TooMuchWork when the wildcards need more work than the budget has
 */
export function followMatch(
  ruleset: Ruleset,
  { domain, entries }: AskedDescriptor,
  { budget = UNLIMITED_WORK, visit }: Partial<Search> = {},
): Match {
  const top = ruleset.domains.get(domain);
  let last: Pick<Match, 'rule' | 'level' | 'depth'> = { rule: undefined, level: undefined, depth: 0 };
  if (top === undefined) return { outcome: 'unknown domain', ...last };
  matchRule(top, entries, {
    budget,
    visit: (level, entry, rule) => {
      last = { rule, level, depth: last.depth + 1 };
      visit?.(level, entry, rule);
    },
  });
  return { outcome: outcomeOf(last, entries), ...last };
}

function outcomeOf({ depth, rule }: Pick<Match, 'depth' | 'rule'>, entries: readonly Entry[]): MatchOutcome {
  if (depth === 0) return 'no entries';
  if (rule === undefined) return 'no match';
  if (depth < entries.length) return 'too deep';
  return rule.limit === undefined ? 'no limit' : 'limit';
}
