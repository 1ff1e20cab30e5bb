import type { History } from '../src/operators/live-answers';
import { spanOf, useRange } from './fleet-answer';
import { outagesOf } from './happenings';
import type { Series } from './history';
import { type LineTone, Lines } from './plot';

interface SparklineProps {
  readonly history: Pick<History, 'times' | 'interval' | 'marks'>;
  readonly values: Series;
  readonly tone?: LineTone;
}

/** A line of a range of a history, with the bands of outages. The numbers next to it say the same. */
export function Sparkline({ history, values, tone = 'pass' }: SparklineProps) {
  const { from, until, first } = spanOf(history, useRange());
  const shown = values.slice(first);
  const most = 1.12 * Math.max(1e-9, ...shown.map((value) => value ?? 0));
  function x(time: number): number {
    return Math.max(0, Math.min(100, ((time - from) / (until - from)) * 100));
  }
  function y(value: number): number {
    return 30 - (value / most) * 28;
  }
  const times = history.times.slice(first);
  return (
    <svg class={`spark line ${tone}`} viewBox="0 0 100 30" preserveAspectRatio="none" aria-hidden="true">
      {outagesOf(history.marks).map(({ from: begin, until: end = until }) => (
        <rect key={begin} class="outage" x={x(begin)} y="0" width={x(end) - x(begin)} height="30" />
      ))}
      <Lines {...history} times={times} values={shown} frame={{ x, y, bottom: 30 }} isArea />
    </svg>
  );
}
