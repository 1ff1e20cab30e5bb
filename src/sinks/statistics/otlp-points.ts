import { type HrTime, ValueType } from '@opentelemetry/api';
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  type ExponentialHistogram,
  type MetricData,
} from '@opentelemetry/sdk-metrics';
import type { Settings } from '../../settings/settings';
import type { SampleRecorder } from '../../statistics/timer';
import { NumberFamily, type ReadNumber, type TimerFamily, labelsIn } from './series';

/** Which points are those since the last export that has succeeded: `lowmemory`, those of histograms alone. */
export type Temporality = Settings['otelExporterOtlpMetricsTemporalityPreference'];

type Value = number | ExponentialHistogram;

/** A point of a series; of a delta, with what is to be called once it is exported. */
export interface Point {
  readonly family: FamilyPoints;
  readonly data: DataPoint<Value>;
  readonly exported?: () => void;
}

/** When points begin and end. */
export interface Span {
  /** The start of the process. */
  readonly start: HrTime;
  readonly now: HrTime;
}

/**
 * The points of one metric. Of deltas, it remembers what was exported of each series, so that nothing is lost when an
 * export fails.
 */
export class FamilyPoints {
  readonly #family: NumberFamily | TimerFamily<ExponentialBuckets>;
  readonly #isDelta: boolean;
  /** By the index of the series: what was exported last, and when. */
  readonly #last: { readonly value: Value; readonly time: HrTime }[] = [];

  constructor(family: NumberFamily | TimerFamily<ExponentialBuckets>, temporality: Temporality) {
    this.#family = family;
    // Counters are read when they are exported, as those of the specification that stay cumulative to save memory.
    const ofCounters = temporality === 'delta' && family.type === 'counter';
    this.#isDelta = family instanceof NumberFamily ? ofCounters : temporality !== 'cumulative';
  }

  /** The metric with these points. */
  metric(dataPoints: readonly Point['data'][]): MetricData {
    const { metric: name, help: description, type } = this.#family;
    // The points are those of the type of the family.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return {
      // A collector may add a unit to the name, which then was another one than that of the page.
      descriptor: { name, description, unit: '', valueType: ValueType.DOUBLE },
      aggregationTemporality: this.#isDelta ? AggregationTemporality.DELTA : AggregationTemporality.CUMULATIVE,
      dataPointType: pointType(type),
      isMonotonic: true,
      dataPoints,
    } as MetricData;
  }

  /**
   * A point for each series, except those without a number, and of deltas those without a change; undefined is a step
   * of the work.
   */
  *points(read: ReadNumber, span: Span): Generator<Point | undefined, void, void> {
    const family = this.#family;
    if (family instanceof NumberFamily) {
      yield* family.each(read, (labels, sum, series) =>
        Number.isFinite(sum) ? this.#point(series, labels, sum, span) : undefined,
      );
      return;
    }
    let series = 0;
    for (const timers of family.series.values()) {
      timers.flush();
      const { labels, count, sum, distribution } = timers;
      yield this.#point(series, labels, { count, sum, ...distribution.read() }, span);
      series += 1;
    }
  }

  // oxlint-disable-next-line max-params -- called for each series
  #point(series: number, labels: string, value: Value, { start, now }: Span): Point | undefined {
    const last = this.#last[series];
    if (!this.#isDelta) return this.#pointOf(labels, { startTime: start, endTime: now, value });
    const delta = last === undefined ? value : changeOf(value, last.value);
    if ((typeof delta === 'number' ? delta : delta.count) === 0) return undefined;
    const point = this.#pointOf(labels, { startTime: last?.time ?? start, endTime: now, value: delta });
    return { ...point, exported: () => void (this.#last[series] = { value, time: now }) };
  }

  #pointOf(labels: string, data: Omit<Point['data'], 'attributes'>): Point {
    return { family: this, data: { ...data, attributes: labelsIn(labels) } };
  }
}

function pointType(type: 'counter' | 'gauge' | 'histogram' | 'summary'): DataPointType {
  if (type === 'counter') return DataPointType.SUM;
  return type === 'gauge' ? DataPointType.GAUGE : DataPointType.EXPONENTIAL_HISTOGRAM;
}

/** By how much a series has grown, whose values are all of one kind. */
function changeOf(value: Value, before: Value): Value {
  if (typeof value === 'object' && typeof before === 'object') return difference(value, before);
  return Number(value) - Number(before);
}

/**
 * Buckets per octave, as a power of two: each is 9 % wide. With these, durations of which the longest is a million
 * times the shortest take 160 buckets, the maximum of OpenTelemetry's own SDK.
 */
const SCALE = 3;
const PER_OCTAVE = 2 ** SCALE;
/** The binary exponents of the durations in milliseconds that have buckets of their own: from 61 ns to three days. */
const [SHORTEST_LOG2, LONGEST_LOG2] = [-14, 28];
const BUCKETS = (LONGEST_LOG2 - SHORTEST_LOG2) * PER_OCTAVE;

/**
 * The buckets of an exponential histogram of OTLP. The one with the index `i` has the values above `2 ** (i / 8)`, up
 * to and with `2 ** ((i + 1) / 8)`; the first and the last one also have what is below and above all of them.
 */
export class ExponentialBuckets implements SampleRecorder {
  readonly #counts = new Float64Array(BUCKETS);
  readonly #scale: number;
  /** The index of the first bucket. */
  readonly #offset: number;
  /** The values that are not above 0. */
  #zeros = 0;

  /** @param scale factor from milliseconds to the unit of the metric */
  constructor(scale: number) {
    this.#scale = scale;
    this.#offset = Math.floor((SHORTEST_LOG2 + Math.log2(scale)) * PER_OCTAVE);
  }

  add(values: Float64Array, count: number): void {
    const [counts, scale, offset] = [this.#counts, this.#scale, this.#offset];
    for (let at = 0; at < count; at += 1) {
      const value = (values[at] as number) * scale;
      if (!(value > 0)) {
        this.#zeros += 1;
        continue;
      }
      const index = Math.ceil(Math.log2(value) * PER_OCTAVE) - 1 - offset;
      const bucket = Math.min(Math.max(index, 0), BUCKETS - 1);
      counts[bucket] = (counts[bucket] as number) + 1;
    }
  }

  /** From the first to the last bucket that has values. */
  read(): Pick<ExponentialHistogram, 'scale' | 'zeroCount' | 'positive' | 'negative'> {
    const first = this.#counts.findIndex((count) => count !== 0);
    const end = this.#counts.findLastIndex((count) => count !== 0) + 1;
    return {
      scale: SCALE,
      zeroCount: this.#zeros,
      positive: { offset: first === -1 ? 0 : this.#offset + first, bucketCounts: [...this.#counts.slice(first, end)] },
      negative: { offset: 0, bucketCounts: [] },
    };
  }
}

/** What a histogram has in addition to an earlier one of the same durations. */
export function difference(histogram: ExponentialHistogram, earlier: ExponentialHistogram): ExponentialHistogram {
  const { offset, bucketCounts } = histogram.positive;
  const shift = offset - earlier.positive.offset;
  return {
    ...histogram,
    count: histogram.count - earlier.count,
    sum: (histogram.sum ?? 0) - (earlier.sum ?? 0),
    zeroCount: histogram.zeroCount - earlier.zeroCount,
    positive: {
      offset,
      bucketCounts: bucketCounts.map((count, index) => count - (earlier.positive.bucketCounts[index + shift] ?? 0)),
    },
  };
}
