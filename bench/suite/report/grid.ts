import type { Axis } from './axes';
import { type Child, line, text } from './svg';

/** A vertical line with its number below for each tick of a horizontal axis. */
export function verticalGrid(axis: Axis, top: number, bottom: number): readonly Child[] {
  return axis.ticks.flatMap((tick) => [
    line([axis.at(tick), top], [axis.at(tick), bottom]),
    text(axis.at(tick), bottom + 16, String(tick), 'muted middle'),
  ]);
}
