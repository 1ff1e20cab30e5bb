/** So many calls of each second are counted exactly. */
const EXACT_PER_SECOND = 1000;
/** Of further calls, one of so many is counted in their place, on average. */
const STRIDE = 16;
/** A clock that is behind by more seconds has been set back; by less, a store has answered late. */
const LATE = 60;

/**
 * Chooses the calls that are counted, so that counting costs little however many there are: under load every call that is counted
 * stands for several. The gaps are random: callers that take turns would otherwise be counted for each other.
 */
export class CallSampler {
  #second = Number.NaN;
  #exactLeft = 0;
  #untilNext = 1;
  #random = 1;

  /** How many calls the next call stands for; 0 if it is not counted. */
  weightAt(nowSeconds: number): number {
    if (!(nowSeconds <= this.#second && nowSeconds > this.#second - LATE)) {
      this.#second = nowSeconds;
      this.#exactLeft = EXACT_PER_SECOND;
    }
    if (this.#exactLeft > 0) {
      this.#exactLeft -= 1;
      return 1;
    }
    this.#untilNext -= 1;
    if (this.#untilNext > 0) return 0;
    this.#untilNext = this.#nextGap();
    return STRIDE;
  }

  /** From 1 to 2 × STRIDE − 1, all equally likely: the upper bits of a linear congruential generator (Numerical Recipes). */
  #nextGap(): number {
    this.#random = (Math.imul(this.#random, 1_664_525) + 1_013_904_223) >>> 0;
    return 1 + Math.floor((this.#random / 2 ** 32) * (2 * STRIDE - 1));
  }
}
