import type { Rule } from '../rules/rule-tree';
import { type Ruleset, matchRule } from '../rules/ruleset';
import { TooMuchWork, type WorkBudget } from '../rules/wildcards';
import { checkRequest } from './check-request';
import { DecisionError } from './decision-error';
import { replacedNames } from './replaces';
import type { RateLimitRequest } from './request';
import { MAX_MATCHING_STEPS } from './request-bounds';

/** The rules that a request matches. */
export interface Matches {
  /** For each descriptor; undefined when it matches none, or has a limit of its own. */
  readonly rules: readonly (Rule | undefined)[];
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
  budget: WorkBudget,
): Matches | undefined {
  try {
    const domain = checkRequest(request, ruleset);
    if (domain === undefined) return undefined;
    const rules = request.descriptors.map((descriptor) =>
      descriptor.limit === undefined ? matchRule(domain, descriptor.entries, budget) : undefined,
    );
    return { rules, replaced: replacedNames(rules, budget) };
  } catch (error) {
    throw error instanceof TooMuchWork ? tooManySteps(error) : error;
  }
}

/**
 * Whether a rule or the request itself decides a descriptor: with a limit, or by exempting it. A rule that only contains nested rules
 * decides nothing.
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
