import type { SampleRecorder } from './timer';

/** Counts samples in buckets with inclusive upper bounds, as in Prometheus. */
export class Histogram implements SampleRecorder {
  readonly #scale: number;
  /** The number of samples in each bucket, not cumulative; the last bucket is that above all bounds. */
  readonly counts: Float64Array;
  sum = 0;
  count = 0;

  /**
   * @param bounds in ascending order
   * @param scale the factor from milliseconds to the unit of the bounds and the sum
   */
  constructor(
    readonly bounds: readonly number[],
    scale: number,
  ) {
    this.#scale = scale;
    this.counts = new Float64Array(bounds.length + 1);
  }

  add(values: Float64Array, count: number): void {
    const { bounds, counts } = this;
    const scale = this.#scale;
    for (let at = 0; at < count; at += 1) {
      const value = (values[at] as number) * scale;
      let bucket = 0;
      while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket += 1;
      counts[bucket] = (counts[bucket] as number) + 1;
      this.sum += value;
    }
    this.count += count;
  }
}
