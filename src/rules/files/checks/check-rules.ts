import type { DomainConfig, RuleConfig } from '../../rule-config';
import { checkMetric, checkZeroLimit } from './check-metric';
import { ReachCheck } from './check-reach';
import { checkReplaces } from './check-replaces';
import type { RulePlaces } from '../fields/reading';
import type { ProblemReport } from '../problems/problem-report';

/**
 * Warns of rules that are not wrong by themselves, but that others, or the levels above them, keep from meaning what they
 * seem to. They are without errors.
 */
export function checkRules(configs: readonly DomainConfig[], places: RulePlaces, report: ProblemReport): void {
  const reach = new ReachCheck(places, report);
  for (const { descriptors } of configs) {
    reach.check(descriptors);
    walk(descriptors, [], (path, rule) => {
      reach.check(rule.descriptors);
      checkZeroLimit(path, rule, places, report);
      checkMetric(path, rule, places, report);
    });
    checkReplaces(descriptors, places, report);
  }
}

/** Calls back for every rule with the rules that it lies in, the outermost first, itself last. */
function walk(
  rules: readonly RuleConfig[],
  above: RuleConfig[],
  visit: (path: readonly RuleConfig[], rule: RuleConfig) => void,
): void {
  for (const rule of rules) {
    above.push(rule);
    visit(above, rule);
    walk(rule.descriptors, above, visit);
    above.pop();
  }
}
