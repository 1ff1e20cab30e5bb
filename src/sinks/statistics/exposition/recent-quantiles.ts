import { QuantileSketch } from '../../../statistics/quantile-sketch';
import type { SampleRecorder } from '../../../statistics/timer';

/** The window advances in steps of this part of it. */
const STEPS = 5;

/** A Prometheus summary: quantiles over a sliding window, count and sum over the lifetime of the process. */
export class RecentQuantiles implements SampleRecorder {
  readonly #now: () => number;
  count = 0;
  sum = 0;
  readonly #sketches = Array.from({ length: STEPS }, () => new QuantileSketch());
  readonly #stepLength: number;
  #current = 0;
  #stepEnd: number;

  /**
   * @param maxAge length of the window in milliseconds
   * @param now monotonic time in milliseconds
   */
  constructor(maxAge: number, now: () => number) {
    this.#now = now;
    this.#stepLength = maxAge / STEPS;
    this.#stepEnd = now() + this.#stepLength;
  }

  add(values: Float64Array, count: number): void {
    this.#advance();
    this.#sketches[this.#current]?.add(values, count);
    for (let at = 0; at < count; at += 1) this.sum += values[at] as number;
    this.count += count;
  }

  /** @returns a value for each quantile (0 to 1); NaN for all of them when the window has no samples */
  quantiles(quantiles: readonly number[]): readonly number[] {
    this.#advance();
    const all = new QuantileSketch();
    for (const sketch of this.#sketches) all.merge(sketch);
    return quantiles.map((quantile) => all.quantile(quantile));
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
