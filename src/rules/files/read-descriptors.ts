import { KEY_TOLERANCE, nearestName } from '../../text/nearest-name';
import {
  ALGORITHMS,
  type AlgorithmName,
  type CalendarConfig,
  FAILURE_POLICIES,
  type FailurePolicy,
  type RateLimitConfig,
  type RuleConfig,
} from '../rule-config';
import { valueText } from '../values';
import { MAX_FILL_SECONDS, MAX_WINDOW_SECONDS, UNIT_NAMES, unitByName, type UnitName, windowText } from '../unit';
import { checkEffect, ignoredWhenUnlimited } from './checks/check-rule';
import { placeFrom, rangeOnly, type SourceRange } from './problems/source-text';
import { readCalendar } from './read-calendar';
import { checkBlanks, countAdvice, Fields, type ReadContext, type RuleLocation } from './read-fields';
import { readMetadata } from './read-metadata';
import { type ReadValues, readValues } from './read-values';
import type { FieldName } from './rule-fields';
import { oneLine, showText, type YamlMap } from './yaml/yaml-tree';

/** The level of a domain's tree that descriptors are read into. */
export interface DescriptorLevel {
  /** The key path of the level above, starting with the domain, for messages. */
  readonly path: string;
  /** The rules of this level that have been read, other files' included, by key and value: a second one is a duplicate. */
  readonly siblings: Map<string, RuleLocation>;
  /** How many of them have a regular expression. */
  regexes: number;
  /** How many rules of all levels have one. */
  readonly all: { regexes: number };
}

/** Regular expressions of a level, and of all rules: each takes memory, and those of a level are tried one after the other. */
const MAX_REGEXES_OF_LEVEL = 1_000;
const MAX_REGEXES = 10_000;

/** Reads a descriptor and those nested in it as rules; adds it to the siblings of its level. */
export function readDescriptor(context: ReadContext, map: YamlMap, level: DescriptorLevel): RuleConfig {
  const fields = new Fields(context, 'descriptor', [map]);
  const key = readKey(fields);
  const values = readValues(fields);
  const limits = readLimits(fields);
  const [limit] = limits;
  const rule: RuleConfig = {
    key,
    ...values.config,
    rateLimit: limit?.config,
    ...(fields.maps('rate_limits').length > 0 && { rateLimits: limits.map(({ config }) => config) }),
    ...(fields.flag('all_or_nothing') && { allOrNothing: true }),
    shadowMode: fields.flag('shadow_mode'),
    enforcePercent: fields.count('enforce_percent'),
    quotaMode: fields.flag('quota_mode'),
    onStoreFailure: readFailurePolicy(fields),
    detailedMetric: fields.flag('detailed_metric'),
    valueToMetric: fields.flag('value_to_metric'),
    shareThreshold: fields.flag('share_threshold'),
    metadata: readMetadata(fields),
    descriptors: readNested(fields, level, { key, value: valueText(values.config) }),
  };
  const keyRange = rangeOnly(fields.get('key')?.value ?? fields.start);
  const { requestsPerUnit } = limits.find(({ config }) => config.requestsPerUnit === 0) ?? limit ?? {};
  const location: RuleLocation = {
    context,
    key: keyRange,
    value: values.range === undefined ? keyRange : rangeOnly(values.range),
    requestsPerUnit: requestsPerUnit && rangeOnly(requestsPerUnit),
    replaces: orNone(limits.flatMap(({ replaces }) => replaces)),
    detailedMetric: fields.get('detailed_metric')?.key,
    valueToMetric: fields.get('value_to_metric')?.key,
  };
  context.locations.set(rule, location);
  if (key !== '') checkDuplicates({ level, rule, location, values });
  if (rule.valueRegex !== undefined) countRegex(level, location);
  checkEffect(fields, rule);
  return rule;
}

const NONE: readonly never[] = [];

/** A list that rules keep: all that are empty are the same one, as 100,000 rules have three of them each. */
function orNone<T>(items: readonly T[]): readonly T[] {
  return items.length === 0 ? NONE : items;
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
    const message = `the \`*\` in the key '${showText(key)}' is an ordinary character: only a \`value\` can have wildcards`;
    context.report(value, { code: 'wildcard-in-key', message });
  }
  return key;
}

