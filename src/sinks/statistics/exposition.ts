import { inPieces } from '../../net/turns';
import { type Distribution, distributionOf } from './distributions';
import { MappedSeries, type MappedSeriesOptions } from './mapped-series';
import { NumberFamily, type TimerSeries, headOf, numberText } from './series';

export interface ExpositionOptions extends Omit<MappedSeriesOptions<Distribution>, 'recorderOf'> {
  /** Monotonic time in milliseconds. */
  readonly now?: () => number;
}

/**
 * The statistics in the Prometheus text format, 0.0.4: a function that returns the pieces of a page. The event loop turns after every
 * piece, and whenever the work has taken some time.
 */
export function exposition({
  now = () => performance.now(),
  ...options
}: ExpositionOptions): () => AsyncGenerator<string, void, void> {
  const mapped = new MappedSeries<Distribution>({
    ...options,
    recorderOf: (observer, scale) => distributionOf(observer, scale, now),
  });
  function* texts(): Generator<string | undefined, void, void> {
    // Families and series that are added in the meantime are appended; whether this page includes them does not matter.
    for (const family of mapped.families()) {
      yield family && headOf(family);
      if (family instanceof NumberFamily) {
        const { metric } = family;
        yield* family.each(mapped.read, (labels, sum) => `${metric}${inBraces(labels)} ${numberText(sum)}\n`);
      } else if (family !== undefined) {
        for (const series of family.series) yield textOf(family.metric, series);
      }
    }
  }
  return () => inPieces(texts(), now);
}

function inBraces(labels: string): string {
  return labels === '' ? '' : `{${labels}}`;
}

function textOf(metric: string, series: TimerSeries<Distribution>): string {
  series.flush();
  const { labels, distribution, sum, count } = series;
  const before = labels === '' ? '' : `${labels},`;
  let text = '';
  for (const [part, label, value] of distribution.lines()) {
    text += `${metric}${part}{${before}${label}} ${numberText(value)}\n`;
  }
  return `${text}${metric}_sum${inBraces(labels)} ${numberText(sum)}\n${metric}_count${inBraces(labels)} ${count}\n`;
}
