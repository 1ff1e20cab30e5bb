import type { Offender } from '../../limiter/offender';
import { QuantileSketch } from '../../statistics/quantile-sketch';
import type { Tags } from '../../statistics/tags';
import type { SampleRecorder, Timer } from '../../statistics/timer';
import { plainNumber } from '../../text/plain-number';
import type { HistogramObserver, Observer, SummaryObserver } from './mapping';

/** A valid Prometheus metric name: other characters become `_`, and a leading digit is prefixed with `_`. */
export function metricName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_:]/g, '_').replace(/^(?=\d)/, '_');
}

/** EXTRA_TAGS as labels: valid names, sorted; labels without a value are omitted, values are kept as given. */
export function extraLabels(given: Tags): Tags {
  const labels = Object.entries(given)
    .filter(([, value]) => value !== '')
    .map(([label, value]) => [labelName(label), value] as const);
  return Object.fromEntries(labels.sort(([one], [other]) => (one < other ? -1 : 1)));
}

function labelName(name: string): string {
  return name.replaceAll(/\W/g, '_').replace(/^(?=\d)/, '_');
}

/** The labels of a series without braces, sorted by name; empty when there are none. */
export function labelText(labels: Tags): string {
  return Object.entries(labels)
    .map(([label, value]) => `${labelName(label)}="${labelValue(value)}"`)
    .sort()
    .join(',');
}

/** Lone surrogates stay; they are replaced when the page is encoded. */
function labelValue(value: string): string {
  return value.replaceAll(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`));
}

/** The escaped text of a HELP line. */
function helpText(text: string): string {
  return text.replaceAll(/[\\\n]/g, (character) => (character === '\n' ? '\\n' : '\\\\'));
}

function numberText(value: number): string {
  if (value === Infinity) return '+Inf';
  return value === -Infinity ? '-Inf' : plainNumber(value);
}

export type FamilyType = 'counter' | 'gauge' | 'histogram' | 'summary';

/** One series; for a histogram or summary, the series of one set of labels. */
export interface Series {
  /** The approximate number of lines, for splitting a page into chunks. */
  readonly lines: number;
  write(): string;
}

/** The series of one metric, which the text format requires to be contiguous. */
export class Family {
  /** The HELP and TYPE lines. */
  readonly head: string;
  readonly series: Series[] = [];
  readonly #byLabels = new Map<string, Series>();

  constructor(
    name: string,
    readonly type: FamilyType,
    help: string,
  ) {
    this.head = `# HELP ${name} ${helpText(help)}\n# TYPE ${name} ${type}\n`;
  }

  /** The series with these labels, created on first use. */
  seriesOf<Made extends Series>(labels: string, make: () => Made): Made {
    let series = this.#byLabels.get(labels);
    if (series === undefined) {
      series = make();
      this.#byLabels.set(labels, series);
      this.series.push(series);
    }
    // A family has one type, and each type one class of series.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return series as Made;
  }
}

/** A number that is read when a page is written: the sum of all statistics that are mapped to the series. */
export class NumberSeries implements Series {
  readonly lines = 1;
  readonly #prefix: string;
  readonly #reads: (() => number)[] = [];

  constructor(name: string, labels: string) {
    this.#prefix = labels === '' ? name : `${name}{${labels}}`;
  }

  /** @param scale factor applied to the number; it may differ between statistics */
  readFrom(read: () => number, scale: number): void {
    this.#reads.push(scale === 1 ? read : () => read() * scale);
  }

  write(): string {
    let sum = 0;
    for (const read of this.#reads) sum += read();
    return `${this.#prefix} ${numberText(sum)}\n`;
  }
}

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

export function timerSeries(options: TimerSeriesOptions): TimerSeries {
  const { observer } = options;
  return observer.kind === 'histogram'
    ? new HistogramSeries({ ...options, observer })
    : new SummarySeries({ ...options, observer });
}

/** A histogram or summary of the durations of all timers that are mapped to it. */
abstract class TimerSeries implements Series, SampleRecorder {
  readonly #options: Omit<TimerSeriesOptions, 'observer'>;
  readonly #timers: Timer[] = [];
  protected count = 0;
  /** In the unit of the metric. */
  protected sum = 0;

  constructor(options: Omit<TimerSeriesOptions, 'observer'>) {
    this.#options = options;
  }

  readFrom(timer: Timer): void {
    this.#timers.push(timer);
    timer.addRecorder(this);
  }

