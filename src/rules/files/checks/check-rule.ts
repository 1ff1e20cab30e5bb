import { Network } from '../../networks';
import type { RuleConfig } from '../../rule-config';
import { isForAnyValue } from '../../values';
import type { ProblemDetails } from '../problems/problem';
import type { Fields, RuleLocation } from '../read-fields';
import type { FieldName } from '../rule-fields';
import { showText } from '../yaml/yaml-tree';

/** What a rule can have in place of `value`; its values can share a limit. */
const MATCHERS = ['value_in', 'value_cidr', 'value_regex'] as const;

/** Reports fields of a rule that are invalid or have no effect because of another field of the same rule. */
export function checkEffect(fields: Fields<'descriptor'>, rule: RuleConfig): void {
  function report(name: FieldName<'descriptor'>, details: ProblemDetails) {
    fields.context.report(fields.keyOf(name), details);
  }
  const { limits, options } = rule;
  const isKnown = !fields.isWrong('value') && MATCHERS.every((name) => fields.get(name) === undefined);
  if (options.shareThreshold && isKnown && !rule.value.includes('*')) {
    report('share_threshold', {
      code: 'share-threshold-without-wildcard',
      message:
        `share_threshold can only be used with wildcard values (containing '*'), but found key ` +
        `'${showText(rule.key)}'`,
    });
  }
  if (options.detailedMetric && options.valueToMetric && !isReadBelow(rule)) {
    report('value_to_metric', {
      code: 'ignored-value-to-metric',
      message: '`value_to_metric` has no effect: detailed_metric already includes the values of all levels',
    });
  }
  if (options.enforcePercent !== undefined && options.shadowMode) {
    report('enforce_percent', {
      code: 'ignored-enforce-percent',
      message: '`enforce_percent` has no effect: the rule is in shadow mode',
    });
  }
  if (fields.flag('all_or_nothing')) checkAllOrNothing(fields, rule);
  const reason = whyNotLocal(rule);
  if (options.onStoreFailure === 'local' && reason !== undefined) {
    report('on_store_failure', {
      code: 'local-policy-with-algorithm',
      message: `the policy local counts in fixed windows only, and ${reason}`,
    });
  }
  if (limits.length === 0) {
    if (fields.isWrong('rate_limit') || fields.isWrong('rate_limits')) return;
    const names = limitFieldsOf(rule);
    if (options.detailedMetric) names.push('detailed_metric');
    for (const name of names) {
      report(name, {
        code: 'ignored-without-limit',
        message: `\`${name}\` has no effect: the rule has no limit`,
        advice: `Give the rule a \`rate_limit\`, or move \`${name}\` to the rule that has one.`,
      });
    }
  } else if (limits[0]?.unlimited && !options.hasLimitList) {
    for (const name of limitFieldsOf(rule)) report(name, ignoredWhenUnlimited(name));
  }
}

/** Reports an `address_prefix` that changes nothing, or that would count addresses of other rules, too. */
export function checkPrefix(fields: Fields<'descriptor'>, { value, valueCidr, options }: RuleConfig): void {
  const { context } = fields;
  const prefix = options.addressPrefix;
  if (prefix === undefined) return;
  const isOneCounter = options.shareThreshold || (value !== '' && !value.includes('*'));
  if (isOneCounter) {
    const reason = options.shareThreshold ? 'all values of the rule share a counter' : 'the rule has one value';
    const message = `\`address_prefix\` has no effect: ${reason}`;
    context.report(fields.keyOf('address_prefix'), { code: 'address-prefix-without-effect', message });
  }
  const network = valueCidr === undefined ? undefined : Network.parse(valueCidr);
  if (network === undefined || prefix[network.family] >= network.bits) return;
  const { family, bits, most } = network;
  context.report(fields.keyOf('address_prefix'), {
    code: 'address-prefix-too-short',
    message: `the ${family} prefix of ${prefix[family]} bits is shorter than that of ${valueCidr}`,
    advice: `Write ${family} from ${bits} to ${most}: counters of a shorter prefix would be those of other rules, too.`,
  });
}

function checkAllOrNothing(fields: Fields<'descriptor'>, { limits, options: { hasLimitList } }: RuleConfig): void {
  function report(details: ProblemDetails) {
    fields.context.report(fields.keyOf('all_or_nothing'), details);
  }
  if (!hasLimitList) {
    if (fields.isWrong('rate_limits')) return;
    report({ code: 'all-or-nothing-without-limits', message: '`all_or_nothing` needs `rate_limits`' });
  } else if (limits.some(({ algorithm }) => algorithm === 'max_concurrent')) {
    const message =
      '`all_or_nothing` has no meaning with `max_concurrent`: calls take nothing, and a reservation ' +
      'takes all or nothing';
    report({ code: 'max-concurrent-combined', message });
  } else if (limits[0]?.postpaid === true) {
    report({ code: 'ignored-all-or-nothing', message: '`all_or_nothing` has no effect: the limits are postpaid' });
  } else if (limits.some(({ lease }) => lease === true)) {
    report({
      code: 'lease-with-all-or-nothing',
      message: 'a limit of the rule has `lease`, but `all_or_nothing` decides every call in the store',
    });
  }
}

