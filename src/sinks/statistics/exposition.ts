import { inPieces } from '../../net/turns';
import { QuantileSketch } from '../../statistics/quantile-sketch';
import type { SampleRecorder } from '../../statistics/timer';
import type { Observer } from './mapping';
import { MappedSeries, type MappedStatistics } from './mapped-series';
import { NumberFamily, type TimerSeries, headOf, numberText } from './series';

/**
 * The statistics in the Prometheus text format, 0.0.4: a function that returns the pieces of a page. The event loop
 * turns after every piece, and whenever the work has taken some time.
 *
 * @param reserved names of metrics that are not from the registry
 * @param now monotonic time in milliseconds
 */
export function exposition(
  statistics: MappedStatistics,
  reserved: ReadonlySet<string>,
  now: () => number = () => performance.now(),
): () => AsyncGenerator<string, void, void> {
  const mapped = new MappedSeries(statistics, (observer, scale) => distributionOf(observer, scale, now), reserved);
  function* texts(): Generator<string | undefined, void, void> {
    // Families and series that are added in the meantime are appended; whether this page includes them does not matter.
    for (const family of mapped.families()) {
      yield family && headOf(family);
      if (family instanceof NumberFamily) {
        const { metric } = family;
        yield* family.each(mapped.read, (labels, sum) => `${metric}${inBraces(labels)} ${numberText(sum)}\n`);
      } else if (family !== undefined) {
        for (const series of family.series.values()) yield textOf(family.metric, series);
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

/** Where durations are, as buckets or quantiles. */
interface Distribution extends SampleRecorder {
  /** The name's suffix, one more label, and the value of each line. */
  lines(): readonly (readonly [suffix: string, label: string, value: number])[];
}

/**
 * The buckets or quantiles that an observer has.
 *
 * @param scale factor from milliseconds to the unit of the metric
 * @param now monotonic time in milliseconds
 */
function distributionOf(observer: Observer, scale: number, now: () => number): Distribution {
  return observer.kind === 'histogram' ? buckets(observer, scale) : recentQuantiles(observer, scale, now);
}

function buckets(observer: Observer, scale: number): Distribution {
  const bounds = [...observer.buckets, Infinity];
  /** The number of samples in each bucket, not cumulative. */
  const counts = new Float64Array(bounds.length);
  return {
    add: (values, count) => {
      for (let at = 0; at < count; at += 1) {
        const value = (values[at] as number) * scale;
        let bucket = 0;
        while (value > (bounds[bucket] as number)) bucket += 1;
        counts[bucket] = (counts[bucket] as number) + 1;
      }
    },
    lines: () => {
      let cumulative = 0;
      return bounds.map((bound, index) => {
        cumulative += counts[index] as number;
        return ['_bucket', `le="${numberText(bound)}"`, cumulative];
      });
    },
  };
}

/** The window of the quantiles advances in steps of this part of it. */
const STEPS = 5;

/** Quantiles over a sliding window; NaN when it has no samples. */
function recentQuantiles({ quantiles, maxAge }: Observer, scale: number, now: () => number): Distribution {
  /** The samples of each step in the window. */
  const sketches = new Map<number, QuantileSketch>();
  function currentStep(): number {
    const current = Math.floor((now() / maxAge) * STEPS);
    for (const step of sketches.keys()) if (step <= current - STEPS) sketches.delete(step);
    return current;
  }
  return {
    add: (values, count) => {
      const step = currentStep();
      const sketch = sketches.get(step) ?? new QuantileSketch();
      sketches.set(step, sketch);
      sketch.add(values, count);
    },
    lines: () => {
      currentStep();
      const all = new QuantileSketch();
      for (const sketch of sketches.values()) all.merge(sketch);
      return quantiles.map((share) => ['', `quantile="${numberText(share)}"`, all.quantile(share) * scale]);
    },
  };
}
