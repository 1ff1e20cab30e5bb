import type { Offender } from '../../limiter/offender';
import { QuantileSketch } from '../../statistics/quantile-sketch';
import type { Tags } from '../../statistics/tags';
import type { SampleRecorder, Timer } from '../../statistics/timer';
import { plainNumber } from '../../text/plain-number';
import { WideTable } from '../../text/wide-map';
import type { Observer } from './mapping';

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
  const texts: string[] = [];
  for (const label in labels) texts.push(`${labelName(label)}="${labelValue(labels[label] as string)}"`);
  return texts.sort().join(',');
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

/** The series of one metric, which the text format requires to be contiguous. */
export interface Family {
  readonly metric: string;
  readonly type: FamilyType;
  readonly help: string;
  /** The text of each series; empty texts between them are steps of the work. */
  texts(read: ReadNumber): Iterable<string>;
}

/** The HELP and TYPE lines. */
export function headOf({ metric, type, help }: Omit<Family, 'texts'>): string {
  return `# HELP ${metric} ${helpText(help)}\n# TYPE ${metric} ${type}\n`;
}

/** A statistic of a rule by its position, for there may be millions of them; or a function that reads a number. */
export type NumberSource = number | (() => number);
export type ReadNumber = (source: NumberSource) => number;

/** Families with fewer series have no table of them. */
const FEW = 16;
/** Numbers that are added up in one step. */
const ADDED_PER_STEP = 512;

/**
 * Series of numbers that are read when a page is written: each is the sum of all statistics that are mapped to it. There may be a million: a
 * series is its labels, which the statistics of a rule share, and where its number is read.
 */
export class NumberFamily implements Family {
  readonly #labels: string[] = [];
  /** The first one of each series. */
  readonly #sources: NumberSource[] = [];
  /** The other ones, by series. */
  #others: Map<number, NumberSource[]> | undefined;
  #byLabels: WideTable<number> | undefined;

  constructor(
    readonly metric: string,
    readonly type: 'counter' | 'gauge',
    readonly help: string,
  ) {}

  /** @param labels without braces */
  add(labels: string, source: NumberSource): void {
    const series = this.#seriesOf(labels);
    if (series === undefined) {
      this.#byLabels?.set(labels, this.#labels.length);
      this.#labels.push(labels);
      this.#sources.push(source);
      return;
    }
    this.#others ??= new Map();
    const others = this.#others.get(series);
    if (others === undefined) this.#others.set(series, [source]);
    else others.push(source);
  }

  *texts(read: ReadNumber): Generator<string, void, void> {
    for (let series = 0; series < this.#labels.length; series += 1) {
      let sum = read(this.#sources[series] as NumberSource);
      const others = this.#others?.get(series) ?? [];
      for (let at = 0; at < others.length; at += 1) {
        sum += read(others[at] as NumberSource);
        if (at % ADDED_PER_STEP === 0) yield '';
      }
      const labels = this.#labels[series] as string;
      yield `${this.metric}${labels === '' ? '' : `{${labels}}`} ${numberText(sum)}\n`;
    }
  }

  #seriesOf(labels: string): number | undefined {
    if (this.#labels.length < FEW) {
      const series = this.#labels.indexOf(labels);
      return series === -1 ? undefined : series;
    }
    if (this.#byLabels === undefined) {
      this.#byLabels = new WideTable();
      for (const [series, each] of this.#labels.entries()) this.#byLabels.set(each, series);
    }
    return this.#byLabels.get(labels);
  }
}

/** Histograms or summaries. */
export class TimerFamily implements Family {
  readonly #series = new Map<string, TimerSeries>();

  constructor(
    readonly metric: string,
    readonly type: 'histogram' | 'summary',
    readonly help: string,
  ) {}

  /** The series with these labels, created on first use. */
  seriesOf(labels: string, make: () => TimerSeries): TimerSeries {
    let series = this.#series.get(labels);
    if (series === undefined) this.#series.set(labels, (series = make()));
    return series;
  }

  *texts(): Generator<string, void, void> {
    for (const series of this.#series.values()) yield series.write();
  }
}

export interface TimerSeriesOptions {
  readonly metric: string;
  /** Without braces; empty when there are none. */
  readonly labels: string;
  readonly observer: Observer;
  /** Factor from milliseconds to the unit of the metric. */
  readonly scale: number;
  /** Monotonic time in milliseconds. */
  readonly now: () => number;
}

/** Where durations are, as buckets or quantiles. */
interface Distribution {
  /** Of durations in milliseconds. */
  add(values: Float64Array, count: number): void;
  /** The name's suffix, one more label, and the value of each line. */
  lines(): readonly (readonly [suffix: string, label: string, value: number])[];
}

/** A histogram or summary of the durations of all timers that are mapped to it. */
export class TimerSeries implements SampleRecorder {
  readonly #options: TimerSeriesOptions;
  readonly #distribution: Distribution;
  readonly #timers: Timer[] = [];
  #count = 0;
  /** In the unit of the metric. */
  #sum = 0;

  constructor(options: TimerSeriesOptions) {
    const { observer, scale, now } = options;
    this.#options = options;
    this.#distribution =
      observer.kind === 'histogram' ? new Buckets(observer, scale) : new Quantiles(observer, scale, now);
  }

  readFrom(timer: Timer): void {
    this.#timers.push(timer);
    timer.addRecorder(this);
  }

  add(values: Float64Array, count: number): void {
    this.#distribution.add(values, count);
    const { scale } = this.#options;
    for (let at = 0; at < count; at += 1) this.#sum += (values[at] as number) * scale;
    this.#count += count;
  }

  write(): string {
    for (const timer of this.#timers) timer.flush();
    const { metric, labels } = this.#options;
    const [before, suffix] = labels === '' ? ['', ''] : [`${labels},`, `{${labels}}`];
    let text = '';
    for (const [part, label, value] of this.#distribution.lines()) {
      text += `${metric}${part}{${before}${label}} ${numberText(value)}\n`;
    }
    return `${text}${metric}_sum${suffix} ${numberText(this.#sum)}\n${metric}_count${suffix} ${this.#count}\n`;
  }
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
  let page = headOf({ metric: OFFENDER_METRIC, type: 'gauge', help: OFFENDER_HELP });
  for (const [labels, value] of values) page += `${OFFENDER_METRIC}{${labels}} ${numberText(value)}\n`;
  return page;
}
