import { type ValueType, accepted, refined, rejected } from './value-type';

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
function formatDuration(milliseconds: number): string {
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

/** Nanoseconds in an hour, the most of the range `0 to 1h`. */
const HOUR = 3_600_000_000_000n;

type Range = '0 or more' | 'above 0' | '0 to 1h';

/** A duration in milliseconds (fractions allowed) in a range. */
export function duration(range: Range): ValueType<number> {
  return {
    allowed: `duration, ${range}`,
    schema: {
      anyOf: [
        { const: 0 },
        { type: 'string', pattern: '^[+-]?(0|([0-9]*\\.?[0-9]*(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)$' },
      ],
    },
    parse(text) {
      const nanoseconds = parseNanoseconds(text);
      if (nanoseconds === undefined) return rejected(hint(text));
      if (nanoseconds < 0n || (nanoseconds === 0n && range === 'above 0')) return rejected();
      if (nanoseconds > HOUR && range === '0 to 1h') return rejected();
      return accepted(Number(nanoseconds) / NANOSECONDS_IN_MILLISECOND);
    },
    format: formatDuration,
  };
}

/** The longest time that Node's timers measure, in milliseconds: one that is given more ends at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** A duration for which a timer runs. What is longer than a timer can measure, 24.8 days, becomes that. */
function timerDuration(range: Range): ValueType<number> {
  const notice = 'longer than a timer can measure; 24.8 days are used';
  return refined(
    duration(range),
    (time) => (time > LONGEST_TIMER ? accepted(LONGEST_TIMER, notice) : accepted(time)),
    formatDuration,
  );
}

/** A duration for which a timer runs between two attempts. What is shorter becomes `shortest` milliseconds. */
export function pauseDuration(shortest: number): ValueType<number> {
  return refined(timerDuration('0 or more'), (time) => accepted(Math.max(time, shortest)), formatDuration);
}

/** A type of durations in which what is shorter than `shortest` milliseconds becomes that, with a notice; 0 stays. */
export function atLeast(type: ValueType<number>, shortest: number): ValueType<number> {
  const notice = `shorter than ${formatDuration(shortest)}, which is used`;
  return refined(
    type,
    (time) => (time > 0 && time < shortest ? accepted(shortest, notice) : accepted(time)),
    formatDuration,
  );
}

/** Any length of time. */
export const span = duration('0 or more');
/** Any time for which a timer runs, in which what is below its resolution means 0. */
export const delay = timerDuration('0 or more');
/** Any time after which a timer ends something; 0 usually means never. */
export const timeout = atLeast(delay, 1);

/** The time between two things that a timer starts: without a pause, they would keep a core or a server busy. */
export function interval(shortest: number): ValueType<number> {
  return atLeast(timerDuration('above 0'), shortest);
}

function hint(text: string): string {
  if (/^[+-]?[\d.]+$/.test(text)) return 'add a unit, as in 500ms or 10s';
  if (/\d[dw]$/i.test(text)) return 'the largest unit is h: write 1 day as 24h';
  return 'write it like 150us, 10s or 1h30m, at most 292 years';
}
