import { formatDuration, parseNanoseconds } from '../../text/duration';
import { type ValueType, accepted, refined, rejected } from './value-type';

const NANOSECONDS_IN_MILLISECOND = 1e6;

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
