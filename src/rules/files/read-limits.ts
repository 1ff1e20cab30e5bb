import { MAX_UINT32 } from '../../text/plain-number';
import { KEY_TOLERANCE, nearestName } from '../../text/nearest-name';
import { LARGEST_LIMIT, NO_LIMIT, type RuleLimit } from '../rule-config';
import { areDisjoint } from '../schedule';
import {
  MAX_FILL_SECONDS,
  MAX_WINDOW_SECONDS,
  UNITS,
  UNIT_NAMES,
  type UnitName,
  unitByName,
  windowText,
} from '../unit';
import { ignoredWhenUnlimited } from './checks/check-rule';
import type { SourceRange } from './problems/source-text';
import { readActive } from './read-active';
import { readBlock } from './read-block';
import { readCalendar } from './read-calendar';
import { Fields, type ReadContext, countAdvice } from './read-fields';
import { type Choice, FIELDS, type FieldName } from './rule-fields';
import { showText, type YamlMap } from './yaml/yaml-tree';

const NONE: readonly never[] = [];

/** A limit of a rule, with the ranges that the checks need. */
interface ReadLimit {
  readonly limit: RuleLimit;
  /** Where the window of the limit is written. */
  readonly range: SourceRange;
  /** Where its number is written, if that is 0. */
  readonly zero: SourceRange | undefined;
  /** Where each name in `replaces` is. */
  readonly replaces: readonly SourceRange[];
}

/** Each limit of a rule is one more counter for each of its calls. */
const MAX_LIMITS = 10;

/** The limit of a rule, or its `rate_limits`. */
export function readLimits(fields: Fields<'descriptor'>): readonly ReadLimit[] {
  const { context } = fields;
  const maps = fields.maps('rate_limits');
  const single = readRateLimit(context, fields.maps('rate_limit'), fields.keyOf('rate_limit'));
  if (maps.length === 0) return single;
  const key = fields.keyOf('rate_limits');
  if (single.length > 0)
    context.report(key, {
      code: 'rate-limit-and-limits',
      message: 'the rule has both `rate_limit` and `rate_limits`',
    });
  if (maps.length > MAX_LIMITS)
    context.report(key, { code: 'too-many-limits', message: `a rule has at most ${MAX_LIMITS} limits` });
  const limits = maps.slice(0, MAX_LIMITS).map((map) => readLimit(context, [map], map));
  for (const [index, each] of limits.entries()) checkAmongLimits(context, each, limits.slice(0, index));
  const counting = limits.filter(({ limit }) => limit.algorithm !== 'max_concurrent');
  const different = counting.find(({ limit }) => limit.postpaid !== counting[0]!.limit.postpaid);
  if (different !== undefined)
    context.report(different.range, {
      code: 'mixed-postpaid',
      message:
        '`postpaid` is not the same in all limits of the rule, so that hits would be reported for ' +
        'some and not for others',
    });
  const names = new Set(limits.map(({ limit }) => limit.name));
  for (const { limit, replaces } of limits)
    for (const [index, name] of limit.replaces.entries())
      if (names.has(name)) context.report(replaces[index]!, REPLACES_ITSELF);
  return limits;
}

/**
 * The limit in these mappings, if there are any. @param key that of the block, to mark in a message about an absent
 * field
 */
export function readRateLimit(context: ReadContext, maps: readonly YamlMap[], key: SourceRange): readonly ReadLimit[] {
  return maps.length === 0 ? NONE : [readLimit(context, maps, key)];
}

/** Reports what is not possible in a limit because there are others. @param before the limits before it */
function checkAmongLimits(context: ReadContext, { limit, range }: ReadLimit, before: readonly ReadLimit[]): void {
  const { unit, unitMultiplier, unlimited, active } = limit;
  if (unlimited) {
    context.report(range, {
      code: 'unlimited-among-limits',
      message: 'a limit in `rate_limits` cannot be unlimited',
    });
  }
  const same = before.filter((other) => windowOf(other.limit) === windowOf(limit));
  // Limits that alternate have one counter, whichever of them applies.
  const alternates = same.every((other) => active && other.limit.active && areDisjoint(active, other.limit.active));
  if (unit === undefined || alternates) return;
  const what = unit === 'UNKNOWN' ? 'no window, either' : `a window as long as ${windowText(unit, unitMultiplier)}`;
  context.report(range, { code: 'same-window', message: `a limit of the rule before this one has ${what}` });
}

