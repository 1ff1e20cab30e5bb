import {
  type Descriptor,
  type Entry,
  type LimitOverride,
  MAX_DESCRIPTORS,
  MAX_ENTRIES_PER_DESCRIPTOR,
  NO_HITS_ADDEND,
  type RateLimitRequest,
  countDescriptor,
  countEntry,
} from '../../limiter/request';
import { UNIT_NAMES, unitByNumber } from '../../rules/unit';
import type { OnExpiry, ReserveCall } from '../../streams/ports/reservations';
import { MalformedBody } from '../errors';
import { JsonCursor, quoted } from './json-cursor';

/**
 * Reads a RateLimitRequest in proto3 JSON. Fields may have their JSON or their proto name, and null means absent. Strict: unknown
 * fields, duplicate fields and wrong types are rejected.
 *
 * @throws {MalformedBody}
 * @throws DecisionError when reading on would take too much work
 */
export function readRequest(text: string): RateLimitRequest {
  const cursor = new JsonCursor(text);
  const request = readMessage(cursor);
  cursor.end();
  return request;
}

/** Reads a request to explain, which may have a limit to try, as {@link readRequest}. */
export function readExplained(text: string): {
  readonly request: RateLimitRequest;
  readonly limit: number | undefined;
} {
  const cursor = new JsonCursor(text);
  let limit: number | undefined;
  const request = readMessage(cursor, {
    names: 'limit',
    read: (name) => {
      if (name !== 'limit') return false;
      if (cursor.isGiven(8)) limit = readInteger(cursor, UINT32);
      return true;
    },
  });
  cursor.end();
  return { request, limit };
}

/** Reads a request for a reservation: `ttl`, `id` and `onExpiry` in addition to what {@link readRequest} reads. */
export function readReservation(text: string): ReserveCall {
  const cursor = new JsonCursor(text);
  let ttl: number | undefined;
  let id: string | undefined;
  let onExpiry: OnExpiry = 'settle';
  const request = readMessage(cursor, {
    names: 'ttl, id, onExpiry',
    read: (name) => {
      if (name === 'ttl') {
        if (cursor.isGiven(8)) ttl = readDuration(cursor);
      } else if (name === 'id') {
        if (cursor.isGiven(16)) id = cursor.string();
      } else if (name === 'onExpiry' || name === 'on_expiry') {
        if (cursor.isGiven(32)) onExpiry = readOnExpiry(cursor);
      } else return false;
      return true;
    },
  });
  cursor.end();
  if (ttl === undefined) throw new MalformedBody('$: ttl is missing, for example "60s"');
  return { request, ttl, id, onExpiry };
}

/** Reads `{hits}`: one number, or a list. */
export function readSettlement(text: string): number | readonly number[] {
  const cursor = new JsonCursor(text);
  let hits: number | number[] | undefined;
  cursor.enterObject('a settlement');
  for (let name = cursor.nextMember(); name !== undefined; name = cursor.nextMember()) {
    if (name !== 'hits') unknown(cursor, 'hits');
    if (!cursor.isGiven(1)) continue;
    if (!cursor.isArray()) hits = readInteger(cursor, COUNT);
    else {
      hits = [];
      cursor.enterArray('a list of hits');
      while (cursor.nextElement()) {
        if (hits.length === MAX_DESCRIPTORS) cursor.fail(`expected at most ${MAX_DESCRIPTORS} numbers`);
        hits.push(readInteger(cursor, COUNT));
      }
    }
  }
  cursor.end();
  if (hits === undefined) throw new MalformedBody('$: hits is missing');
  return hits;
}

/** Reads one descriptor, as {@link readRequest}. */
export function readDescriptorText(text: string): Descriptor {
  const cursor = new JsonCursor(text);
  const descriptor = readDescriptor(cursor, 1);
  cursor.end();
  return descriptor;
}

/** A counter and its count; the descriptor can be a text. Undefined: not given. */
export interface CounterBody {
  readonly domain: string | undefined;
  readonly descriptor: Descriptor | string | undefined;
  readonly count: number | undefined;
  readonly window: string | undefined;
}

