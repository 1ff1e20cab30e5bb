import { inPieces } from '../../net/turns';
import { QuantileSketch } from '../../statistics/quantile-sketch';
import type { SampleRecorder } from '../../statistics/timer';
import type { Observer } from './mapping';
import { MappedSeries, type MappedStatistics } from './mapped-series';
import { NumberFamily, type TimerSeries, headOf, numberText } from './series';

/**
 * The statistics in the Prometheus text format, 0.0.4: a function that returns the pieces of a page. The event loop turns after every
 * piece, and whenever the work has taken some time.
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
  return observer.kind === 'histogram' ? new Buckets(observer, scale) : new Quantiles(observer, scale, now);
}

class Buckets implements Distribution {
  readonly #bounds: readonly number[];
  readonly #scale: number;
  /** The number of samples in each bucket, not cumulative. */
  readonly #counts: Float64Array;

  constructor({ buckets }: Observer, scale: number) {
    this.#bounds = [...buckets, Infinity];
    this.#scale = scale;
    this.#counts = new Float64Array(this.#bounds.length);
  }

  add(values: Float64Array, count: number): void {
    const [bounds, counts, scale] = [this.#bounds, this.#counts, this.#scale];
    for (let at = 0; at < count; at += 1) {
      const value = (values[at] as number) * scale;
      let bucket = 0;
      while (value > (bounds[bucket] as number)) bucket += 1;
      counts[bucket] = (counts[bucket] as number) + 1;
    }
  }

  lines() {
    let cumulative = 0;
    return this.#bounds.map((bound, index) => {
      cumulative += this.#counts[index] as number;
      return ['_bucket', `le="${numberText(bound)}"`, cumulative] as const;
    });
  }
}

/** The window of the quantiles advances in steps of this part of it. */
const STEPS = 5;

/** Quantiles over a sliding window. */
class Quantiles implements Distribution {
  readonly #quantiles: readonly number[];
  readonly #scale: number;
  readonly #now: () => number;
  readonly #sketches = Array.from({ length: STEPS }, () => new QuantileSketch());
  readonly #stepLength: number;
  #current = 0;
  #stepEnd: number;

  constructor({ quantiles, maxAge }: Observer, scale: number, now: () => number) {
    this.#quantiles = quantiles;
    this.#scale = scale;
    this.#now = now;
    this.#stepLength = maxAge / STEPS;
    this.#stepEnd = now() + this.#stepLength;
  }

  add(values: Float64Array, count: number): void {
    this.#advance();
    this.#sketches[this.#current]?.add(values, count);
  }

  /** NaN for all quantiles when the window has no samples. */
  lines() {
    this.#advance();
    const all = new QuantileSketch();
    for (const sketch of this.#sketches) all.merge(sketch);
    return this.#quantiles.map((share) => {
      return ['', `quantile="${numberText(share)}"`, all.quantile(share) * this.#scale] as const;
    });
  }

  #advance(): void {
    const overdue = this.#now() - this.#stepEnd;
    if (overdue < 0) return;
    const steps = Math.floor(overdue / this.#stepLength) + 1;
    this.#stepEnd += steps * this.#stepLength;
    for (let step = 0; step < Math.min(steps, STEPS); step += 1) {
      this.#current = (this.#current + 1) % STEPS;
      this.#sketches[this.#current]?.clear();
    }
  }
}
