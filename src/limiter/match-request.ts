import type { RuleLimit } from '../rules/rule-config';
import type { Rule } from '../rules/rule-tree';
import { type Ruleset, type Search, matchRule } from '../rules/ruleset';
import { TooMuchWork, type WorkBudget } from '../rules/wildcards';
import { DecisionError } from '../counting/decision-error';
import { type Descriptor, MAX_MATCHING_STEPS, type RateLimitRequest, checkRequest } from './request';

/** The rules that a request matches. */
export interface Matches {
  /**
   * For each descriptor, the default of its domain if it matches none; undefined without one, or when it has a limit of
   * its own.
   */
  readonly rules: readonly (Rule | undefined)[];
  /**
   * For each descriptor that has a limit of its own, the rule that it would match; undefined when no rule has anything
   * that such a limit keeps.
   */
  readonly overridden: readonly (Rule | undefined)[] | undefined;
  /** The names of the rules that they replace. */
  readonly replaced: ReadonlySet<string> | undefined;
}

/**
 * Checks a request and finds its rules, without counting anything.
 *
 * @returns undefined when its domain has no rules
 * @throws DecisionError `invalid_request`, `no_configuration` or `too_much_work`
 */
export function matchRequest(
  request: RateLimitRequest,
  ruleset: Ruleset | undefined,
  search: Search,
): Matches | undefined {
  try {
    const domain = checkRequest(request, ruleset);
    if (domain === undefined) return undefined;
    const { descriptors } = request;
    // Of its final length, and without a closure: this is a part of every decision.
    const rules = new Array<Rule | undefined>(descriptors.length);
    for (let index = 0; index < descriptors.length; index += 1) {
      const { limit, entries } = descriptors[index] as Descriptor;
      rules[index] =
        limit === undefined
          ? (matchRule(domain, entries, search) ?? ruleset?.unmatched.get(request.domain))
          : undefined;
    }
    // Not as a part of the above, which is that of every decision.
    const overridden =
      ruleset?.withScripts === undefined && ruleset?.hasPostpaid !== true
        ? undefined
        : descriptors.map(({ limit, entries }) =>
            limit === undefined ? undefined : matchRule(domain, entries, search),
          );
    return { rules, overridden, replaced: replacedNames(rules, search.budget) };
  } catch (error) {
    throw error instanceof TooMuchWork ? tooManySteps(error) : error;
  }
}

/**
 * Whether a rule, the default or the request itself decides a descriptor: with a limit, or by exempting it. A rule that
 * only contains nested rules decides nothing.
 */
export function isAnyDecided({ descriptors }: RateLimitRequest, { rules }: Matches): boolean {
  for (let index = 0; index < rules.length; index += 1) {
    const rule = rules[index];
    if (rule === undefined) {
      if (descriptors[index]?.limit !== undefined) return true;
    } else if (rule.limit !== undefined || rule.nested === undefined) return true;
  }
  return false;
}

function tooManySteps(cause: TooMuchWork): DecisionError {
  const message = `matching the request with the rules takes more than ${MAX_MATCHING_STEPS} steps`;
  return new DecisionError('too_much_work', message, { cause });
}

/**
 * The names that the matched rules replace. Unlimited rules, and rules that are replaced themselves, also replace
 * others. Undefined if there are none, which is the common case.
 *
 * @throws TooMuchWork when the rules list more names than the budget has steps
 */
function replacedNames(matched: readonly (Rule | undefined)[], budget: WorkBudget): ReadonlySet<string> | undefined {
  let names: Set<string> | undefined;
  let gathered: Set<readonly string[]> | undefined;
  for (const rule of matched) {
    const replaces = rule?.replaces;
    // Many descriptors can match the same rule.
    if (replaces === undefined || replaces.length === 0 || gathered?.has(replaces)) continue;
    budget.spend(replaces.length);
    (gathered ??= new Set()).add(replaces);
    names ??= new Set();
    for (const name of replaces) names.add(name);
  }
  return names;
}

/** Whether a limit of a matched rule is replaced and not applied. An unlimited rule is never replaced. */
export function isReplaced({ unlimited, name }: RuleLimit, names: ReadonlySet<string> | undefined): boolean {
  return names !== undefined && !unlimited && name !== '' && names.has(name);
}
