import { QuantileSketch } from '../../../statistics/quantile-sketch';
import type { Samples } from '../../../statistics/timer';

/** The time that is looked back on goes on in steps of a fifth of it. */
const STEPS = 5;

/** The quantiles of the last minutes, and count and sum of all time, as a summary of Prometheus has them. */
export class RecentQuantiles implements Samples {
  readonly #now: () => number;
  count = 0;
  sum = 0;
  readonly #steps = Array.from({ length: STEPS }, () => new QuantileSketch());
  readonly #stepLength: number;
  #present = 0;
  #endsAt: number;

  /** @param now in milliseconds, from any beginning */
  constructor(maxAge: number, now: () => number) {
    this.#now = now;
    this.#stepLength = maxAge / STEPS;
    this.#endsAt = now() + this.#stepLength;
  }

  add(values: Float64Array, count: number): void {
    this.#advance();
    this.#steps[this.#present]?.add(values, count);
    for (let at = 0; at < count; at += 1) this.sum += values[at] as number;
    this.count += count;
  }

  /** NaN for all while there is no sample. */
  quantiles(shares: readonly number[]): readonly number[] {
    this.#advance();
    const all = new QuantileSketch();
    for (const step of this.#steps) all.merge(step);
    return shares.map((share) => all.quantile(share));
  }

  #advance(): void {
    const late = this.#now() - this.#endsAt;
    if (late < 0) return;
    const steps = Math.floor(late / this.#stepLength) + 1;
    this.#endsAt += steps * this.#stepLength;
    for (let step = 0; step < Math.min(steps, STEPS); step += 1) {
      this.#present = (this.#present + 1) % STEPS;
      this.#steps[this.#present]?.clear();
    }
  }
}
