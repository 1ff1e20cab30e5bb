import type { RuleConfig } from '../rule-config';
import { checkEffect } from './checks/check-effect';
import { FieldReader } from './fields/field-reader';
import type { ReadContext, RuleLocation } from './fields/read-context';
import { readMetadata } from './read-metadata';
import { readRateLimit, type ReadRateLimit } from './read-rate-limit';
import { oneLine, showText } from './yaml/yaml-text';
import type { YamlMap } from './yaml/yaml-tree';

/** The level of a domain's tree that descriptors are read into. */
export interface DescriptorLevel {
  /** The key path of the level above, starting with the domain, for messages. */
  readonly path: string;
  /** The rules of this level that have been read, other files' included, by key and value: a second one is a duplicate. */
  readonly siblings: Map<string, RuleLocation>;
}

/** The `descriptors` of a mapping as rules; adds them to the siblings of their level. */
export function readDescriptors(parent: FieldReader, level: DescriptorLevel): RuleConfig[] {
  return parent.list('descriptors', 'it contains no rules').map((item) => readDescriptor(parent.context, item, level));
}

export function readDescriptor(context: ReadContext, map: YamlMap, level: DescriptorLevel): RuleConfig {
  const fields = new FieldReader(context, 'descriptor', [map]);
  const key = readKey(fields);
  const value = readValue(fields);
  const path = `${level.path}.${key}${value === '' ? '' : `_${value}`}`;
  const limit = readRateLimit(fields);
  const rule: RuleConfig = {
    key,
    value,
    rateLimit: limit?.config,
    shadowMode: fields.boolean('shadow_mode'),
    quotaMode: fields.boolean('quota_mode'),
    detailedMetric: fields.boolean('detailed_metric'),
    valueToMetric: fields.boolean('value_to_metric'),
    shareThreshold: fields.boolean('share_threshold'),
    metadata: readMetadata(fields),
    descriptors: readDescriptors(fields, { path, siblings: new Map() }),
  };
  const location = locationOf(fields, limit);
  context.locations.set(rule, location);
  if (key !== '' && !fields.hasWrongType('value')) {
    const first = registerSibling(level, rule, location);
    if (first !== undefined) reportDuplicate(context, location, { path, first });
  }
  checkEffect(fields, rule);
  return rule;
}

function readKey(fields: FieldReader): string {
  const { context, start } = fields;
  const key = fields.text('key');
  const field = fields.get('key');
  if (key === '' && !fields.hasWrongType('key')) {
    const advice = 'Write `key: <key of a request entry>`.';
    context.report(field?.key ?? start, { code: 'empty-key', message: 'descriptor has empty key', advice });
  }
  if (field !== undefined && key.includes('*')) {
    const message = `the \`*\` in the key '${showText(key)}' is an ordinary character: only a \`value\` can have wildcards`;
    context.report(field.value, { code: 'wildcard-in-key', message, advice: 'Write the key in full.' });
  }
  return key;
}

function readValue(fields: FieldReader): string {
  const value = fields.text('value');
  if (value === '' && fields.get('value') !== undefined && !fields.hasWrongType('value'))
    fields.reportEmpty('value', 'the rule matches any value');
  return value;
}

/** Adds a rule to its level, unless the level has one of the same key and value: then returns where that rule is. */
function registerSibling(
  { siblings }: DescriptorLevel,
  { key, value }: RuleConfig,
  location: RuleLocation,
): RuleLocation | undefined {
  // The leading length of the key distinguishes key `a_b` with value `c` from key `a` with value `b_c`.
  const identity = `${key.length} ${key}${value}`;
  const first = siblings.get(identity);
  if (first === undefined) siblings.set(identity, location);
  return first;
}

function reportDuplicate(
  context: ReadContext,
  { key }: RuleLocation,
  { path, first }: { path: string; first: RuleLocation },
): void {
  const place = context.describe(first.key, first.source);
  context.report(key, {
    code: 'duplicate-descriptor',
    message: `duplicate descriptor composite key '${oneLine(path)}'`,
    advice: `The same key and value are at ${place}; keep one of the two rules, and nest the rules of both in it.`,
  });
}

function locationOf(fields: FieldReader, limit: ReadRateLimit | undefined): RuleLocation {
  const key = fields.get('key')?.value ?? fields.start;
  return {
    source: fields.context.source,
    key,
    value: fields.get('value')?.value ?? key,
    requestsPerUnit: limit?.requestsPerUnit,
    replaces: limit?.replaces ?? [],
    detailedMetric: fields.get('detailed_metric')?.key,
    valueToMetric: fields.get('value_to_metric')?.key,
  };
}
