import type { SampleRecorder } from '../../statistics/timer';

/**
 * Keeps a limited number of samples, evenly distributed over the recorded ones: at first every sample; when the limit is
 * reached, every second, then every fourth, and so on.
 */
export class EvenSamples implements SampleRecorder {
  readonly #limit: number;
  #kept: number[] = [];
  #stride = 1;
  #untilNext = 0;

  /** @param limit an even number, so that the stride is still regular after every second sample of a full set is removed */
  constructor(limit: number) {
    this.#limit = limit;
  }

  add(values: Float64Array, count: number): void {
    let at = this.#untilNext;
    while (at < count) {
      if (this.#kept.length === this.#limit) {
        this.#kept = this.#kept.filter((_, index) => index % 2 === 0);
        this.#stride *= 2;
      }
      this.#kept.push(values[at] as number);
      at += this.#stride;
    }
    this.#untilNext = at - count;
  }

  /** Returns the kept samples, each of which represents `1 / rate` recorded ones, and starts again with none. */
  take(): { readonly values: readonly number[]; readonly rate: number } {
    const set = { values: this.#kept, rate: 1 / this.#stride };
    this.#kept = [];
    this.#stride = 1;
    this.#untilNext = 0;
    return set;
  }
}