function readFailurePolicy(fields: Fields<'descriptor'>): FailurePolicy | undefined {
  const text = fields.text('on_store_failure');
  const policy = FAILURE_POLICIES.find((name) => name === text);
  if (policy !== undefined || text === '') return policy;
  fields.context.report(fields.get('on_store_failure')?.value ?? fields.start, {
    code: 'invalid-failure-policy',
    message: `invalid policy for a failure of the store '${showText(text)}'`,
  });
  return undefined;
}

function pathTo(level: DescriptorLevel, key: string, value: string): string {
  return `${level.path}.${key}${value === '' ? '' : `_${value}`}`;
}

interface ReadRule {
  readonly level: DescriptorLevel;
  readonly rule: RuleConfig;
  readonly location: RuleLocation;
  readonly values: ReadValues;
}

/** Adds a rule to its level, unless the level has one of the same key and value, which is reported. */
function checkDuplicates({ level, rule: { key }, location, values }: ReadRule): void {
  const { context } = location;
  for (const { kind, text, range } of values.identities) {
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

/** A `rate_limit` block, with the ranges that the checks need. */
export interface ReadRateLimit {
  readonly config: RateLimitConfig;
  /** Of what says its window. */
  readonly range: SourceRange;
  readonly requestsPerUnit: SourceRange | undefined;
  readonly replaces: readonly SourceRange[];
}

/** Each limit of a rule is one more counter for each of its calls. */
const MAX_LIMITS = 10;

/** The limit of a rule, or its `rate_limits`. */
function readLimits(fields: Fields<'descriptor'>): readonly ReadRateLimit[] {
  const { context } = fields;
  const maps = fields.maps('rate_limits');
  const limit = readRateLimit(context, fields.maps('rate_limit'), fields.keyOf('rate_limit'));
  if (maps.length === 0) return limit === undefined ? [] : [limit];
  const key = fields.keyOf('rate_limits');
  if (limit !== undefined)
    context.report(key, {
      code: 'rate-limit-and-limits',
      message: 'the rule has both `rate_limit` and `rate_limits`',
    });
  if (maps.length > MAX_LIMITS)
    context.report(key, { code: 'too-many-limits', message: `a rule has at most ${MAX_LIMITS} limits` });
  const limits = maps.slice(0, MAX_LIMITS).flatMap((map) => readRateLimit(context, [map], map) ?? []);
  for (const [index, each] of limits.entries()) checkAmongLimits(context, each, limits.slice(0, index));
  const names = new Set(limits.map(({ config }) => config.name));
  for (const { config, replaces } of limits)
    for (const [index, name] of config.replaces.entries())
      if (names.has(name)) context.report(replaces[index]!, REPLACES_ITSELF);
  return limits;
}

/** Reports what is not possible in a limit because there are others. @param before the limits before it */
function checkAmongLimits(
  context: ReadContext,
  { config, range }: ReadRateLimit,
  before: readonly ReadRateLimit[],
): void {
  const { unit, unitMultiplier, unlimited } = config;
  if (unlimited) {
    context.report(range, {
      code: 'unlimited-among-limits',
      message: 'a limit in `rate_limits` cannot be unlimited',
    });
  }
  if (unit === undefined) return;
  const seconds = unitMultiplier * secondsOf(unit);
  const isKnown = before.some(
    ({ config: other }) => other.unit !== undefined && other.unitMultiplier * secondsOf(other.unit) === seconds,
  );
  if (!isKnown) return;
  context.report(range, {
    code: 'same-window',
    message: `a limit of the rule before this one has a window as long as ${windowText(unit, unitMultiplier)}`,
  });
}

/** The fields of a `rate_limit` block, and what reading each of them depends on. */
interface LimitFields {
  readonly fields: Fields<'rate_limit'>;
  /** The key of the block, to mark in a message about an absent field. */
  readonly key: SourceRange;
  readonly unlimited: boolean;
}

/** The limit in these mappings; undefined when there is none, or only an invalid one. @param key marked for what is absent */
export function readRateLimit(
  context: ReadContext,
  maps: readonly YamlMap[],
  key: SourceRange,
): ReadRateLimit | undefined {
  if (maps.length === 0) return undefined;
  const fields = new Fields(context, 'rate_limit', maps);
  const unlimited = fields.flag('unlimited');
  const name = fields.text('name');
  const replaces = readReplaces(fields, name);
  const limit = { fields, key, unlimited };
  const unit = readUnit(limit);
  const unitMultiplier = readUnitMultiplier(limit, unit);
  const requestsPerUnit = readRequestsPerUnit(limit);
  const window = unit === undefined ? 0 : unitMultiplier * secondsOf(unit);
  return {
    config: shared(context, {
      unit,
      unitMultiplier,
      calendar: readLimitCalendar(limit, unit),
      requestsPerUnit,
      algorithm: readAlgorithm(limit),
      burst: readBurst(limit, requestsPerUnit, window),
      unlimited,
      name,
      replaces: orNone(replaces.map((entry) => entry.name)),
    }),
    range: fields.get(unlimited ? 'unlimited' : 'unit')?.value ?? key,
    requestsPerUnit: fields.get('requests_per_unit')?.value,
    replaces: replaces.map((entry) => entry.range),
  };
}

/** Limits of one source that are compared: where each rule has another one, nothing is saved, and their texts take more than they. */
const MAX_SHARED_LIMITS = 10_000;

/** The limit of this source that is equal. */
function shared({ limits }: ReadContext, limit: RateLimitConfig): RateLimitConfig {
  const text = JSON.stringify(limit);
  const known = limits.get(text);
  if (known === undefined && limits.size < MAX_SHARED_LIMITS) limits.set(text, limit);
  return known ?? limit;
}

const UNITS = UNIT_NAMES.filter((name) => name !== 'UNKNOWN').map((name) => name.toLowerCase());

function readUnit({ fields, key, unlimited }: LimitFields): UnitName | undefined {
  const value = fields.get('unit')?.value;
  const text = fields.text('unit');
  // An invalid unit would be a second message for the same mistake.
  if (fields.isWrong('unit') || (text === '' && (unlimited || fields.isWrong('unlimited')))) return undefined;
  const unit = unitByName(text);
  if (unlimited) {
    if (unit === undefined) reportIgnored(fields, 'unit');
    else {
      fields.context.report(value ?? key, {
        code: 'unit-when-unlimited',
        message: 'should not specify rate limit unit when unlimited',
      });
    }
    return undefined;
  }
  if (unit !== undefined) return unit.name;
  const nearest = nearestName(text, UNITS, KEY_TOLERANCE);
  const choice = `The units are ${UNITS.join(', ')}.`;
  fields.context.report(value ?? key, {
    code: 'invalid-unit',
    message: `invalid rate limit unit '${showText(text)}'`,
    advice: nearest === undefined ? choice : `Did you mean \`${nearest}\`? ${choice}`,
  });
  return undefined;
}

/** @param name undefined: the limit has no valid unit */
function readUnitMultiplier({ fields, unlimited }: LimitFields, name: UnitName | undefined): number {
  const value = fields.get('unit_multiplier')?.value;
  const multiplier = fields.count('unit_multiplier');
  if (value === undefined || multiplier === undefined || fields.isWrong('unit_multiplier')) return 1;
  if (unlimited) reportIgnored(fields, 'unit_multiplier');
  else if (name !== undefined && multiplier * secondsOf(name) > MAX_WINDOW_SECONDS) {
    fields.context.report(value, {
      code: 'window-too-long',
      message: `a window of ${windowText(name, multiplier)} is longer than 10 years`,
      advice: `The largest unit_multiplier of \`${name.toLowerCase()}\` is ${Math.floor(MAX_WINDOW_SECONDS / secondsOf(name))}.`,
    });
  } else return multiplier;
  return 1;
}

function readLimitCalendar({ fields, unlimited }: LimitFields, unit: UnitName | undefined): CalendarConfig | undefined {
  if (!unlimited) return readCalendar(fields, unit);
  if (fields.get('calendar') !== undefined) reportIgnored(fields, 'calendar');
  return undefined;
}

function secondsOf(name: UnitName): number {
  return unitByName(name)!.seconds;
}

function readRequestsPerUnit({ fields, key, unlimited }: LimitFields): number {
  const requests = fields.count('requests_per_unit');
  if (requests !== undefined) {
    // Tools that write every field write 0.
    if (unlimited && requests > 0) reportIgnored(fields, 'requests_per_unit');
    return unlimited ? 0 : requests;
  }
  if (!unlimited && !fields.isWrong('unlimited')) {
    fields.context.report(fields.get('requests_per_unit')?.key ?? key, {
      code: 'missing-requests-per-unit',
      message: '`rate_limit` has no requests_per_unit',
      advice: `${countAdvice(0)} \`unlimited: true\` allows every request, 0 allows none.`,
    });
  }
  return 0;
}

function readAlgorithm({ fields, unlimited }: LimitFields): AlgorithmName | undefined {
  const text = fields.text('algorithm');
  if (text === '' || fields.isWrong('algorithm')) return undefined;
  if (unlimited) reportIgnored(fields, 'algorithm');
  else if (isAlgorithm(text)) return text === 'fixed_window' ? undefined : text;
  else {
    const message = `invalid algorithm '${showText(text)}'`;
    fields.context.report(fields.get('algorithm')?.value ?? fields.start, { code: 'invalid-algorithm', message });
  }
  return undefined;
}

function isAlgorithm(text: string): text is (typeof ALGORITHMS)[number] {
  return (ALGORITHMS as readonly string[]).includes(text);
}

function readBurst({ fields, unlimited }: LimitFields, requestsPerUnit: number, window: number): number | undefined {
  const value = fields.get('burst')?.value;
  const burst = fields.count('burst');
  const algorithm = fields.text('algorithm');
  if (value === undefined || burst === undefined || fields.isWrong('burst')) return undefined;
  if (unlimited) reportIgnored(fields, 'burst');
  else if (algorithm !== 'token_bucket') {
    // An unknown algorithm is reported already.
    if (algorithm !== '' && !isAlgorithm(algorithm)) return undefined;
    const message = '`burst` has a meaning only for a token bucket';
    fields.context.report(fields.keyOf('burst'), { code: 'burst-without-token-bucket', message });
  } else if (burst * window > MAX_FILL_SECONDS * requestsPerUnit) {
    const most = Math.floor((MAX_FILL_SECONDS * requestsPerUnit) / window);
    fields.context.report(value, {
      code: 'burst-too-long',
      message: `a bucket of ${burst} tokens takes more than 100 years to fill`,
      advice: most === 0 ? 'Remove `burst`: no tokens flow in.' : `The largest burst of this rate is ${most}.`,
    });
  } else return burst;
  return undefined;
}

function reportIgnored(fields: Fields<'rate_limit'>, name: FieldName<'rate_limit'>): void {
  fields.context.report(fields.keyOf(name), ignoredWhenUnlimited(name));
}

interface ReplacesEntry {
  readonly name: string;
  readonly range: SourceRange;
}

const REPLACES_ITSELF = {
  code: 'replaces-itself',
  message: 'replaces should not contain name of same descriptor',
} as const;

function readReplaces(fields: Fields<'rate_limit'>, ownName: string): readonly ReplacesEntry[] {
  const entries: ReplacesEntry[] = [];
  for (const item of fields.maps('replaces')) {
    const inner = new Fields(fields.context, 'replaces', [item]);
    const name = inner.text('name');
    const range = inner.get('name')?.value ?? item;
    if (name === '') {
      if (inner.isWrong('name')) continue;
      fields.context.report(range, { code: 'empty-replaces', message: 'should not have an empty replaces entry' });
    } else if (name === ownName) {
      fields.context.report(range, REPLACES_ITSELF);
    } else {
      entries.push({ name, range });
    }
  }
  return entries;
}