/** In seconds; 0 for a limit without a window. */
function windowOf({ unit, unitMultiplier }: Pick<RuleLimit, 'unit' | 'unitMultiplier'>): number {
  return unit === undefined || unit === 'UNKNOWN' ? 0 : unitMultiplier * UNITS[unit].seconds;
}

function readLimit(context: ReadContext, maps: readonly YamlMap[], key: SourceRange): ReadLimit {
  const fields = new Fields(context, 'rate_limit', maps);
  const name = fields.text('name');
  const { names, ranges } = readReplaces(fields, name);
  if (fields.flag('unlimited')) {
    reportIgnored(fields);
    const limit = { ...NO_LIMIT, unlimited: true, name, replaces: names };
    return { limit, range: fields.get('unlimited')?.value ?? key, zero: undefined, replaces: ranges };
  }
  if (fields.given('max_concurrent') !== undefined || fields.isWrong('max_concurrent'))
    return readConcurrent(fields, { names, ranges }, key);
  const unit = readUnit(fields, key);
  const unitMultiplier = readUnitMultiplier(fields, unit);
  const algorithm = fields.choice('algorithm');
  const requestsPerUnit = readRequestsPerUnit(fields, key, algorithm);
  const window = windowOf({ unit, unitMultiplier });
  const burst = readBurst(fields, requestsPerUnit, window);
  const [lease, postpaid] = [readLease(fields), fields.flag('postpaid')];
  return {
    // Not in parts that are joined: each limit would then have a description of its fields of its own, which takes 350
    // bytes.
    limit: {
      unit,
      unitMultiplier,
      calendar: readCalendar(fields, unit),
      requestsPerUnit,
      algorithm: algorithm === 'fixed_window' ? undefined : algorithm,
      burst,
      postpaid,
      lease,
      active: readActive(fields, names),
      blockFor: readBlock(fields, { requestsPerUnit, algorithm, burst, lease, postpaid }, window),
      unlimited: false,
      name,
      replaces: names,
    },
    range: fields.get('unit')?.value ?? key,
    zero: requestsPerUnit === 0 ? fields.get('requests_per_unit')?.value : undefined,
    replaces: ranges,
  };
}

/** The fields that have a meaning with `max_concurrent`. */
const WITH_CONCURRENT: ReadonlySet<string> = new Set(['max_concurrent', 'active', 'unlimited', 'name', 'replaces']);

/** A limit of open reservations. */
function readConcurrent(fields: Fields<'rate_limit'>, { names, ranges }: ReadReplaces, key: SourceRange): ReadLimit {
  for (const other of Object.keys(FIELDS.rate_limit) as FieldName<'rate_limit'>[]) {
    if (WITH_CONCURRENT.has(other) || fields.given(other) === undefined) continue;
    fields.context.report(fields.keyOf(other), {
      code: 'max-concurrent-combined',
      message: `\`${other}\` has no meaning with \`max_concurrent\`, which counts open reservations`,
    });
  }
  const most = fields.count('max_concurrent') ?? 0;
  const range = fields.get('max_concurrent')?.value ?? key;
  const active = readActive(fields, names);
  const counting = { unit: 'UNKNOWN', algorithm: 'max_concurrent', requestsPerUnit: most } as const;
  const limit = { ...NO_LIMIT, ...counting, active, name: fields.text('name'), replaces: names };
  return { limit, range, zero: most === 0 ? range : undefined, replaces: ranges };
}

/** The fields that have an effect on a rule that is unlimited. */
const WITHOUT_COUNTING: ReadonlySet<string> = new Set(['unlimited', 'name', 'replaces']);

/** Reports what an unlimited rule has no use for. */
function reportIgnored(fields: Fields<'rate_limit'>): void {
  const { context } = fields;
  for (const name of Object.keys(FIELDS.rate_limit) as FieldName<'rate_limit'>[]) {
    const value = WITHOUT_COUNTING.has(name) ? undefined : fields.given(name);
    // Tools that write every field write 0.
    if (value === undefined || (name === 'requests_per_unit' && fields.count(name) === 0)) continue;
    if (name === 'unit' && unitByName(fields.text(name)) !== undefined) {
      context.report(value, {
        code: 'unit-when-unlimited',
        message: 'should not specify rate limit unit when unlimited',
      });
    } else context.report(fields.keyOf(name), ignoredWhenUnlimited(name));
  }
}

const UNIT_TEXTS = UNIT_NAMES.filter((name) => name !== 'UNKNOWN').map((name) => name.toLowerCase());

