import { Fields } from './protobuf-fields';

/** A point of a series, as a collector exports it. */
export type MetricPoint = ReturnType<typeof readMetrics>[number];

const KINDS = ['gauge', 'counter', 'histogram', 'exponential histogram', 'summary'] as const;
const FIELDS = { gauge: 5, counter: 7, histogram: 9, 'exponential histogram': 10, summary: 11 } as const;
const TEMPORALITIES = ['none', 'delta', 'cumulative'] as const;

/** Decodes an ExportMetricsServiceRequest by the field numbers of its published definition. */
export function readMetrics(message: Uint8Array) {
  return new Fields(message).messages(1).flatMap((resourceMetrics) => {
    const resource = resourceMetrics.messages(1)[0]?.attributes(1) ?? {};
    const metrics = resourceMetrics.messages(2).flatMap((scopeMetrics) => scopeMetrics.messages(2));
    return metrics.flatMap((metric) => pointsOf(metric).map((point) => ({ resource, ...point })));
  });
}

function pointsOf(metric: Fields) {
  return KINDS.flatMap((kind) =>
    metric.messages(FIELDS[kind]).flatMap((data) =>
      data.messages(1).map((point) => ({
        name: metric.text(1),
        help: metric.text(2),
        unit: metric.text(3),
        kind,
        temporality: TEMPORALITIES[data.number(2)] ?? 'other',
        isMonotonic: data.number(3) === 1,
        /** Unix nanoseconds. */
        start: point.nanoseconds(2),
        end: point.nanoseconds(3),
        ...(kind === 'exponential histogram' ? histogramOf(point) : numberOf(point)),
      })),
    ),
  );
}

function numberOf(point: Fields) {
  return { labels: point.attributes(7), value: point.double(4) ?? Number(point.nanoseconds(6)), histogram: undefined };
}

function histogramOf(point: Fields) {
  const [positive] = point.messages(8);
  const histogram = {
    sum: point.double(5) ?? NaN,
    scale: point.signed(6),
    zeros: Number(point.nanoseconds(7)),
    offset: positive?.signed(1) ?? 0,
    buckets: positive?.numbers(2) ?? [],
  };
  return { labels: point.attributes(1), value: Number(point.nanoseconds(4)), histogram };
}
