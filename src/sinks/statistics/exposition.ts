import { setImmediate as nextTurn } from 'node:timers/promises';
import { turnBudget } from '../../text/turn-budget';
import { type Distribution, distributionOf } from './distributions';
import { MappedSeries, type MappedSeriesOptions } from './mapped-series';
import { NumberFamily, type TimerFamily, type TimerSeries, headOf, numberText } from './series';

export interface ExpositionOptions extends Omit<MappedSeriesOptions<Distribution>, 'recorderOf'> {
  /** Monotonic time in milliseconds. */
  readonly now: () => number;
}

/** Characters of a piece of the page, at least. */
const PIECE = 32 * 1024;

/**
 * The statistics in the Prometheus text format, 0.0.4. The event loop turns after every piece of a page, and whenever the work has taken
 * some time.
 */
export class Exposition {
  readonly #mapped: MappedSeries<Distribution>;
  readonly #now: () => number;

  constructor({ now, ...options }: ExpositionOptions) {
    this.#mapped = new MappedSeries({
      ...options,
      recorderOf: (observer, scale) => distributionOf(observer, scale, now),
    });
    this.#now = now;
  }

  /** The pieces of a page. */
  async *page(): AsyncGenerator<string, void, void> {
    const isTurnDue = turnBudget(this.#now);
    let piece = '';
    // Families and series that are added in the meantime are appended; whether this page includes them does not matter.
    for (const family of await this.#mapped.families(isTurnDue)) {
      piece += headOf(family);
      for (const text of this.#texts(family)) {
        piece += text;
        const isDue = isTurnDue();
        if (piece.length >= PIECE) {
          yield piece;
          piece = '';
        } else if (!isDue) continue;
        // Waiting for the receiver alone does not yield to the event loop: mostly its buffer has room.
        await nextTurn();
      }
    }
    if (piece !== '') yield piece;
  }

  /** The text of each series; empty texts between them are steps of the work. */
  *#texts(family: NumberFamily | TimerFamily<Distribution>): Generator<string, void, void> {
    const { metric } = family;
    if (!(family instanceof NumberFamily)) {
      for (const series of family.series) yield textOf(metric, series);
      return;
    }
    const { labels: all } = family;
    let series = 0;
    for (const sum of family.sums(this.#mapped.read)) {
      if (sum === undefined) {
        yield '';
        continue;
      }
      const labels = all[series] as string;
      series += 1;
      yield `${metric}${labels === '' ? '' : `{${labels}}`} ${numberText(sum)}\n`;
    }
  }
}

function textOf(metric: string, series: TimerSeries<Distribution>): string {
  series.flush();
  const { labels, distribution, sum, count } = series;
  const [before, suffix] = labels === '' ? ['', ''] : [`${labels},`, `{${labels}}`];
  let text = '';
  for (const [part, label, value] of distribution.lines()) {
    text += `${metric}${part}{${before}${label}} ${numberText(value)}\n`;
  }
  return `${text}${metric}_sum${suffix} ${numberText(sum)}\n${metric}_count${suffix} ${count}\n`;
}
