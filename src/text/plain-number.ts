/** From this magnitude on, JavaScript writes numbers with an exponent. */
const EXPONENT_FROM = 1e21;

/**
 * A number as decimal digits, also where JavaScript would write `1e+21`: not every receiver of statistics reads an
 * exponent. Sums of hits get there, because a single call may count 9e15.
 */
export function plainNumber(value: number): string {
  return Number.isFinite(value) && Math.abs(value) >= EXPONENT_FROM ? String(BigInt(value)) : String(value);
}

/** A number with this many digits after the decimal point, never with an exponent. */
export function fixedNumber(value: number, digits: number): string {
  return Number.isFinite(value) && Math.abs(value) >= EXPONENT_FROM
    ? `${BigInt(value)}.${'0'.repeat(digits)}`
    : value.toFixed(digits);
}
