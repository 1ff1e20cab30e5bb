import type { ListedOffender } from '../../limiter/offender';
import type { Tags } from '../../statistics/tags';
import type { SampleRecorder, Timer } from '../../statistics/timer';
import { plainNumber } from '../../text/plain-number';
import { WideTable } from '../../text/wide-map';

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

const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/gsu;

/** The labels in such a text. */
export function labelsIn(text: string): Tags {
  const labels: Record<string, string> = {};
  for (const [, name = '', value = ''] of text.matchAll(LABEL)) {
    labels[name] = value.includes('\\')
      ? value.replaceAll(/\\(.)/gsu, (_, character) => (character === 'n' ? '\n' : String(character)))
      : value;
  }
  return labels;
}

/** Lone surrogates stay; they are replaced when the page is encoded. */
function labelValue(value: string): string {
  return value.replaceAll(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`));
}

/** The escaped text of a HELP line. */
function helpText(text: string): string {
  return text.replaceAll(/[\\\n]/g, (character) => (character === '\n' ? '\\n' : '\\\\'));
}

export function numberText(value: number): string {
  if (value === Infinity) return '+Inf';
  return value === -Infinity ? '-Inf' : plainNumber(value);
}

export type FamilyType = 'counter' | 'gauge' | 'histogram' | 'summary';

/** The series of one metric, which the text format requires to be contiguous. */
class Family<Type extends FamilyType> {
  constructor(
    readonly metric: string,
    readonly type: Type,
    readonly help: string,
  ) {}
}

/** The HELP and TYPE lines. */
export function headOf({ metric, type, help }: Family<FamilyType>): string {
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
 * Series of numbers that are read when a page is written: each is the sum of all statistics that are mapped to it.
 * There may be a million: a series is its labels, which the statistics of a rule share, and where its number is read.
 */
export class NumberFamily extends Family<'counter' | 'gauge'> {
  readonly #labels: string[] = [];
  /** The first one of each series. */
  readonly #sources: NumberSource[] = [];
  /** The other ones, by series. */
  #others: Map<number, NumberSource[]> | undefined;
  #byLabels: WideTable<number> | undefined;

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

  /**
   * What is made of each series, in order; undefined may also be a step of the work.
   *
   * @param make is called with the labels, the number and the index of a series
   */
  *each<T>(
    read: ReadNumber,
    make: (labels: string, sum: number, series: number) => T,
  ): Generator<T | undefined, void, void> {
    for (let series = 0; series < this.#labels.length; series += 1) {
      let sum = read(this.#sources[series] as NumberSource);
      const others = this.#others?.get(series) ?? [];
      for (let at = 0; at < others.length; at += 1) {
        sum += read(others[at] as NumberSource);
        if (at % ADDED_PER_STEP === 0) yield undefined;
      }
      yield make(this.#labels[series] as string, sum, series);
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
export class TimerFamily<Recorder extends SampleRecorder> extends Family<'histogram' | 'summary'> {
  /** By their labels. */
  readonly series = new Map<string, TimerSeries<Recorder>>();
}

/** The durations of all timers that are mapped to one series. */
export class TimerSeries<Recorder extends SampleRecorder> implements SampleRecorder {
  readonly #timers: Timer[] = [];
  readonly #scale: number;
  count = 0;
  /** In the unit of the metric. */
  sum = 0;

  /**
   * @param labels without braces; empty when there are none
   * @param distribution where the durations are
   * @param scale factor from milliseconds to the unit of the metric
   */
  constructor(
    readonly labels: string,
    readonly distribution: Recorder,
    scale: number,
  ) {
    this.#scale = scale;
  }

  readFrom(timer: Timer): void {
    this.#timers.push(timer);
    timer.addRecorder(this);
  }

  add(values: Float64Array, count: number): void {
    this.distribution.add(values, count);
    const scale = this.#scale;
    for (let at = 0; at < count; at += 1) this.sum += (values[at] as number) * scale;
    this.count += count;
  }

  /** Takes over what the timers have recorded; to be called before the series is read. */
  flush(): void {
    for (const timer of this.#timers) timer.flush();
  }
}

export const OFFENDER_METRIC = 'ratelimit_offender_limited';

const OFFENDER_HELP =
  'Calls over the limit in the current and the previous period, at least, of the descriptors limited most.';

type OfMetric = Pick<ListedOffender, 'domain' | 'rule' | 'descriptor' | 'isShadow' | 'limited'>;

/**
 * The series of the offenders. Those whose texts are cut off at the same place become one, because labels must differ.
 */
export function offenderSeries(offenders: readonly OfMetric[], extra: Tags): string {
  const values = new Map<string, number>();
  for (const { domain, rule, descriptor, isShadow, limited } of offenders) {
    const labels = labelText({ ...extra, domain, rule, descriptor, shadow_mode: String(isShadow) });
    values.set(labels, (values.get(labels) ?? 0) + limited);
  }
  let page = headOf({ metric: OFFENDER_METRIC, type: 'gauge', help: OFFENDER_HELP });
  for (const [labels, value] of values) page += `${OFFENDER_METRIC}{${labels}} ${numberText(value)}\n`;
  return page;
}
