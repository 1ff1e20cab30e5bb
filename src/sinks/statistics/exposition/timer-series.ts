import { Histogram } from '../../../statistics/histogram';
import type { Timer } from '../../../statistics/timer';
import type { Series } from './family';
import { numberText } from './label-text';
import type { Observer } from '../mapping/mapping';
import { RecentQuantiles } from './recent-quantiles';

/** A series of durations, from as many timers as map to it. */
abstract class TimerSeries implements Series {
  abstract readonly lines: number;
  protected readonly suffix: string;
  readonly #timers: Timer[] = [];

  constructor(
    protected readonly name: string,
    protected readonly labels: string,
  ) {
    this.suffix = labels === '' ? '' : `{${labels}}`;
  }

  readFrom(timer: Timer): void {
    this.#timers.push(timer);
    timer.giveTo(this.keeper);
  }

  write(): string {
    for (const timer of this.#timers) timer.settle();
    return this.writeSettled();
  }

  protected abstract readonly keeper: Histogram | RecentQuantiles;
  protected abstract writeSettled(): string;

  protected label(name: string, value: number): string {
    return `{${this.labels}${this.labels === '' ? '' : ','}${name}="${numberText(value)}"}`;
  }
}

class HistogramSeries extends TimerSeries {
  readonly lines: number;
  protected readonly keeper: Histogram;

  constructor(name: string, labels: string, buckets: readonly number[], scale: number) {
    super(name, labels);
    this.keeper = new Histogram(buckets, scale);
    this.lines = buckets.length + 3;
  }

  protected writeSettled(): string {
    const { name, suffix, keeper } = this;
    let text = '';
    let upTo = 0;
    for (const [index, bound] of [...keeper.bounds, Infinity].entries()) {
      upTo += keeper.counts[index] as number;
      text += `${name}_bucket${this.label('le', bound)} ${upTo}\n`;
    }
    return `${text}${name}_sum${suffix} ${numberText(keeper.sum)}\n${name}_count${suffix} ${keeper.count}\n`;
  }
}

class SummarySeries extends TimerSeries {
  readonly #shares: readonly number[];
  readonly #scale: number;
  readonly lines: number;
  protected readonly keeper: RecentQuantiles;

  constructor(
    name: string,
    labels: string,
    shares: readonly number[],
    scale: number,
    maxAge: number,
    now: () => number,
  ) {
    super(name, labels);
    this.#shares = shares;
    this.#scale = scale;
    this.keeper = new RecentQuantiles(maxAge, now);
    this.lines = shares.length + 2;
  }

  protected writeSettled(): string {
    const { name, suffix, keeper } = this;
    const scale = this.#scale;
    const quantiles = keeper.quantiles(this.#shares);
    const text = this.#shares.map(
      (share, index) => `${name}${this.label('quantile', share)} ${numberText((quantiles[index] as number) * scale)}\n`,
    );
    return `${text.join('')}${name}_sum${suffix} ${numberText(keeper.sum * scale)}\n${name}_count${suffix} ${keeper.count}\n`;
  }
}

/** @param now in milliseconds, from any beginning */
export function timerSeries(
  name: string,
  labels: string,
  observer: Observer,
  scale: number,
  now: () => number,
): HistogramSeries | SummarySeries {
  if (observer.kind === 'histogram') return new HistogramSeries(name, labels, observer.buckets, scale);
  const shares = observer.quantiles.map(({ share }) => share);
  return new SummarySeries(name, labels, shares, scale, observer.maxAge, now);
}
