import type { Rule } from '../rules/rule-tree';
import type { WorkBudget } from '../rules/wildcards';

/**
 * The names that the matched rules replace. Unlimited rules, and rules that are replaced themselves, also replace others.
 * Undefined if there are none, which is the common case.
 *
 * @throws TooMuchWork when the rules list more names than the budget has steps
 */
export function replacedNames(
  matched: readonly (Rule | undefined)[],
  budget: WorkBudget,
): ReadonlySet<string> | undefined {
  let names: Set<string> | undefined;
  let gathered: Set<readonly string[]> | undefined;
  for (const rule of matched) {
    const replaces = rule?.limit?.replaces;
    // Many descriptors can match the same rule.
    if (replaces === undefined || replaces.length === 0 || gathered?.has(replaces)) continue;
    budget.spend(replaces.length);
    (gathered ??= new Set()).add(replaces);
    names ??= new Set();
    for (const name of replaces) names.add(name);
  }
  return names;
}

/** Whether a matched rule is replaced and not applied. An unlimited rule is never replaced. */
export function isReplaced(rule: Rule, names: ReadonlySet<string> | undefined): boolean {
  const { limit } = rule;
  return names !== undefined && limit !== undefined && !limit.unlimited && limit.name !== '' && names.has(limit.name);
}
