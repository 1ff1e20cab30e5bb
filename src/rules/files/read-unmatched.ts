import { DEFAULT_RULE_OPTIONS, NO_LIMIT, type RuleConfig } from '../rule-config';
import { placeFrom, type SourceRange } from './problems/source-text';
import type { Fields, ReadContext } from './read-fields';
import { readRateLimit } from './read-limits';

/** What a file says about descriptors that match no rule. */
export interface Unmatched {
  readonly context: ReadContext;
  /** The key of the field that says it. */
  readonly key: SourceRange;
  /** Undefined: they are allowed. */
  readonly rule: RuleConfig | undefined;
}

const DENIED: RuleConfig = {
  key: 'on_unmatched',
  value: 'deny',
  limits: [NO_LIMIT],
  options: DEFAULT_RULE_OPTIONS,
  metadata: undefined,
  descriptors: [],
};

/**
 * Reads `default_rate_limit` and `on_unmatched`, of which a domain has at most one.
 *
 * @param before that of a file of the same domain, which has precedence
 */
export function readUnmatched(fields: Fields<'top level'>, before: Unmatched | undefined): Unmatched | undefined {
  const { context } = fields;
  let found = before;
  for (const read of [readDefault(fields), readPolicy(fields)]) {
    if (read === undefined) continue;
    if (found === undefined) found = read;
    else {
      context.report(read.key, {
        code: 'duplicate-default',
        message: `\`${read.name}\` is the second default of the domain`,
        advice:
          `The first one is at ${placeFrom(context.source, found.context.source, found.key)}; keep one ` +
          'of the two.',
      });
    }
  }
  return found;
}

interface ReadUnmatched extends Unmatched {
  readonly name: string;
}

function readDefault(fields: Fields<'top level'>): ReadUnmatched | undefined {
  const { context } = fields;
  const name = 'default_rate_limit';
  const key = fields.keyOf(name);
  const [read] = readRateLimit(context, fields.maps(name), key);
  if (read === undefined) return undefined;
  const rule = { ...DENIED, key: name, value: '', limits: [read.limit], ...context.source.position(key) };
  const location = { context, key, value: key, zero: undefined, replaces: read.replaces };
  context.locations.set(rule, { ...location, detailedMetric: undefined, valueToMetric: undefined });
  return { name, context, key, rule };
}

function readPolicy(fields: Fields<'top level'>): ReadUnmatched | undefined {
  const { context } = fields;
  const name = 'on_unmatched';
  const policy = fields.choice(name);
  if (policy === undefined) return undefined;
  const key = fields.keyOf(name);
  const rule = policy === 'deny' ? { ...DENIED, ...context.source.position(key) } : undefined;
  return { name, context, key, rule };
}
