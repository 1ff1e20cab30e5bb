import type { Samples } from './timer';

/** Samples for sending, each standing for `1 / rate` of what was recorded. */
export interface SampleSet {
  readonly values: readonly number[];
  readonly rate: number;
}

/**
 * Keeps a bounded number of samples, spread evenly over what was recorded: every one first; when there is no more room,
 * every second, every fourth, and so on.
 */
export class EvenSamples implements Samples {
  readonly #limit: number;
  #kept: number[] = [];
  #stride = 1;
  #untilNext = 0;

  /** @param limit an even number, so that what follows the last of a full set is still in step after every second is gone */
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

  /** Takes out what was kept, and begins anew. */
  take(): SampleSet {
    const set = { values: this.#kept, rate: 1 / this.#stride };
    this.#kept = [];
    this.#stride = 1;
    this.#untilNext = 0;
    return set;
  }
}
