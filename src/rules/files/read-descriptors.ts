import type { AddressPrefix } from '../networks';
import { DEFAULT_RULE_OPTIONS, type RuleConfig, type RuleLimit, type RuleOptions } from '../rule-config';
import { valueText } from '../values';
import { checkEffect, checkPrefix } from './checks/check-rule';
import { placeFrom, rangeOnly } from './problems/source-text';
import { checkBlanks, Fields, type ReadContext, type RuleLocation } from './read-fields';
import { readLimits } from './read-limits';
import { readMetadata } from './read-metadata';
import { type ReadValues, readValues } from './read-values';
import { oneLine, showText, type YamlMap } from './yaml/yaml-tree';

/** The level of a domain's tree that descriptors are read into. */
export interface DescriptorLevel {
  /** The key path of the level above, starting with the domain, for messages. */
  readonly path: string;
  /**
   * The rules of this level that have been read, other files' included, by key and value: a second one is a duplicate.
   */
  readonly siblings: Map<string, RuleLocation>;
  /** How many of them have a regular expression. */
  regexes: number;
  /** How many rules of all levels have one. */
  readonly all: { regexes: number };
}

/**
 * Regular expressions of a level, and of all rules: each takes memory, and those of a level are tried one after the
 * other.
 */
const MAX_REGEXES_OF_LEVEL = 1_000;
const MAX_REGEXES = 10_000;

const NONE: readonly never[] = [];

/** Reads a descriptor and those nested in it as rules; adds it to the siblings of its level. */
export function readDescriptor(context: ReadContext, map: YamlMap, level: DescriptorLevel): RuleConfig {
  const fields = new Fields(context, 'descriptor', [map]);
  const key = readKey(fields);
  const values = readValues(fields);
  const read = readLimits(fields);
  const limits = read.length === 0 ? NONE : context.shared(read.map(({ limit }) => limit));
  const zero = read.find((each) => each.zero !== undefined)?.zero;
  const keyRange = rangeOnly(fields.get('key')?.value ?? fields.start);
  const rule: RuleConfig = {
    key,
    ...values.config,
    limits,
    options: readOptions(fields, limits),
    metadata: readMetadata(fields),
    descriptors: readNested(fields, level, { key, value: valueText(values.config) }),
    ...context.source.position(keyRange),
  };
  const location: RuleLocation = {
    context,
    key: keyRange,
    value: values.range === undefined ? keyRange : rangeOnly(values.range),
    zero: zero && rangeOnly(zero),
    replaces: read.flatMap(({ replaces }) => replaces),
    detailedMetric: fields.get('detailed_metric')?.key,
    valueToMetric: fields.get('value_to_metric')?.key,
  };
  context.locations.set(rule, location);
  if (key !== '') checkDuplicates(level, location, { key, identities: values.identities });
  if (rule.valueRegex !== undefined) countRegex(level, location);
  checkEffect(fields, rule);
  checkPrefix(fields, rule);
  return rule;
}

const OPTION_FIELDS = [
  ...(['rate_limits', 'all_or_nothing', 'shadow_mode', 'enforce_percent', 'quota_mode', 'on_store_failure'] as const),
  ...(['detailed_metric', 'value_to_metric', 'share_threshold', 'address_prefix'] as const),
];

function readOptions(fields: Fields<'descriptor'>, limits: readonly RuleLimit[]): RuleOptions {
  if (OPTION_FIELDS.every((name) => fields.get(name) === undefined)) return DEFAULT_RULE_OPTIONS;
  return fields.context.shared({
    hasLimitList: fields.maps('rate_limits').length > 0,
    allOrNothing: fields.flag('all_or_nothing') && limits[0]?.postpaid !== true,
    shadowMode: fields.flag('shadow_mode'),
    enforcePercent: fields.count('enforce_percent'),
    quotaMode: fields.flag('quota_mode'),
    onStoreFailure: fields.choice('on_store_failure'),
    detailedMetric: fields.flag('detailed_metric'),
    valueToMetric: fields.flag('value_to_metric'),
    shareThreshold: fields.flag('share_threshold'),
    addressPrefix: readAddressPrefix(fields),
  });
}