/** Reads `{domain, descriptor, count, window}`, as {@link readRequest}. */
export function readCounter(text: string): CounterBody {
  const cursor = new JsonCursor(text);
  const counter: { -readonly [Name in keyof CounterBody]: CounterBody[Name] } = {
    domain: undefined,
    descriptor: undefined,
    count: undefined,
    window: undefined,
  };
  cursor.enterObject('a counter');
  for (let name = cursor.nextMember(); name !== undefined; name = cursor.nextMember()) {
    switch (name) {
      case 'domain':
        if (cursor.isGiven(1)) counter.domain = cursor.string();
        break;
      case 'descriptor':
        if (cursor.isGiven(2)) counter.descriptor = cursor.isString() ? cursor.string() : readDescriptor(cursor, 1);
        break;
      case 'count':
        if (cursor.isGiven(4)) counter.count = readInteger(cursor, COUNT);
        break;
      case 'window':
        if (cursor.isGiven(8)) counter.window = cursor.string();
        break;
      default:
        unknown(cursor, 'domain, descriptor, count, window');
    }
  }
  cursor.end();
  return counter;
}

// Each field has a bit, by which duplicates are detected; both names of a field have the same bit.

/** Members that only some messages with a request have. */
interface MoreMembers {
  readonly names: string;
  /** Reads the value of one; false for another name. */
  readonly read: (name: string) => boolean;
}

function readMessage(cursor: JsonCursor, more?: MoreMembers): RateLimitRequest {
  let domain = '';
  let descriptors: readonly Descriptor[] = [];
  let hitsAddend = 0;
  cursor.enterObject('a RateLimitRequest');
  for (let name = cursor.nextMember(); name !== undefined; name = cursor.nextMember()) {
    switch (name) {
      case 'domain':
        if (cursor.isGiven(1)) domain = cursor.string();
        break;
      case 'descriptors':
        if (cursor.isGiven(2)) descriptors = readDescriptors(cursor);
        break;
      case 'hitsAddend':
      case 'hits_addend':
        if (cursor.isGiven(4)) hitsAddend = readInteger(cursor, UINT32);
        break;
      default:
        if (more === undefined) unknown(cursor, 'domain, descriptors, hitsAddend');
        if (!more.read(name)) unknown(cursor, `domain, descriptors, hitsAddend, ${more.names}`);
    }
  }
  return { domain, descriptors, hitsAddend };
}

function readDescriptor(cursor: JsonCursor, number: number): Descriptor {
  let entries: readonly Entry[] = [];
  let limit: LimitOverride | undefined;
  let hitsAddend = NO_HITS_ADDEND;
  let isNegativeHits = false;
  cursor.enterObject('a descriptor');
  for (let name = cursor.nextMember(); name !== undefined; name = cursor.nextMember()) {
    switch (name) {
      case 'entries':
        if (cursor.isGiven(1)) entries = readEntries(cursor, number);
        break;
      case 'limit':
        if (cursor.isGiven(2)) limit = readLimit(cursor);
        break;
      case 'hitsAddend':
      case 'hits_addend':
        if (cursor.isGiven(4)) hitsAddend = readInteger(cursor, UINT64);
        break;
      case 'isNegativeHits':
      case 'is_negative_hits':
        if (cursor.isGiven(8)) isNegativeHits = cursor.boolean();
        break;
      default:
        unknown(cursor, 'entries, limit, hitsAddend, isNegativeHits');
    }
  }
  return { entries, limit, hitsAddend, isNegativeHits };
}

function readEntry(cursor: JsonCursor): Entry {
  let key = '';
  let value = '';
  cursor.enterObject('an entry');
  for (let name = cursor.nextMember(); name !== undefined; name = cursor.nextMember()) {
    switch (name) {
      case 'key':
        if (cursor.isGiven(1)) key = cursor.string();
        break;
      case 'value':
        if (cursor.isGiven(2)) value = cursor.string();
        break;
      default:
        unknown(cursor, 'key, value');
    }
  }
  return { key, value };
}

function readLimit(cursor: JsonCursor): LimitOverride {
  let requestsPerUnit = 0;
  let unit = 0;
  cursor.enterObject('a limit');
  for (let name = cursor.nextMember(); name !== undefined; name = cursor.nextMember()) {
    switch (name) {
      case 'requestsPerUnit':
      case 'requests_per_unit':
        if (cursor.isGiven(1)) requestsPerUnit = readInteger(cursor, UINT32);
        break;
      case 'unit':
        if (cursor.isGiven(2)) unit = readEnum(cursor, UNIT_NAMES);
        break;
      default:
        unknown(cursor, 'requestsPerUnit, unit');
    }
  }
  return { requestsPerUnit, unit: unitByNumber(unit) };
}

