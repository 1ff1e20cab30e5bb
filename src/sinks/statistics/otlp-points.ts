import { type HrTime, ValueType } from '@opentelemetry/api';
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  type ExponentialHistogram,
  type MetricData,
} from '@opentelemetry/sdk-metrics';
import { type ExponentialBuckets, difference } from './exponential-buckets';
import { NumberFamily, type ReadNumber, type TimerFamily, labelsIn } from './series';

/** Which points are those since the last export that has succeeded. */
export interface Deltas {
  readonly counters: boolean;
  readonly histograms: boolean;
}

type Value = number | ExponentialHistogram;

/** A point of a series; of a delta, with what is to be called once it is exported. */
export interface Point {
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

  constructor(family: NumberFamily | TimerFamily<ExponentialBuckets>, deltas: Deltas) {
    this.#family = family;
    this.#isDelta = family instanceof NumberFamily ? family.type === 'counter' && deltas.counters : deltas.histograms;
  }

  /** The metric with these points. */
  metric(dataPoints: readonly Point['data'][]): MetricData {
    const { metric: name, help: description, type } = this.#family;
    // A collector may add a unit to the name, which then was another one than that of the page.
    const descriptor = { name, description, unit: '', valueType: ValueType.DOUBLE };
    const aggregationTemporality = this.#isDelta ? AggregationTemporality.DELTA : AggregationTemporality.CUMULATIVE;
    // The points are those of the type of the family.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return {
      descriptor,
      aggregationTemporality,
      dataPointType: pointType(type),
      isMonotonic: true,
      dataPoints,
    } as MetricData;
  }

  /** A point for each series, except those without a number, and of deltas those without a change; undefined is a step of the work. */
  *points(read: ReadNumber, span: Span): Generator<Point | undefined, void, void> {
    const family = this.#family;
    let series = 0;
    if (family instanceof NumberFamily) {
      for (const sum of family.sums(read)) {
        if (sum === undefined || !Number.isFinite(sum)) yield undefined;
        else yield this.#point(series, family.labels[series] as string, sum, span);
        if (sum !== undefined) series += 1;
      }
      return;
    }
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
    if (!this.#isDelta) return { data: { startTime: start, endTime: now, attributes: labelsIn(labels), value } };
    const delta = last === undefined ? value : changeOf(value, last.value);
    if ((typeof delta === 'number' ? delta : delta.count) === 0) return undefined;
    return {
      data: { startTime: last?.time ?? start, endTime: now, attributes: labelsIn(labels), value: delta },
      exported: () => void (this.#last[series] = { value, time: now }),
    };
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
