import type { Samples } from './timer';

/** The ratio of two neighbouring bins: a quantile is at most 1 % off. */
const GROWTH = 1.02;
const LOG_GROWTH = Math.log(GROWTH);
/** The middle of the first bin, in milliseconds: 0.1 µs. What is shorter counts as this. */
const SHORTEST = 1e-4;
/** What is longer than the last bin, about three days, counts into it. */
const BINS = 1400;

/** Counts samples in bins whose width grows with the value, so that every quantile can be told within 1 %. */
export class QuantileSketch implements Samples {
  readonly #bins = new Float64Array(BINS);
  count = 0;
  sum = 0;
  max = 0;

  add(values: Float64Array, count: number): void {
    for (let at = 0; at < count; at += 1) {
      const value = values[at] as number;
      const bin = value > SHORTEST ? Math.min(BINS - 1, Math.round(Math.log(value / SHORTEST) / LOG_GROWTH)) : 0;
      this.#bins[bin] = (this.#bins[bin] as number) + 1;
      this.sum += value;
      if (value > this.max) this.max = value;
    }
    this.count += count;
  }

  /** Takes the samples of another in. */
  merge(other: QuantileSketch): void {
    for (let bin = 0; bin < BINS; bin += 1)
      this.#bins[bin] = (this.#bins[bin] as number) + (other.#bins[bin] as number);
    this.count += other.count;
    this.sum += other.sum;
    this.max = Math.max(this.max, other.max);
  }

  clear(): void {
    this.#bins.fill(0);
    this.count = 0;
    this.sum = 0;
    this.max = 0;
  }

  /** @param share from 0 to 1; NaN when there is no sample */
  quantile(share: number): number {
    if (this.count === 0) return Number.NaN;
    const rank = Math.max(1, Math.ceil(share * this.count));
    let below = 0;
    for (let bin = 0; bin < BINS; bin += 1) {
      below += this.#bins[bin] as number;
      if (below >= rank) return Math.min(this.max, SHORTEST * Math.exp(bin * LOG_GROWTH));
    }
    return this.max;
  }
}
