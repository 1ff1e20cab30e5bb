import type { Level, Rule } from './rule-tree';

/** A rule and how deep it is nested: 0 at the top level. */
export interface WalkedRule {
  readonly rule: Rule;
  readonly depth: number;
}

/** Every rule of a domain, each parent before its children. The walk can be interrupted anywhere, as a ruleset does not change. */
export function* walkRules(level: Level, depth = 0): IterableIterator<WalkedRule> {
  for (const rule of level.rules()) {
    yield { rule, depth };
    if (rule.nested !== undefined) yield* walkRules(rule.nested, depth + 1);
  }
}
