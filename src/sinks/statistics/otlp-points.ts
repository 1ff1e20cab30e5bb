import { type HrTime, ValueType } from '@opentelemetry/api';
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  type ExponentialHistogram,
  type MetricData,
} from '@opentelemetry/sdk-metrics';
import type { Settings } from '../../settings/settings';
import { type ExponentialBuckets, difference } from './exponential-buckets';
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

/** The points of one metric. Of deltas, it remembers what was exported of each series, so that nothing is lost when an export fails. */
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

  /** A point for each series, except those without a number, and of deltas those without a change; undefined is a step of the work. */
  *points(read: ReadNumber, span: Span): Generator<Point | undefined, void, void> {
    const family = this.#family;
    if (family instanceof NumberFamily) {
      yield* family.each(read, (labels, sum, series) =>
        Number.isFinite(sum) ? this.#point(series, labels, sum, span) : undefined,
      );
      return;
    }
    let series = 0;
    for (const timers of family.series) {
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

/** Both are of the same kind, since they are of the same series. */
function changeOf(value: Value, before: Value): Value {
  if (typeof value === 'object' && typeof before === 'object') return difference(value, before);
  return Number(value) - Number(before);
}
