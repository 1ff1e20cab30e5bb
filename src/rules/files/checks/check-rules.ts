import type { DomainConfig, RuleConfig } from '../../rule-config';
import type { CheckContext } from './check-context';
import { checkMetric, checkZeroLimit } from './check-metric';
import { ReachCheck } from './check-reach';
import { checkReplaces } from './check-replaces';

/**
 * Warns about rules that are valid by themselves, but have less effect than they seem to have because of other rules or of the
 * levels above them. To be called only for configurations without errors.
 */
export function checkRules(configs: readonly DomainConfig[], context: CheckContext): void {
  const reach = new ReachCheck(context);
  for (const { descriptors } of configs) {
    reach.check(descriptors);
    walk(descriptors, [], (rule, path) => {
      reach.check(rule.descriptors);
      checkZeroLimit(rule, path, context);
      checkMetric(rule, path, context);
    });
    checkReplaces(descriptors, context);
  }
}

/** Calls back for every rule with its path: the rules that contain it, the outermost first, and itself last. */
function walk(
  rules: readonly RuleConfig[],
  above: RuleConfig[],
  visit: (rule: RuleConfig, path: readonly RuleConfig[]) => void,
): void {
  for (const rule of rules) {
    above.push(rule);
    visit(rule, above);
    walk(rule.descriptors, above, visit);
    above.pop();
  }
}
