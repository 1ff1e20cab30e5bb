import type { Purpose } from '../../counting/algorithms/algorithm';
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
import { LARGEST_LIMIT } from '../../rules/rule-config';
import { UNIT_NAMES, unitByNumber } from '../../rules/unit';
import type { OnExpiry, ReserveCall } from '../../streams/ports/reservations';
import { MalformedBody } from '../errors';
import { JsonCursor, quoted } from './json-cursor';

/** Reads the value of a field. `number` is that of the descriptor that is read, from 1. */
type Read<Value> = (cursor: JsonCursor, number: number) => Value;
type Fields<Message> = { readonly [Name in keyof Message]: Read<Message[Name]> };

interface Field {
  readonly name: string;
  /** By which a second occurrence is detected. */
  readonly bit: number;
  readonly read: Read<unknown>;
}

/** The fields of a message. */
class MessageFields<Message extends object> {
  readonly #what: string;
  readonly #allowed: string;
  /** By their JSON names and their proto names. */
  readonly #byName = new Map<string, Field>();

  /** @param what names the message in an error */
  constructor(what: string, fields: Fields<Message>) {
    this.#what = what;
    this.#allowed = Object.keys(fields).join(', ');
    for (const [index, [name, read]] of Object.entries<Read<unknown>>(fields).entries()) {
      const field = { name, bit: 1 << index, read };
      this.#byName.set(name, field).set(
        name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        field,
      );
    }
  }

  /** @param message has the defaults of all fields, and gets the values of those that are given */
  read(cursor: JsonCursor, message: Message, number = 1): Message {
    cursor.enterObject(this.#what);
    for (let name = cursor.nextMember(); name !== undefined; name = cursor.nextMember()) {
      const field = this.#byName.get(name);
      if (field === undefined) cursor.fail(`unknown field; allowed fields: ${this.#allowed}`);
      if (cursor.isGiven(field.bit)) (message as Record<string, unknown>)[field.name] = field.read(cursor, number);
    }
    return message;
  }

  /** As {@link read}, of a text that has nothing else. */
  readText(text: string, message: Message): Message {
    const cursor = new JsonCursor(text);
    this.read(cursor, message);
    cursor.end();
    return message;
  }
}

const readString: Read<string> = (cursor) => cursor.string();

const ENTRY = new MessageFields<Entry>('an entry', { key: readString, value: readString });

const LIMIT = new MessageFields<LimitOverride>('a limit', {
  requestsPerUnit: (cursor) => readInteger(cursor, UINT32),
  unit: (cursor) => unitByNumber(readEnum(cursor, UNIT_NAMES)),
});

const DESCRIPTOR = new MessageFields<Descriptor>('a descriptor', {
  entries: readEntries,
  limit: (cursor) => LIMIT.read(cursor, { requestsPerUnit: 0, unit: undefined }),
  hitsAddend: (cursor) => readInteger(cursor, UINT64),
  isNegativeHits: (cursor) => cursor.boolean(),
});

const REQUEST_FIELDS: Fields<RateLimitRequest> = {
  domain: readString,
  descriptors: readDescriptors,
  hitsAddend: (cursor) => readInteger(cursor, UINT32),
};
const REQUEST = new MessageFields('a RateLimitRequest', REQUEST_FIELDS);

/** One literal: a copy with a spread makes V8 read and write the members of each request slowly. */
function emptyRequest(purpose?: Purpose): RateLimitRequest {
  return { domain: '', descriptors: [], hitsAddend: 0, purpose };
}

/**
 * Reads a RateLimitRequest in proto3 JSON. Fields may have their JSON or their proto name, and null means absent.
 * Strict: unknown fields, duplicate fields and wrong types are rejected.
 *
 * @throws {MalformedBody}
 * @throws DecisionError when reading on would take too much work
 */
export function readRequest(text: string, purpose?: Purpose): RateLimitRequest {
  return REQUEST.readText(text, emptyRequest(purpose));
}

interface Explained extends RateLimitRequest {
  readonly limit: number | undefined;
}

const EXPLAINED = new MessageFields<Explained>('a RateLimitRequest', {
  ...REQUEST_FIELDS,
  limit: (cursor) => readInteger(cursor, TRIED),
});

/** Reads a request to explain, which may have a limit to try, as {@link readRequest}. */
export function readExplained(text: string): Explained {
  return EXPLAINED.readText(text, { ...emptyRequest(), limit: undefined });
}

