import type { RateLimitConfig } from '../rule-config';
import { UNIT_NAMES, unitByName, type UnitName } from '../unit';
import { readFields, type Field, type Fields } from './fields/fields';
import { KEY_TOLERANCE, nearestName } from '../../text/nearest-name';
import { isNull, readBoolean, readList, readText, sayEmpty, sayWrongType } from './fields/read-values';
import type { Reading } from './fields/reading';
import type { Place } from './problems/source-text';
import { isOctalByZero, numberOf, scalarType } from './yaml/yaml-scalar';
import { showText } from './yaml/yaml-text';
import type { YamlScalar } from './yaml/yaml-tree';

/** The largest `requests_per_unit`: it is an unsigned 32-bit number in the protocol. */
export const MAX_REQUESTS_PER_UNIT = 4_294_967_295;

const UNITS = UNIT_NAMES.filter((name) => name !== 'UNKNOWN').map((name) => name.toLowerCase());
const WHOLE = `Write a whole number from 0 to ${MAX_REQUESTS_PER_UNIT}, without quotes.`;

/** A `rate_limit` block as read, and where in it things stand. */
export interface ReadRateLimit {
  readonly config: RateLimitConfig;
  readonly requestsPerUnit: Place | undefined;
  readonly replaces: readonly Place[];
}

/** The `rate_limit` of a descriptor; undefined when it has none, or none that means anything. */
export function readRateLimit(reading: Reading, descriptor: Fields): ReadRateLimit | undefined {
  const field = descriptor.get('rate_limit');
  if (field === undefined) return undefined;
  if (field.value.kind !== 'map') {
    if (isNull(field.value)) sayEmpty(reading, 'rate_limit', field, 'the rule has no limit');
    else
      sayWrongType(reading, 'rate_limit', field.value, 'a mapping', 'Write `unit` and `requests_per_unit` below it.');
    return undefined;
  }
  const fields = readFields(reading, field.value, 'rate_limit', field.under);
  const unlimited = readBoolean(reading, fields, 'unlimited');
  const name = readText(reading, fields, 'name');
  const replaces = readReplaces(reading, fields, name);
  return {
    config: {
      unit: readUnit(reading, field, fields, unlimited),
      requestsPerUnit: readRequestsPerUnit(reading, field, fields, unlimited),
      unlimited,
      name,
      replaces: replaces.map((entry) => entry.name),
    },
    requestsPerUnit: fields.get('requests_per_unit')?.value,
    replaces: replaces.map((entry) => entry.place),
  };
}

function readUnit(reading: Reading, rateLimit: Field, fields: Fields, unlimited: boolean): UnitName | undefined {
  const field = fields.get('unit');
  // A list or a mapping has been refused as such; to call it an invalid unit too would say the same twice.
  if (field !== undefined && field.value.kind !== 'scalar') {
    readText(reading, fields, 'unit');
    return undefined;
  }
  const text = readText(reading, fields, 'unit');
  const unit = unitByName(text);
  if (unlimited) {
    if (field === undefined || text === '') return undefined;
    if (unit === undefined) sayIgnored(reading, 'unit', field);
    else
      reading.say(
        field.value,
        'unit-when-unlimited',
        'should not specify rate limit unit when unlimited',
        'Take `unit` or `unlimited` out.',
      );
    return undefined;
  }
  if (unit !== undefined) return unit.name;
  const nearest = nearestName(text, UNITS, KEY_TOLERANCE);
  const choice = `A unit is one of ${UNITS.join(', ')}.`;
  const advice = nearest === undefined ? choice : `Did you mean \`${nearest}\`? ${choice}`;
  reading.say(field?.value ?? rateLimit.key, 'invalid-unit', `invalid rate limit unit '${showText(text)}'`, advice);
  return undefined;
}

function readRequestsPerUnit(reading: Reading, rateLimit: Field, fields: Fields, unlimited: boolean): number {
  const field = fields.get('requests_per_unit');
  if (field === undefined || isNull(field.value)) {
    if (unlimited) return 0;
    const message = '`rate_limit` has no requests_per_unit';
    reading.say(
      field?.key ?? rateLimit.key,
      'missing-requests-per-unit',
      message,
      `${WHOLE} \`unlimited: true\` lets everything pass, 0 nothing.`,
    );
    return 0;
  }
  const { value } = field;
  if (value.kind !== 'scalar') {
    sayWrongType(reading, 'requests_per_unit', value, 'a whole number', WHOLE);
    return 0;
  }
  const number = requestsOf(reading, value);
  if (!unlimited) return number;
  sayIgnored(reading, 'requests_per_unit', field);
  return 0;
}

function requestsOf(reading: Reading, value: YamlScalar): number {
  const reason = notRequests(value);
  if (reason !== undefined) {
    const message = `error loading config file: requests_per_unit must be a whole number from 0 to ${MAX_REQUESTS_PER_UNIT}, but ${reason}`;
    reading.say(value, 'invalid-requests-per-unit', message, WHOLE);
    return 0;
  }
  const number = numberOf(value);
  if (isOctalByZero(value)) {
    const message = `\`${value.text}\` is the number ${number}: a leading 0 makes it octal`;
    reading.say(value, 'octal-number', message, `Write ${number}, or the number that is meant, without a leading 0.`);
  }
  // `-0` is 0.
  return number === 0 ? 0 : number;
}

function notRequests(value: YamlScalar): string | undefined {
  const shown = showText(value.text);
  switch (scalarType(value)) {
    case 'integer': {
      const number = numberOf(value);
      if (number < 0) return `${shown} is below 0`;
      return number > MAX_REQUESTS_PER_UNIT ? `${shown} is above it` : undefined;
    }
    case 'float':
      return /^[-+]?0\d+$/.test(value.text)
        ? `${shown} has a leading 0 and is no octal number`
        : `${shown} is not written as one`;
    case 'null':
    case 'boolean':
      return `${shown} is none`;
    default:
      return /^[-+]?[0-9][0-9_.]*$/.test(value.text)
        ? `'${shown}' is text, because of its quotes`
        : `'${shown}' is text`;
  }
}

function sayIgnored(reading: Reading, name: string, { key }: Field): void {
  reading.say(
    key,
    'ignored-when-unlimited',
    `\`${name}\` has no effect: the rule is unlimited`,
    `Take \`${name}\` or \`unlimited\` out.`,
  );
}

function readReplaces(reading: Reading, fields: Fields, ownName: string): readonly { name: string; place: Place }[] {
  const read: { name: string; place: Place }[] = [];
  for (const entry of readList(reading, fields, 'replaces', 'it replaces nothing')) {
    const inner = readFields(reading, entry, 'replaces');
    const name = readText(reading, inner, 'name');
    const place = inner.get('name')?.value ?? entry;
    if (name === '') {
      if (inner.get('name')?.value.kind === 'map' || inner.get('name')?.value.kind === 'list') continue;
      reading.say(
        place,
        'empty-replaces',
        'should not have an empty replaces entry',
        'Write `- name: <name of the rule that is replaced>`.',
      );
    } else if (name === ownName) {
      const message = 'replaces should not contain name of same descriptor';
      reading.say(place, 'replaces-itself', message, 'Name another rule here, or give this one another name.');
    } else {
      read.push({ name, place });
    }
  }
  return read;
}