  write(): string {
    for (const timer of this.#timers) timer.flush();
    const { metric, labels } = this.#options;
    const suffix = labels === '' ? '' : `{${labels}}`;
    return `${this.writeSamples()}${metric}_sum${suffix} ${numberText(this.sum)}\n${metric}_count${suffix} ${this.count}\n`;
  }

  abstract readonly lines: number;
  abstract add(values: Float64Array, count: number): void;
  protected abstract writeSamples(): string;

  /** The line of a bucket or quantile, with one more label. */
  protected line(suffix: string, label: string, value: number): string {
    const { metric, labels } = this.#options;
    return `${metric}${suffix}{${labels}${labels === '' ? '' : ','}${label}} ${numberText(value)}\n`;
  }
}

class HistogramSeries extends TimerSeries {
  readonly lines: number;
  readonly #bounds: readonly number[];
  readonly #scale: number;
  /** The number of samples in each bucket, not cumulative; the last bucket is that above all bounds. */
  readonly #counts: Float64Array;

  constructor(options: TimerSeriesOptions<HistogramObserver>) {
    super(options);
    this.#bounds = options.observer.buckets;
    this.#scale = options.scale;
    this.#counts = new Float64Array(this.#bounds.length + 1);
    this.lines = this.#bounds.length + 3;
  }

  add(values: Float64Array, count: number): void {
    const [bounds, counts, scale] = [this.#bounds, this.#counts, this.#scale];
    for (let at = 0; at < count; at += 1) {
      const value = (values[at] as number) * scale;
      let bucket = 0;
      while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket += 1;
      counts[bucket] = (counts[bucket] as number) + 1;
      this.sum += value;
    }
    this.count += count;
  }

  protected writeSamples(): string {
    let text = '';
    let cumulative = 0;
    for (const [index, bound] of [...this.#bounds, Infinity].entries()) {
      cumulative += this.#counts[index] as number;
      text += this.line('_bucket', `le="${numberText(bound)}"`, cumulative);
    }
    return text;
  }
}

/** The window of the quantiles advances in steps of this part of it. */
const STEPS = 5;

/** Quantiles over a sliding window; count and sum over the lifetime of the process. */
class SummarySeries extends TimerSeries {
  readonly lines: number;
  readonly #options: TimerSeriesOptions<SummaryObserver>;
  readonly #sketches = Array.from({ length: STEPS }, () => new QuantileSketch());
  readonly #stepLength: number;
  #current = 0;
  #stepEnd: number;

  constructor(options: TimerSeriesOptions<SummaryObserver>) {
    super(options);
    this.#options = options;
    const { quantiles, maxAge } = options.observer;
    this.#stepLength = maxAge / STEPS;
    this.#stepEnd = options.now() + this.#stepLength;
    this.lines = quantiles.length + 2;
  }

  add(values: Float64Array, count: number): void {
    this.#advance();
    this.#sketches[this.#current]?.add(values, count);
    const { scale } = this.#options;
    for (let at = 0; at < count; at += 1) this.sum += (values[at] as number) * scale;
    this.count += count;
  }

  /** NaN for all quantiles when the window has no samples. */
  protected writeSamples(): string {
    this.#advance();
    const all = new QuantileSketch();
    for (const sketch of this.#sketches) all.merge(sketch);
    const { observer, scale } = this.#options;
    return observer.quantiles
      .map((share) => this.line('', `quantile="${numberText(share)}"`, all.quantile(share) * scale))
      .join('');
  }

  #advance(): void {
    const overdue = this.#options.now() - this.#stepEnd;
    if (overdue < 0) return;
    const steps = Math.floor(overdue / this.#stepLength) + 1;
    this.#stepEnd += steps * this.#stepLength;
    for (let step = 0; step < Math.min(steps, STEPS); step += 1) {
      this.#current = (this.#current + 1) % STEPS;
      this.#sketches[this.#current]?.clear();
    }
  }
}

export const OFFENDER_METRIC = 'ratelimit_offender_limited';

const OFFENDER_HELP =
  'Calls over the limit in the current and the previous period, at least, of the descriptors limited most.';

/** The series of the offenders. Those whose texts are cut off at the same place become one, because labels must differ. */
export function offenderSeries(offenders: readonly Offender[], extra: Tags): string {
  const values = new Map<string, number>();
  for (const { domain, rule, descriptor, isShadow, limited } of offenders) {
    const labels = labelText({ ...extra, domain, rule, descriptor, shadow_mode: String(isShadow) });
    values.set(labels, (values.get(labels) ?? 0) + limited);
  }
  let page = new Family(OFFENDER_METRIC, 'gauge', OFFENDER_HELP).head;
  for (const [labels, value] of values) page += `${OFFENDER_METRIC}{${labels}} ${numberText(value)}\n`;
  return page;
}
