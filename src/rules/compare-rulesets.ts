import type { Level, Rule } from './rule-tree';
import { LOGGED_NAMES, type Named, NameList, type Ruleset } from './ruleset';
import { plainStatisticsKey } from './statistics-key';
import { ValueList } from './values';

/** What is different in a ruleset. A rule is identified by its domain and the keys and values on the way to it. */
export interface RulesetChanges {
  readonly domainsAdded: Named;
  readonly domainsRemoved: Named;
  readonly rulesAdded: Named;
  readonly rulesRemoved: Named;
  /** Rules whose limit, flags or metadata are different. */
  readonly rulesChanged: Named;
}

/** How many rules are visited between two interruptions: less than a millisecond. */
const RULES_PER_STEP = 500;

/**
 * Compares two rulesets. The generator yields after every few hundred rules, so that the caller can do other work in
 * between; its return value is the result. The order of rules is not compared.
 *
 * @param names how many names each list of the result has
 */
export function* compareRulesets(
  before: Ruleset,
  after: Ruleset,
  names = LOGGED_NAMES,
): Generator<void, RulesetChanges> {
  function list(): NameList {
    return new NameList(names);
  }
  const changes = {
    ...{ domainsAdded: list(), domainsRemoved: list() },
    ...{ rulesAdded: list(), rulesRemoved: list(), rulesChanged: list() },
  };
  if (before === after) return changes;
  for (const domain of after.domains.keys()) if (!before.domains.has(domain)) changes.domainsAdded.add(() => domain);
  for (const domain of before.domains.keys()) if (!after.domains.has(domain)) changes.domainsRemoved.add(() => domain);
  for (const difference of differentRules(before, after)) {
    if (difference === undefined) yield;
    else {
      const { before: old, after: rule = old } = difference;
      const { rulesAdded, rulesRemoved, rulesChanged } = changes;
      const which = difference.after === undefined ? rulesRemoved : old === undefined ? rulesAdded : rulesChanged;
      which.add(() => plainStatisticsKey(rule!));
    }
  }
  return changes;
}

/** A rule that is in one ruleset only, or is different there. */
export interface RuleDifference {
  readonly before: Rule | undefined;
  readonly after: Rule | undefined;
}

/** The rules that are different, in no particular order; undefined after every few hundred rules. */
export function* differentRules(before: Ruleset, after: Ruleset): Generator<RuleDifference | undefined, void> {
  const levels: LevelPair[] = [];
  for (const domain of new Set([...after.domains.keys(), ...before.domains.keys()])) {
    levels.push([before.domains.get(domain), after.domains.get(domain)]);
    yield* ifDifferent(before.unmatched.get(domain), after.unmatched.get(domain));
  }
  let visited = 0;
  for (let pair = levels.pop(); pair !== undefined; pair = levels.pop()) {
    for (const [old, rule] of rulePairs(pair)) {
      yield* ifDifferent(old, rule);
      if (old?.nested !== undefined || rule?.nested !== undefined) levels.push([old?.nested, rule?.nested]);
      visited += 1;
      if (visited % RULES_PER_STEP === 0) yield undefined;
    }
  }
}

function* ifDifferent(before: Rule | undefined, after: Rule | undefined): Generator<RuleDifference> {
  if (before === undefined && after === undefined) return;
  if (before === undefined || after === undefined || !isSame(before, after)) yield { before, after };
}

/** A level in the tree before and in the one after; undefined where a tree does not have it. */
type LevelPair = readonly [before: Level | undefined, after: Level | undefined];

/** Each rule of either level with its counterpart in the other one. */
function* rulePairs([before, after]: LevelPair): IterableIterator<readonly [Rule | undefined, Rule | undefined]> {
  for (const rule of after?.rules() ?? []) yield [before?.counterpart(rule), rule];
  for (const old of before?.rules() ?? []) {
    const rule = after?.counterpart(old);
    // The rules of both levels have been yielded above; here they only count as work.
    yield rule === undefined ? [old, undefined] : [undefined, undefined];
  }
}

/** Whether two rules of the same key and value are equal, apart from the rules nested in them. */
function isSame(one: Rule, other: Rule): boolean {
  return (
    isEqual(one.options, other.options) &&
    isEqual(one.limits, other.limits) &&
    isEqual(one.metadata, other.metadata) &&
    isEqual(listOf(one), listOf(other))
  );
}

/** The values of a list, of which the text of the rule may have the first ones only. */
function listOf({ matcher }: Rule): readonly string[] | undefined {
  return matcher instanceof ValueList ? matcher.values.toSorted() : undefined;
}

/** Whether two values of plain data are equal. */
function isEqual(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (!isObject(one) || !isObject(other) || Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => isEqual(one[name], other[name]));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