const RESERVATION = new MessageFields<RateLimitRequest & Omit<ReserveCall, 'request' | 'caller'>>(
  'a RateLimitRequest',
  { ...REQUEST_FIELDS, ttl: readDuration, id: readString, onExpiry: readOnExpiry },
);

/** Reads a request for a reservation: `ttl`, `id` and `onExpiry` in addition to what {@link readRequest} reads. */
export function readReservation(text: string): ReserveCall {
  const defaults = { ...emptyRequest(), ttl: Number.NaN, id: undefined, onExpiry: 'settle' } as const;
  const { ttl, id, onExpiry, ...request } = RESERVATION.readText(text, defaults);
  if (Number.isNaN(ttl)) throw new MalformedBody('$: ttl is missing, for example "60s"');
  return { request, ttl, id, onExpiry };
}

const SETTLEMENT = new MessageFields<{ hits: number | readonly number[] | undefined }>('a settlement', {
  hits: (cursor) => (cursor.isArray() ? readHits(cursor) : readInteger(cursor, COUNT)),
});

/** Reads `{hits}`: one number, or a list. */
export function readSettlement(text: string): number | readonly number[] {
  const { hits } = SETTLEMENT.readText(text, { hits: undefined });
  if (hits === undefined) throw new MalformedBody('$: hits is missing');
  return hits;
}

function emptyDescriptor(): Descriptor {
  return { entries: [], limit: undefined, hitsAddend: NO_HITS_ADDEND, isNegativeHits: false };
}

/** Reads one descriptor, as {@link readRequest}. */
export function readDescriptorText(text: string): Descriptor {
  return DESCRIPTOR.readText(text, emptyDescriptor());
}

/** A counter and its count; the descriptor can be a text. Undefined: not given. */
export interface CounterBody {
  readonly domain: string | undefined;
  readonly descriptor: Descriptor | string | undefined;
  readonly count: number | undefined;
  readonly window: string | undefined;
  /** Why it is changed, for the log and the list of changes. */
  readonly reason: string | undefined;
}

const COUNTER = new MessageFields<CounterBody>('a counter', {
  domain: readString,
  descriptor: (cursor) => (cursor.isString() ? cursor.string() : DESCRIPTOR.read(cursor, emptyDescriptor())),
  count: (cursor) => readInteger(cursor, COUNT),
  window: readString,
  reason: readString,
});

/** Reads `{domain, descriptor, count, window, reason}`, as {@link readRequest}. */
export function readCounter(text: string): CounterBody {
  const none = { domain: undefined, descriptor: undefined, count: undefined, window: undefined, reason: undefined };
  return COUNTER.readText(text, none);
}

function readDescriptors(cursor: JsonCursor): Descriptor[] {
  const descriptors: Descriptor[] = [];
  cursor.enterArray('a list of descriptors');
  while (cursor.nextElement()) {
    const descriptor = DESCRIPTOR.read(cursor, emptyDescriptor(), descriptors.length + 1);
    if (descriptors.length < MAX_DESCRIPTORS) descriptors.push(descriptor);
    else countDescriptor(descriptors);
  }
  return descriptors;
}

function readEntries(cursor: JsonCursor, number: number): Entry[] {
  const entries: Entry[] = [];
  cursor.enterArray('a list of entries');
  while (cursor.nextElement()) {
    const entry = ENTRY.read(cursor, { key: '', value: '' });
    if (entries.length < MAX_ENTRIES_PER_DESCRIPTOR) entries.push(entry);
    else countEntry(entries, number);
  }
  return entries;
}

function readHits(cursor: JsonCursor): number[] {
  const hits: number[] = [];
  cursor.enterArray('a list of hits');
  while (cursor.nextElement()) {
    if (hits.length === MAX_DESCRIPTORS) cursor.fail(`expected at most ${MAX_DESCRIPTORS} numbers`);
    hits.push(readInteger(cursor, COUNT));
  }
  return hits;
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

/** The range of an integer field, and how an error message describes it. */
interface IntegerRange {
  readonly min: number;
  readonly max: number;
  readonly expected: string;
}

const UINT32: IntegerRange = { min: 0, max: 0xffff_ffff, expected: 'an integer from 0 to 4294967295' };
const TRIED: IntegerRange = { min: 0, max: LARGEST_LIMIT, expected: `an integer from 0 to ${LARGEST_LIMIT}` };
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
 * Reads an integer of proto3 JSON: a number or a string that holds one, in any notation (`1.0`, `1e2`). A value above
 * 2^53 - 1 becomes the nearest double.
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
