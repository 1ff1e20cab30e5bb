import type { Rule } from '../rules/rule-tree';

/**
 * The names that the matched rules replace. Unlimited rules, and rules that are replaced themselves, also replace others.
 * Undefined if there are none, which is the common case.
 */
export function replacedNames(matched: readonly (Rule | undefined)[]): ReadonlySet<string> | undefined {
  let names: Set<string> | undefined;
  for (const rule of matched) {
    const replaces = rule?.limit?.replaces;
    if (replaces === undefined || replaces.length === 0) continue;
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
