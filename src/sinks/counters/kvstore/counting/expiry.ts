/** The time to live that a key is given, in seconds: its window's length, and a random part so that not all end at once. */
export class Expiry {
  readonly #jitterMaxSeconds: number;
  readonly #random: () => number;
  /** @param jitterMaxSeconds EXPIRATION_JITTER_MAX_SECONDS: the random part is below it */
  constructor(jitterMaxSeconds: number, random: () => number = Math.random) {
    this.#jitterMaxSeconds = jitterMaxSeconds;
    this.#random = random;
  }

  of(windowSeconds: number): number {
    return windowSeconds + Math.floor(this.#random() * this.#jitterMaxSeconds);
  }
}
