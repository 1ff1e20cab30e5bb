import { type JsonCursor, excerpt } from './json-cursor';
const MAX_UINT32 = 0xffff_ffff;
const MAX_UINT64 = 2 ** 64;
const MIN_INT32 = -0x8000_0000;
const MAX_INT32 = 0x7fff_ffff;

const DECIMAL = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
const SHORT_WHOLE_NUMBER = /^(?:0|[1-9]\d{0,14})$/;

/** A `uint32` of proto3 JSON: a number or a text that holds one, `1.0` and `1e2` too. */
export function readUint32(cursor: JsonCursor): number {
  return readWhole(cursor, 0, MAX_UINT32, 'a whole number from 0 to 4294967295');
}

/** A `google.protobuf.UInt64Value`, likewise. Above 2^53 - 1 it is the nearest double. */
export function readUint64(cursor: JsonCursor): number {
  return readWhole(cursor, 0, MAX_UINT64, 'a whole number from 0 to 18446744073709551615');
}

/** An enum of proto3 JSON, by name (upper case) or by number, which need not be one of the names'. */
export function readEnum(cursor: JsonCursor, names: readonly string[]): number {
  if (!cursor.isString()) {
    return readWhole(cursor, MIN_INT32, MAX_INT32, `one of ${names.join(', ')}, or its number`);
  }
  const name = cursor.string();
  const number = names.indexOf(name);
  if (number === -1) cursor.fail(`one of ${names.join(', ')} expected, got "${excerpt(name)}"`);
  return number;
}

function readWhole(cursor: JsonCursor, min: number, max: number, allowed: string): number {
  const quoted = cursor.isString();
  const text = quoted ? cursor.string() : (cursor.numberText() ?? cursor.refuse(`${allowed} expected`));
  const number = SHORT_WHOLE_NUMBER.test(text) ? Number(text) : wholeNumber(text);
  if (!(number >= min && number <= max)) {
    cursor.fail(`${allowed} expected, got ${quoted ? `"${excerpt(text)}"` : excerpt(text)}`);
  }
  return number;
}

/** The number that a JSON number's text stands for; not a number when it has a fraction or is no JSON number. */
function wholeNumber(text: string): number {
  const match = DECIMAL.exec(text);
  if (match === null) return Number.NaN;
  const [, sign, whole, fraction = '', exponent = '0'] = match;
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const significant = digits.replace(/0+$/, '');
  if (significant === '') return 0;
  const shift = Number(exponent) - fraction.length + digits.length - significant.length;
  return shift < 0 ? Number.NaN : Number(`${sign}${significant}e${shift}`);
}
