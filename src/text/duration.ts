const NANOSECONDS_IN_MILLISECOND = 1e6;
const LONGEST = 2n ** 63n - 1n;

/** Longest unit first; the micro sign has two code points. */
const UNITS = [
  ['h', 3_600_000_000_000n],
  ['m', 60_000_000_000n],
  ['s', 1_000_000_000n],
  ['ms', 1_000_000n],
  ['us', 1000n],
  ['ns', 1n],
  ['\u00b5s', 1000n],
  ['\u03bcs', 1000n],
] as const satisfies readonly (readonly [string, bigint])[];

const NANOSECONDS: ReadonlyMap<string, bigint> = new Map(UNITS);

/** A number and its unit, matched where the previous match ended. */
const PART = /(?=\.?\d)(\d*)(?:\.(\d*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/y;

/**
 * Parses a duration in Go's format (`150us`, `1m30s`, `-1.5h`, `0`) into whole nanoseconds, truncating smaller
 * fractions. Undefined for any other text, and beyond the 292 years that Go can represent.
 */
export function parseNanoseconds(text: string): bigint | undefined {
  const sign = /^[+-]/.exec(text)?.[0] ?? '';
  if (text.slice(sign.length) === '0') return 0n;
  let sum = 0n;
  PART.lastIndex = sign.length;
  do {
    const part = PART.exec(text);
    if (part === null) return undefined;
    const [, whole = '', fraction = '', unit = ''] = part;
    const length = NANOSECONDS.get(unit) ?? 0n;
    sum += BigInt(whole) * length + (BigInt(fraction) * length) / 10n ** BigInt(fraction.length);
  } while (PART.lastIndex < text.length);
  // As in Go, the negative range is larger by one.
  if (sum > (sign === '-' ? LONGEST + 1n : LONGEST)) return undefined;
  return sign === '-' ? -sum : sum;
}

/** Formats milliseconds as a duration in Go's format: `1m30s`, `150us`, `0`. */
export function formatDuration(milliseconds: number): string {
  const total = BigInt(Math.round(milliseconds * NANOSECONDS_IN_MILLISECOND));
  if (total === 0n) return '0';
  let rest = total < 0n ? -total : total;
  let text = total < 0n ? '-' : '';
  for (const [unit, length] of UNITS) {
    if (rest >= length) text += `${rest / length}${unit}`;
    rest %= length;
  }
  return text;
}
