import { type JsonCursor, quoted } from './json-cursor';

/** The range of an integer field, and how an error message describes it. */
interface IntegerRange {
  readonly min: number;
  readonly max: number;
  readonly expected: string;
}

const UINT32: IntegerRange = { min: 0, max: 0xffff_ffff, expected: 'an integer from 0 to 4294967295' };
const UINT64: IntegerRange = { min: 0, max: 2 ** 64, expected: 'an integer from 0 to 18446744073709551615' };
const MIN_INT32 = -0x8000_0000;
const MAX_INT32 = 0x7fff_ffff;

const DECIMAL = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
const SHORT_INTEGER = /^(?:0|[1-9]\d{0,14})$/;

/** Reads a `uint32` of proto3 JSON: a number or a string that holds one, in any notation (`1.0`, `1e2`). */
export function readUint32(cursor: JsonCursor): number {
  return readInteger(cursor, UINT32);
}

/** Reads a `google.protobuf.UInt64Value`, in the same forms. A value above 2^53 - 1 becomes the nearest double. */
export function readUint64(cursor: JsonCursor): number {
  return readInteger(cursor, UINT64);
}

/** Reads an enum of proto3 JSON: an upper-case name or a number, which need not be that of a name. */
export function readEnum(cursor: JsonCursor, names: readonly string[]): number {
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
