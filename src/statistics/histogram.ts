import type { Samples } from './timer';

/** Counts samples by bounds, each bound belonging to the bucket below it as in Prometheus. */
export class Histogram implements Samples {
  readonly #scale: number;
  /** How many samples lie in each bucket, the last being that above every bound. Not cumulative. */
  readonly counts: Float64Array;
  sum = 0;
  count = 0;

  /**
   * @param bounds in ascending order
   * @param scale what milliseconds are multiplied with before they are compared with the bounds and added to the sum
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
