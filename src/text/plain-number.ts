/** From this magnitude on, JavaScript writes numbers with an exponent. */
const EXPONENT_FROM = 1e21;

/**
 * A number as decimal digits, also where JavaScript would write `1e+21`: not every receiver of statistics reads an
 * exponent. Sums of hits get there, because a single call may count 9e15.
 */
export function plainNumber(value: number): string {
  return Number.isFinite(value) && Math.abs(value) >= EXPONENT_FROM ? String(BigInt(value)) : String(value);
}

/** The largest number of a uint32 in protobuf. */
export const MAX_UINT32 = 4_294_967_295;

/** Whether it is one of 0 to 2^53 − 1. */
export function isWholeNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/**
 * What an answer has for a number that should be a whole one from 0 on: 0 for a negative one and for what is no number,
 * at most 2^53 − 1. Numbers of stores are checked where they arrive; this keeps every writer from what its format does
 * not have.
 */
export function wholeNumber(value: number): number {
  return value >= 0 ? Math.min(Math.floor(value), Number.MAX_SAFE_INTEGER) : 0;
}

/** As {@link wholeNumber}, for a uint32 of the protocol: of a larger number, readers would have the low 32 bits. */
export function wireNumber(value: number): number {
  return Math.min(wholeNumber(value), MAX_UINT32);
}

/** A number with this many digits after the decimal point, never with an exponent. */
export function fixedNumber(value: number, digits: number): string {
  return Number.isFinite(value) && Math.abs(value) >= EXPONENT_FROM
    ? `${BigInt(value)}.${'0'.repeat(digits)}`
    : value.toFixed(digits);
}
