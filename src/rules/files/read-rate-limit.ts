import { KEY_TOLERANCE, nearestName } from '../../text/nearest-name';
import type { RateLimitConfig } from '../rule-config';
import { UNIT_NAMES, unitByName, type UnitName } from '../unit';
import { FieldReader, isNull, mapsIn } from './fields/field-reader';
import type { ReadContext } from './fields/read-context';
import type { SourceRange } from './problems/source-text';
import { isOctalByZero, numberOf, scalarType } from './yaml/yaml-scalar';
import { showText } from './yaml/yaml-text';
import type { YamlNode, YamlScalar } from './yaml/yaml-tree';

/** The largest `requests_per_unit`: the protocol has an unsigned 32-bit number. */
export const MAX_REQUESTS_PER_UNIT = 4_294_967_295;

const UNITS = UNIT_NAMES.filter((name) => name !== 'UNKNOWN').map((name) => name.toLowerCase());
const WHOLE_NUMBER = {
  expected: 'a whole number',
  advice: `Write a whole number from 0 to ${MAX_REQUESTS_PER_UNIT}, without quotes.`,
};

/** A `rate_limit` block, with the ranges that the checks need. */
export interface ReadRateLimit {
  readonly config: RateLimitConfig;
  readonly requestsPerUnit: SourceRange | undefined;
  readonly replaces: readonly SourceRange[];
}

/** The fields of a `rate_limit` block, and what reading each of them depends on. */
interface LimitFields {
  readonly fields: FieldReader;
  /** The key `rate_limit`, to mark in a message about an absent field. */
  readonly key: YamlNode;
  readonly unlimited: boolean;
}

/** The `rate_limit` of a descriptor; undefined when it has none, or only an invalid one. */
export function readRateLimit(descriptor: FieldReader): ReadRateLimit | undefined {
  const field = descriptor.get('rate_limit');
  if (field === undefined) return undefined;
  const { key, value, under } = field;
  if (value.kind !== 'map') {
    if (isNull(value)) descriptor.reportEmpty('rate_limit', 'the rule has no limit');
    else {
      const advice = 'Write `unit` and `requests_per_unit` below it.';
      descriptor.reportType('rate_limit', value, { expected: 'a mapping', advice });
    }
  }
  const [last, ...others] = mapsIn(value).toReversed();
  if (last === undefined) return undefined;
  const fields = new FieldReader(descriptor.context, 'rate_limit', [...under, ...others.toReversed(), last]);
  const unlimited = fields.boolean('unlimited');
  const name = fields.text('name');
  const replaces = readReplaces(fields, name);
  const limit = { fields, key, unlimited };
  return {
    config: {
      unit: readUnit(limit),
      requestsPerUnit: readRequestsPerUnit(limit),
      unlimited,
      name,
      replaces: replaces.map((entry) => entry.name),
    },
    requestsPerUnit: fields.get('requests_per_unit')?.value,
    replaces: replaces.map((entry) => entry.range),
  };
}

function readUnit({ fields, key, unlimited }: LimitFields): UnitName | undefined {
  const value = fields.get('unit')?.value;
  const text = fields.text('unit');
  // An invalid unit would be a second message for the same mistake.
  if (fields.hasWrongType('unit') || (text === '' && fields.hasWrongType('unlimited'))) return undefined;
  const unit = unitByName(text);
  if (unlimited) {
    if (value === undefined || text === '') return undefined;
    if (unit === undefined) {
      reportIgnored(fields, 'unit');
    } else {
      fields.context.report(value, {
        code: 'unit-when-unlimited',
        message: 'should not specify rate limit unit when unlimited',
        advice: 'Remove `unit` or `unlimited`.',
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

function readRequestsPerUnit({ fields, key, unlimited }: LimitFields): number {
  const field = fields.get('requests_per_unit');
  if (field === undefined || isNull(field.value)) {
    if (!unlimited && !fields.hasWrongType('unlimited')) {
      fields.context.report(field?.key ?? key, {
        code: 'missing-requests-per-unit',
        message: '`rate_limit` has no requests_per_unit',
        advice: `${WHOLE_NUMBER.advice} \`unlimited: true\` allows every request, 0 allows none.`,
      });
    }
    return 0;
  }
  const { value } = field;
  if (value.kind !== 'scalar') {
    fields.reportType('requests_per_unit', value, WHOLE_NUMBER);
    return 0;
  }
  const number = requestsOf(fields.context, value);
  if (!unlimited) return number;
  reportIgnored(fields, 'requests_per_unit');
  return 0;
}

function requestsOf(context: ReadContext, value: YamlScalar): number {
  const reason = whyInvalid(value);
  if (reason !== undefined) {
    const message = `error loading config file: requests_per_unit must be a whole number from 0 to ${MAX_REQUESTS_PER_UNIT}, but ${reason}`;
    context.report(value, { code: 'invalid-requests-per-unit', message, advice: WHOLE_NUMBER.advice });
    return 0;
  }
  const number = numberOf(value);
  if (isOctalByZero(value)) {
    context.report(value, {
      code: 'octal-number',
      message: `\`${value.text}\` is the number ${number}: a leading 0 makes it octal`,
      advice: `Write ${number}, or the intended number without a leading 0.`,
    });
  }
  // `-0` is 0.
  return number === 0 ? 0 : number;
}

/** Why a scalar is not a valid `requests_per_unit`; undefined when it is valid. */
function whyInvalid(value: YamlScalar): string | undefined {
  const shown = showText(value.text);
  switch (scalarType(value)) {
    case 'integer': {
      const number = numberOf(value);
      if (number < 0) return `${shown} is negative`;
      return number > MAX_REQUESTS_PER_UNIT ? `${shown} is larger` : undefined;
    }
    case 'float':
      return /^[-+]?0\d+$/.test(value.text)
        ? `${shown} has a leading 0 and is not an octal number`
        : `${shown} is a floating-point number`;
    case 'null':
    case 'boolean':
      return `${shown} is not a number`;
    default:
      return /^[-+]?[0-9][0-9_.]*$/.test(value.text)
        ? `'${shown}' is text, because it is quoted`
        : `'${shown}' is text`;
  }
}

function reportIgnored(fields: FieldReader, name: string): void {
  fields.context.report(fields.get(name)?.key ?? fields.start, {
    code: 'ignored-when-unlimited',
    message: `\`${name}\` has no effect: the rule is unlimited`,
    advice: `Remove \`${name}\` or \`unlimited\`.`,
  });
}

interface ReplacesEntry {
  readonly name: string;
  readonly range: SourceRange;
}

function readReplaces(fields: FieldReader, ownName: string): readonly ReplacesEntry[] {
  const entries: ReplacesEntry[] = [];
  for (const item of fields.list('replaces', 'the rule replaces nothing')) {
    const inner = new FieldReader(fields.context, 'replaces', [item]);
    const value = inner.get('name')?.value;
    const name = inner.text('name');
    const range = value ?? item;
    if (name === '') {
      if (inner.hasWrongType('name')) continue;
      fields.context.report(range, {
        code: 'empty-replaces',
        message: 'should not have an empty replaces entry',
        advice: 'Write `- name: <name of the rule to replace>`.',
      });
    } else if (name === ownName) {
      fields.context.report(range, {
        code: 'replaces-itself',
        message: 'replaces should not contain name of same descriptor',
        advice: 'Name another rule here, or give this rule another name.',
      });
    } else {
      entries.push({ name, range });
    }
  }
  return entries;
}