function readUnit(fields: Fields<'rate_limit'>, key: SourceRange): UnitName | undefined {
  const text = fields.text('unit');
  const unit = unitByName(text);
  // An invalid unit would be a second message for the same mistake.
  if (unit !== undefined || fields.isWrong('unit') || (text === '' && fields.isWrong('unlimited'))) return unit?.name;
  const nearest = nearestName(text, UNIT_TEXTS, KEY_TOLERANCE);
  const choice = `The units are ${UNIT_TEXTS.join(', ')}.`;
  fields.context.report(fields.get('unit')?.value ?? key, {
    code: 'invalid-unit',
    message: `invalid rate limit unit '${showText(text)}'`,
    advice: nearest === undefined ? choice : `Did you mean \`${nearest}\`? ${choice}`,
  });
  return undefined;
}

/** @param unit undefined: the limit has no valid one */
function readUnitMultiplier(fields: Fields<'rate_limit'>, unit: UnitName | undefined): number {
  const multiplier = fields.count('unit_multiplier') ?? 1;
  if (windowOf({ unit, unitMultiplier: multiplier }) <= MAX_WINDOW_SECONDS) return multiplier;
  fields.reject('unit_multiplier', {
    code: 'window-too-long',
    message: `a window of ${windowText(unit!, multiplier)} is longer than 10 years`,
    advice:
      `The largest unit_multiplier of \`${unit!.toLowerCase()}\` is ` +
      `${Math.floor(MAX_WINDOW_SECONDS / UNITS[unit!].seconds)}.`,
  });
  return 1;
}

function readRequestsPerUnit(
  fields: Fields<'rate_limit'>,
  key: SourceRange,
  algorithm: Choice<'rate_limit', 'algorithm'> | undefined,
): number {
  const requests = fields.count('requests_per_unit');
  if (requests === undefined && !fields.isWrong('requests_per_unit') && !fields.isWrong('unlimited')) {
    fields.context.report(fields.get('requests_per_unit')?.key ?? key, {
      code: 'missing-requests-per-unit',
      message: '`rate_limit` has no requests_per_unit',
      advice: `${countAdvice(0, LARGEST_LIMIT)} \`unlimited: true\` allows every request, 0 allows none.`,
    });
  }
  // The state of these algorithms has no more: products of 64 bits, and hits in 32 bits.
  if (requests !== undefined && requests > MAX_UINT32 && algorithm !== undefined && algorithm !== 'fixed_window') {
    fields.reject('requests_per_unit', {
      code: 'invalid-requests-per-unit',
      message: `requests_per_unit of ${algorithm} must be at most ${MAX_UINT32}, but ${requests} is larger`,
      advice: 'Only limits of fixed windows, also with `calendar`, may be larger.',
    });
  }
  return requests ?? 0;
}

function readBurst(fields: Fields<'rate_limit'>, requestsPerUnit: number, window: number): number | undefined {
  const burst = fields.count('burst');
  if (burst === undefined || fields.isWrong('algorithm')) return undefined;
  if (fields.choice('algorithm') !== 'token_bucket') {
    const message = '`burst` has a meaning only for a token bucket';
    fields.context.report(fields.keyOf('burst'), { code: 'burst-without-token-bucket', message });
    return undefined;
  }
  if (burst * window <= MAX_FILL_SECONDS * requestsPerUnit) return burst;
  const most = Math.floor((MAX_FILL_SECONDS * requestsPerUnit) / window);
  fields.reject('burst', {
    code: 'burst-too-long',
    message: `a bucket of ${burst} tokens takes more than 100 years to fill`,
    advice: most === 0 ? 'Remove `burst`: no tokens flow in.' : `The largest burst of this rate is ${most}.`,
  });
  return undefined;
}

function readLease(fields: Fields<'rate_limit'>): boolean | undefined {
  if (fields.given('lease') === undefined) return undefined;
  const lease = fields.flag('lease');
  if (lease && fields.flag('postpaid')) {
    const message = 'asks take nothing, and reports count also when nothing is left, so that there is nothing to lease';
    fields.context.report(fields.keyOf('lease'), { code: 'lease-with-postpaid', message });
  }
  return lease;
}

const REPLACES_ITSELF = {
  code: 'replaces-itself',
  message: 'replaces should not contain name of same descriptor',
} as const;

interface ReadReplaces {
  readonly names: readonly string[];
  readonly ranges: readonly SourceRange[];
}

function readReplaces(fields: Fields<'rate_limit'>, ownName: string): ReadReplaces {
  const names: string[] = [];
  const ranges: SourceRange[] = [];
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
      names.push(name);
      ranges.push(range);
    }
  }
  return names.length === 0 ? { names: NONE, ranges: NONE } : { names, ranges };
}