function readDescriptors(cursor: JsonCursor): Descriptor[] {
  const descriptors: Descriptor[] = [];
  cursor.enterArray('a list of descriptors');
  while (cursor.nextElement()) {
    const descriptor = readDescriptor(cursor, descriptors.length + 1);
    if (descriptors.length < MAX_DESCRIPTORS) descriptors.push(descriptor);
    else countDescriptor(descriptors);
  }
  return descriptors;
}

function readEntries(cursor: JsonCursor, number: number): Entry[] {
  const entries: Entry[] = [];
  cursor.enterArray('a list of entries');
  while (cursor.nextElement()) {
    const entry = readEntry(cursor);
    if (entries.length < MAX_ENTRIES_PER_DESCRIPTOR) entries.push(entry);
    else countEntry(entries, number);
  }
  return entries;
}

const DURATION = /^(\d{1,6})(?:\.(\d{1,9}))?s$/;

/** Reads a duration of proto3 JSON, in whole milliseconds. */
function readDuration(cursor: JsonCursor): number {
  const text = cursor.string();
  const match = DURATION.exec(text);
  if (match === null) cursor.fail(`expected a duration in seconds such as "60s", got "${quoted(text)}"`);
  return Number(match[1]) * 1000 + Math.floor(Number(`0.${match[2] ?? 0}`) * 1000);
}

function readOnExpiry(cursor: JsonCursor): OnExpiry {
  const text = cursor.string();
  if (text !== 'settle' && text !== 'cancel') cursor.fail(`expected "settle" or "cancel", got "${quoted(text)}"`);
  return text;
}

function unknown(cursor: JsonCursor, allowed: string): never {
  return cursor.fail(`unknown field; allowed fields: ${allowed}`);
}

/** The range of an integer field, and how an error message describes it. */
interface IntegerRange {
  readonly min: number;
  readonly max: number;
  readonly expected: string;
}

const UINT32: IntegerRange = { min: 0, max: 0xffff_ffff, expected: 'an integer from 0 to 4294967295' };
const UINT64: IntegerRange = { min: 0, max: 2 ** 64, expected: 'an integer from 0 to 18446744073709551615' };
const COUNT: IntegerRange = { min: 0, max: 2 ** 53 - 1, expected: 'a whole number from 0 to 9007199254740991' };
const MIN_INT32 = -0x8000_0000;
const MAX_INT32 = 0x7fff_ffff;

const DECIMAL = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
const SHORT_INTEGER = /^(?:0|[1-9]\d{0,14})$/;

/** Reads an enum of proto3 JSON: an upper-case name or a number, which need not be that of a name. */
function readEnum(cursor: JsonCursor, names: readonly string[]): number {
  if (!cursor.isString()) {
    return readInteger(cursor, {
      min: MIN_INT32,
      max: MAX_INT32,
      expected: `one of ${names.join(', ')}, or its number`,
    });
  }
  const name = cursor.string();
  const number = names.indexOf(name);
  if (number === -1) cursor.fail(`expected one of ${names.join(', ')}, got "${quoted(name)}"`);
  return number;
}

/**
 * Reads an integer of proto3 JSON: a number or a string that holds one, in any notation (`1.0`, `1e2`). A value above 2^53 - 1 becomes the
 * nearest double.
 */
function readInteger(cursor: JsonCursor, { min, max, expected }: IntegerRange): number {
  const isQuoted = cursor.isString();
  const text = isQuoted ? cursor.string() : (cursor.numberText() ?? cursor.unexpected(expected));
  const number = SHORT_INTEGER.test(text) ? Number(text) : integerOf(text);
  if (!(number >= min && number <= max)) {
    cursor.fail(`expected ${expected}, got ${isQuoted ? `"${quoted(text)}"` : quoted(text)}`);
  }
  return number;
}

/** The integer that the text of a JSON number denotes; NaN when it has a fraction or is not a JSON number. */
function integerOf(text: string): number {
  const match = DECIMAL.exec(text);
  if (match === null) return Number.NaN;
  const [, sign, whole, fraction = '', exponent = '0'] = match;
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const significant = withoutTrailingZeros(digits);
  if (significant === '') return 0;
  const shift = Number(exponent) - fraction.length + digits.length - significant.length;
  return shift < 0 ? Number.NaN : Number(`${sign}${significant}e${shift}`);
}

/** Not by a regular expression: /0+$/ tries again from each zero, which takes quadratic time. */
function withoutTrailingZeros(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return digits.slice(0, end);
}
