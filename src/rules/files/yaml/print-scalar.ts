import { booleanOf, numberOf, scalarType } from './yaml-scalar';
import type { YamlScalar } from './yaml-tree';

const MIN_INTEGER = -(2n ** 63n);
const MAX_INTEGER = 2n ** 64n - 1n;
/** Longer integers exceed 64 bits in every base, unless they have many leading zeros. In characters. */
const MAX_INTEGER_LENGTH = 70;

/** The value of a scalar in the form in which the Go service prints it: `yes` is `true`, `0x10` is `16` and `1.50` is `1.5`. */
export function printScalar(scalar: YamlScalar): string {
  switch (scalarType(scalar)) {
    case 'null':
      return '<nil>';
    case 'boolean':
      return String(booleanOf(scalar));
    case 'integer':
      return printInteger(scalar);
    case 'float':
      return printFloat(numberOf(scalar));
    default:
      return scalar.text;
  }
}

/** Exact, also above 2^53: an identifier is often a long number. Beyond 64 bits, Go has a floating-point number. */
function printInteger(scalar: YamlScalar): string {
  if (scalar.text.length > MAX_INTEGER_LENGTH) return printFloat(numberOf(scalar));
  const [, sign, digits = ''] = /^([-+]?)(.*)$/.exec(scalar.text.replaceAll('_', '').toLowerCase()) ?? [];
  const size = BigInt(/^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits);
  const value = sign === '-' ? -size : size;
  return value < MIN_INTEGER || value > MAX_INTEGER ? printFloat(Number(value)) : String(value);
}

/** As Go's `%v`: with the fewest digits that identify the number, and an exponent of at least two digits for 1e6 and below 1e-4. */
function printFloat(number: number): string {
  if (Number.isNaN(number)) return 'NaN';
  if (!Number.isFinite(number)) return number > 0 ? '+Inf' : '-Inf';
  const [digits = '', exponent = ''] = number.toExponential().split('e');
  const power = Number(exponent);
  if (power >= -4 && power < 6) return Object.is(number, -0) ? '-0' : String(number);
  return `${digits}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
}