/** The prefixes of most rules: an address of IPv4, and the network that one customer of IPv6 has at least. */
const DEFAULT_PREFIX: AddressPrefix = { ipv4: 32, ipv6: 64 };

function readAddressPrefix(fields: Fields<'descriptor'>): AddressPrefix | undefined {
  const maps = fields.maps('address_prefix');
  if (maps.length === 0) return undefined;
  const inner = new Fields(fields.context, 'address_prefix', maps);
  const { ipv4, ipv6 } = { ipv4: inner.count('ipv4'), ipv6: inner.count('ipv6') };
  if (ipv4 === undefined && ipv6 === undefined && !inner.isWrong('ipv4') && !inner.isWrong('ipv6')) {
    const message = '`address_prefix` has neither `ipv4` nor `ipv6`';
    fields.context.report(fields.keyOf('address_prefix'), { code: 'invalid-address-prefix', message });
  }
  return { ipv4: ipv4 ?? DEFAULT_PREFIX.ipv4, ipv6: ipv6 ?? DEFAULT_PREFIX.ipv6 };
}

/** The descriptors nested in a rule. @param value its text */
function readNested(
  fields: Fields<'descriptor'>,
  level: DescriptorLevel,
  { key, value }: Pick<RuleConfig, 'key' | 'value'>,
): readonly RuleConfig[] {
  const maps = fields.maps('descriptors');
  if (maps.length === 0) return NONE;
  const nested: DescriptorLevel = { path: pathTo(level, key, value), siblings: new Map(), regexes: 0, all: level.all };
  return maps.map((map) => readDescriptor(fields.context, map, nested));
}

function readKey(fields: Fields<'descriptor'>): string {
  const { context } = fields;
  const key = fields.text('key');
  if (key === '' && !fields.isWrong('key')) {
    context.report(fields.keyOf('key'), { code: 'empty-key', message: 'descriptor has empty key' });
  }
  const value = fields.get('key')?.value;
  checkBlanks(context, value, 'key');
  if (value !== undefined && key.includes('*')) {
    const shown = showText(key);
    const message = `the \`*\` in the key '${shown}' is an ordinary character: only a \`value\` can have wildcards`;
    context.report(value, { code: 'wildcard-in-key', message });
  }
  return key;
}

function pathTo(level: DescriptorLevel, key: string, value: string): string {
  return `${level.path}.${key}${value === '' ? '' : `_${value}`}`;
}

/** Adds a rule to its level, unless the level has one of the same key and value, which is reported. */
function checkDuplicates(
  level: DescriptorLevel,
  location: RuleLocation,
  { key, identities }: Pick<RuleConfig, 'key'> & Pick<ReadValues, 'identities'>,
): void {
  const { context } = location;
  for (const { kind, text, range } of identities) {
    // The leading length of the key distinguishes key `a_b` with value `c` from key `a` with value `b_c`.
    const identity = `${kind}${key.length} ${key}${text}`;
    const first = level.siblings.get(identity);
    if (first === undefined) {
      level.siblings.set(identity, location);
      continue;
    }
    const place = placeFrom(context.source, first.context.source, first.key);
    context.report(range ?? location.key, {
      code: 'duplicate-descriptor',
      message: `duplicate descriptor composite key '${oneLine(pathTo(level, key, text))}'`,
      advice:
        first === location
          ? 'Write each value once.'
          : `The same key and value are at ${place}; keep one of the two rules, and nest the rules of both in it.`,
    });
  }
}

/** Reports the first regular expression that is one too many. */
function countRegex(level: DescriptorLevel, { context, value }: RuleLocation): void {
  level.regexes += 1;
  level.all.regexes += 1;
  const isLevel = level.regexes === MAX_REGEXES_OF_LEVEL + 1;
  if (!isLevel && level.all.regexes !== MAX_REGEXES + 1) return;
  const most = isLevel ? `${MAX_REGEXES_OF_LEVEL} of one level` : `${MAX_REGEXES} in all`;
  context.report(value, { code: 'too-many-regexes', message: `more regular expressions than ${most}` });
}
