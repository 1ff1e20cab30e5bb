import type { ExponentialHistogram } from '@opentelemetry/sdk-metrics';
import type { SampleRecorder } from '../../statistics/timer';

/**
 * Buckets per octave, as a power of two: each is 9 % wide. With these, durations of which the longest is a million times the shortest take
 * 160 buckets, the maximum of OpenTelemetry's own SDK.
 */
const SCALE = 3;
const PER_OCTAVE = 2 ** SCALE;
/** The binary exponents of the durations in milliseconds that have buckets of their own: from 61 ns to three days. */
const [SHORTEST_LOG2, LONGEST_LOG2] = [-14, 28];
const BUCKETS = (LONGEST_LOG2 - SHORTEST_LOG2) * PER_OCTAVE;

/**
 * The buckets of an exponential histogram of OTLP. The one with the index `i` has the values above `2 ** (i / 8)`, up to and with
 * `2 ** ((i + 1) / 8)`; the first and the last one also have what is below and above all of them.
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
