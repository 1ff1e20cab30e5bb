import { Histogram } from '../../../statistics/histogram';
import type { Timer } from '../../../statistics/timer';
import type { HistogramObserver, Observer, SummaryObserver } from '../mapping/mapping';
import type { Series } from './family';
import { numberText } from './label-text';
import { RecentQuantiles } from './recent-quantiles';

export interface TimerSeriesOptions<Kind extends Observer = Observer> {
  readonly metric: string;
  /** Without braces; empty when there are none. */
  readonly labels: string;
  readonly observer: Kind;
  /** Factor from milliseconds to the unit of the metric. */
  readonly scale: number;
  /** Monotonic time in milliseconds. */
  readonly now: () => number;
}

/** A histogram or summary of the durations of all timers that are mapped to it. */
abstract class TimerSeries implements Series {
  abstract readonly lines: number;
  protected readonly metric: string;
  protected readonly labels: string;
  /** The labels in braces. */
  protected readonly suffix: string;
  readonly #timers: Timer[] = [];

  constructor({ metric, labels }: TimerSeriesOptions) {
    this.metric = metric;
    this.labels = labels;
    this.suffix = labels === '' ? '' : `{${labels}}`;
  }

  readFrom(timer: Timer): void {
    this.#timers.push(timer);
    timer.addRecorder(this.samples);
  }

  write(): string {
    for (const timer of this.#timers) timer.flush();
    return this.writeSamples();
  }

  protected abstract readonly samples: Histogram | RecentQuantiles;
  protected abstract writeSamples(): string;

  protected labelsWith(name: string, value: number): string {
    return `{${this.labels}${this.labels === '' ? '' : ','}${name}="${numberText(value)}"}`;
  }
}

class HistogramSeries extends TimerSeries {
  readonly lines: number;
  protected readonly samples: Histogram;

  constructor(options: TimerSeriesOptions<HistogramObserver>) {
    super(options);
    const { buckets } = options.observer;
    this.samples = new Histogram(buckets, options.scale);
    this.lines = buckets.length + 3;
  }

  protected writeSamples(): string {
    const { metric, suffix, samples } = this;
    let text = '';
    let cumulative = 0;
    for (const [index, bound] of [...samples.bounds, Infinity].entries()) {
      cumulative += samples.counts[index] as number;
      text += `${metric}_bucket${this.labelsWith('le', bound)} ${cumulative}\n`;
    }
    return `${text}${metric}_sum${suffix} ${numberText(samples.sum)}\n${metric}_count${suffix} ${samples.count}\n`;
  }
}

class SummarySeries extends TimerSeries {
  readonly #quantiles: readonly number[];
  readonly #scale: number;
  readonly lines: number;
  protected readonly samples: RecentQuantiles;

  constructor(options: TimerSeriesOptions<SummaryObserver>) {
    super(options);
    const { quantiles, maxAge } = options.observer;
    this.#quantiles = quantiles;
    this.#scale = options.scale;
    this.samples = new RecentQuantiles(maxAge, options.now);
    this.lines = quantiles.length + 2;
  }

  protected writeSamples(): string {
    const { metric, suffix, samples } = this;
    const scale = this.#scale;
    const values = samples.quantiles(this.#quantiles);
    const text = this.#quantiles.map(
      (quantile, index) =>
        `${metric}${this.labelsWith('quantile', quantile)} ${numberText((values[index] as number) * scale)}\n`,
    );
    return `${text.join('')}${metric}_sum${suffix} ${numberText(samples.sum * scale)}\n${metric}_count${suffix} ${samples.count}\n`;
  }
}

export function timerSeries(options: TimerSeriesOptions): HistogramSeries | SummarySeries {
  const { observer } = options;
  return observer.kind === 'histogram'
    ? new HistogramSeries({ ...options, observer })
    : new SummarySeries({ ...options, observer });
}