/** Why a rule needs a store with scripts; undefined: it does not. */
function whyNotLocal({ limits, options }: RuleConfig): string | undefined {
  const algorithm = limits.find((limit) => limit.algorithm !== undefined)?.algorithm;
  if (algorithm === 'max_concurrent') return 'the limit has `max_concurrent`';
  if (algorithm !== undefined) return `the limit is a ${algorithm}`;
  if (options.allOrNothing) return 'the rule has `all_or_nothing`';
  return limits.some(({ blockFor }) => blockFor !== undefined) ? 'the limit has `block_for`' : undefined;
}

/** The problem of a field that has an effect only in a limit that counts. */
export function ignoredWhenUnlimited(name: string): ProblemDetails {
  return {
    code: 'ignored-when-unlimited',
    message: `\`${name}\` has no effect: the rule is unlimited`,
    advice: `Remove \`${name}\` or \`unlimited\`.`,
  };
}

/**
 * Whether the `value_to_metric` of a rule has an effect in rules nested in it: those with a limit and without
 * `detailed_metric`.
 */
function isReadBelow({ descriptors }: RuleConfig): boolean {
  return descriptors.some(
    (nested) => (nested.limits.length > 0 && !nested.options.detailedMetric) || isReadBelow(nested),
  );
}

/** The fields set in a rule that have an effect only with a limit that counts. */
function limitFieldsOf({ options, metadata }: RuleConfig): FieldName<'descriptor'>[] {
  const names: FieldName<'descriptor'>[] = [];
  if (options.shadowMode) names.push('shadow_mode');
  if (options.enforcePercent !== undefined) names.push('enforce_percent');
  if (options.quotaMode) names.push('quota_mode');
  if (options.onStoreFailure !== undefined) names.push('on_store_failure');
  if (metadata !== undefined) names.push('metadata');
  return names;
}

/** Where the rules are that are checked. */
export type Locations = ReadonlyMap<RuleConfig, RuleLocation>;

/** Keys whose values are addresses of the proxy's clients: there are as many values as clients. */
const UNBOUNDED_KEYS = new Set(['remote_address', 'masked_remote_address']);

/**
 * Warns about rules that put an unbounded set of values into statistics keys. Only keys that the proxy itself fills in
 * are checked: how many values another key has is not known.
 * @param path the rule, preceded by the rules that contain it
 */
export function checkMetric(rule: RuleConfig, path: readonly RuleConfig[], locations: Locations): void {
  if (rule.limits.length === 0) return;
  // `detailed_metric` of the rule with the limit writes the values of all levels; `value_to_metric` that of its own
  // level.
  for (const level of path) {
    if (!isUnbounded(level)) continue;
    if (rule.options.detailedMetric) warn(level, 'detailed_metric', rule);
    else if (level.options.valueToMetric) warn(level, 'value_to_metric', level);
  }

  function warn(level: RuleConfig, field: 'detailed_metric' | 'value_to_metric', owner: RuleConfig) {
    const location = locations.get(owner);
    const range = field === 'detailed_metric' ? location?.detailedMetric : location?.valueToMetric;
    if (range === undefined) return;
    location?.context.report(range, {
      code: 'unbounded-metric',
      message: `\`${field}\` creates separate statistics for every ${level.key}`,
      advice: `Remove ${field}; above a maximum, such statistics are counted under the rule's plain key anyway.`,
    });
  }
}

function isUnbounded({ key, value, valueIn, options }: RuleConfig): boolean {
  const isBounded = valueIn !== undefined || (value !== '' && !value.includes('*'));
  return UNBOUNDED_KEYS.has(key) && !options.shareThreshold && !isBounded;
}

/**
 * Warns about a limit of 0, which rejects every request that matches, where no level of the path has a `value`:
 * elsewhere 0 often means "no limit". A `value`, or what is in its place, on any level, even `*`, shows that the ban is
 * intended.
 * @param path the rule, preceded by the rules that contain it
 */
export function checkZeroLimit(rule: RuleConfig, path: readonly RuleConfig[], locations: Locations): void {
  const location = locations.get(rule);
  if (location?.zero === undefined || rule.options.shadowMode || !path.every(isForAnyValue)) return;
  location.context.report(location.zero, {
    code: 'zero-limit-for-all',
    message: 'a limit of 0 rejects every request with this key, for every value',
  });
}
