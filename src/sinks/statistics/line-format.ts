import type { Tags } from '../../statistics/tags';

/** How statistics are written, one a line, without the line's end. */
export interface LineFormat {
  counter(name: string, tags: Tags, delta: number): string;
  gauge(name: string, value: number): string;
  /** @param rate how many lines there are for each duration measured, at most 1 */
  timer(name: string, milliseconds: number, rate: number): string;
}
