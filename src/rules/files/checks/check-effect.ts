import type { RuleConfig } from '../../rule-config';
import type { Fields } from '../fields/fields';
import type { Reading } from '../fields/reading';
import { showText } from '../yaml/yaml-text';

/** Says which fields of a rule cannot do what they are there for, because of another field of the same rule. */
export function checkEffect(reading: Reading, rule: RuleConfig, fields: Fields): void {
  if (rule.shareThreshold && !rule.value.includes('*')) {
    const message = `share_threshold can only be used with wildcard values (containing '*'), but found key '${showText(rule.key)}'`;
    const advice = 'Write a `value` with a `*`, or take share_threshold out.';
    reading.say(keyOf(fields, 'share_threshold'), 'share-threshold-without-wildcard', message, advice);
  }
  if (rule.detailedMetric && rule.valueToMetric) {
    const message = '`value_to_metric` has no effect: detailed_metric writes the values of all levels already';
    const advice = 'Take one of the two out.';
    reading.say(keyOf(fields, 'value_to_metric'), 'ignored-value-to-metric', message, advice);
  }
  if (rule.rateLimit === undefined) {
    for (const name of setOf(rule, 'detailed_metric')) {
      const message = `\`${name}\` has no effect: the rule has no limit`;
      const advice = `Give the rule a \`rate_limit\`, or move \`${name}\` to the rule that has it.`;
      reading.say(keyOf(fields, name), 'ignored-without-limit', message, advice);
    }
  } else if (rule.rateLimit.unlimited) {
    for (const name of setOf(rule)) {
      const message = `\`${name}\` has no effect: the rule is unlimited`;
      const advice = `Take \`${name}\` or \`unlimited\` out.`;
      reading.say(keyOf(fields, name), 'ignored-when-unlimited', message, advice);
    }
  }
}

/** Which of the fields are set that only a counted limit gives a meaning to. */
function setOf(rule: RuleConfig, ...more: 'detailed_metric'[]): readonly string[] {
  const set: string[] = [];
  if (rule.shadowMode) set.push('shadow_mode');
  if (rule.quotaMode) set.push('quota_mode');
  if (rule.metadata !== undefined) set.push('metadata');
  if (rule.detailedMetric && more.length > 0) set.push('detailed_metric');
  return set;
}

function keyOf(fields: Fields, name: string) {
  return fields.get(name)?.key ?? { offset: 0, end: 0 };
}
