import type { Duration } from '../../gen/google/protobuf/duration';

const UNITS = [
  ['d', 86_400n],
  ['h', 3600n],
  ['m', 60n],
] as const;

/** A duration as people read it: `4h10m23s`, `6d`, `0.5s`, `0s`. Units that are 0 are left out. */
export function formatDuration({ seconds, nanos }: Duration): string {
  const isNegative = seconds < 0n || nanos < 0;
  let rest = seconds < 0n ? -seconds : seconds;
  let text = isNegative ? '-' : '';
  for (const [unit, length] of UNITS) {
    if (rest >= length) text += `${rest / length}${unit}`;
    rest %= length;
  }
  const fraction = String(Math.abs(nanos)).padStart(9, '0').replace(/0+$/, '');
  if (rest === 0n && fraction === '' && /\d/.test(text)) return text;
  return `${text}${rest}${fraction === '' ? '' : `.${fraction}`}s`;
}
