import type { RuleConfig } from '../../rule-config';
import type { FieldReader } from '../fields/field-reader';
import type { ProblemDetails } from '../problems/problem';
import { showText } from '../yaml/yaml-text';

/** Reports fields of a rule that are invalid or have no effect because of another field of the same rule. */
export function checkEffect(fields: FieldReader, rule: RuleConfig): void {
  function report(name: string, details: ProblemDetails) {
    fields.context.report(fields.get(name)?.key ?? { offset: 0, end: 0 }, details);
  }
  if (rule.shareThreshold && !rule.value.includes('*') && !fields.hasWrongType('value')) {
    report('share_threshold', {
      code: 'share-threshold-without-wildcard',
      message: `share_threshold can only be used with wildcard values (containing '*'), but found key '${showText(rule.key)}'`,
      advice: 'Write a `value` with a `*`, or remove share_threshold.',
    });
  }
  if (rule.detailedMetric && rule.valueToMetric && !isReadBelow(rule)) {
    report('value_to_metric', {
      code: 'ignored-value-to-metric',
      message: '`value_to_metric` has no effect: detailed_metric already includes the values of all levels',
      advice: 'Remove one of the two.',
    });
  }
  if (rule.rateLimit === undefined) {
    if (fields.hasWrongType('rate_limit')) return;
    const names = rule.detailedMetric ? [...limitFieldsOf(rule), 'detailed_metric'] : limitFieldsOf(rule);
    for (const name of names) {
      report(name, {
        code: 'ignored-without-limit',
        message: `\`${name}\` has no effect: the rule has no limit`,
        advice: `Give the rule a \`rate_limit\`, or move \`${name}\` to the rule that has one.`,
      });
    }
  } else if (rule.rateLimit.unlimited) {
    for (const name of limitFieldsOf(rule)) {
      report(name, {
        code: 'ignored-when-unlimited',
        message: `\`${name}\` has no effect: the rule is unlimited`,
        advice: `Remove \`${name}\` or \`unlimited\`.`,
      });
    }
  }
}

/** Whether the `value_to_metric` of a rule has an effect in rules nested in it: those with a limit and without `detailed_metric`. */
function isReadBelow({ descriptors }: RuleConfig): boolean {
  return descriptors.some((nested) => (nested.rateLimit && !nested.detailedMetric) || isReadBelow(nested));
}

/** The fields set in a rule that have an effect only with a limit that counts. */
function limitFieldsOf(rule: RuleConfig): readonly string[] {
  const names: string[] = [];
  if (rule.shadowMode) names.push('shadow_mode');
  if (rule.quotaMode) names.push('quota_mode');
  if (rule.metadata !== undefined) names.push('metadata');
  return names;
}
