import type { RuleConfig } from '../rule-config';
import { placeFrom, type SourceRange } from './problems/source-text';
import { readRateLimit } from './read-descriptors';
import type { Fields, ReadContext, RuleLocation } from './read-fields';
import { showText } from './yaml/yaml-tree';

/** What a file says about descriptors that match no rule. */
export interface Unmatched {
  readonly context: ReadContext;
  /** The key of the field that says it. */
  readonly key: SourceRange;
  /** Undefined: they are allowed. */
  readonly rule: RuleConfig | undefined;
}

const RULE: Omit<RuleConfig, 'key'> = {
  value: '',
  rateLimit: undefined,
  shadowMode: false,
  quotaMode: false,
  detailedMetric: false,
  valueToMetric: false,
  shareThreshold: false,
  metadata: undefined,
  descriptors: [],
};
const DENIED = { unit: undefined, unitMultiplier: 1, requestsPerUnit: 0, unlimited: false, name: '', replaces: [] };

/**
 * Reads `default_rate_limit` and `on_unmatched`, of which a domain has at most one.
 *
 * @param before that of a file of the same domain, which has precedence
 */
export function readUnmatched(fields: Fields<'top level'>, before: Unmatched | undefined): Unmatched | undefined {
  const { context } = fields;
  let found = before;
  for (const name of ['default_rate_limit', 'on_unmatched'] as const) {
    const field = fields.get(name);
    const rule = name === 'on_unmatched' ? readPolicy(fields) : readDefault(fields);
    if (field === undefined || rule === undefined) continue;
    const read = { context, key: field.key, rule: rule === 'allow' ? undefined : rule };
    if (found === undefined) found = read;
    else {
      context.report(field.key, {
        code: 'duplicate-default',
        message: `\`${name}\` is the second default of the domain`,
        advice: `The first one is at ${placeFrom(context.source, found.context.source, found.key)}; keep one of the two.`,
      });
    }
  }
  return found;
}

function readDefault(fields: Fields<'top level'>): RuleConfig | undefined {
  const { context } = fields;
  const key = fields.keyOf('default_rate_limit');
  const limit = readRateLimit(context, fields.maps('default_rate_limit'), key);
  return limit && located({ ...RULE, key: 'default_rate_limit', rateLimit: limit.config }, { ...limit, context, key });
}

function readPolicy(fields: Fields<'top level'>): RuleConfig | 'allow' | undefined {
  const { context } = fields;
  const text = fields.text('on_unmatched');
  if (text === 'allow') return text;
  const key = fields.keyOf('on_unmatched');
  if (text === 'deny')
    return located(
      { ...RULE, key: 'on_unmatched', value: text, rateLimit: DENIED },
      { requestsPerUnit: undefined, replaces: [], context, key },
    );
  if (text !== '') {
    context.report(fields.get('on_unmatched')?.value ?? key, {
      code: 'invalid-unmatched-policy',
      message: `invalid policy for descriptors that match no rule '${showText(text)}'`,
    });
  }
  return undefined;
}

function located(
  rule: RuleConfig,
  { context, key, requestsPerUnit, replaces }: Pick<RuleLocation, 'context' | 'key' | 'requestsPerUnit' | 'replaces'>,
): RuleConfig {
  const location = { context, key, value: key, requestsPerUnit, replaces };
  context.locations.set(rule, { ...location, detailedMetric: undefined, valueToMetric: undefined });
  return rule;
}
