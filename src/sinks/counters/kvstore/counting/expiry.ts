/** The time to live that a key is given, in seconds: its window's length, and a random part so that not all end at once. */
export class Expiry {
  /** @param jitterMaxSeconds EXPIRATION_JITTER_MAX_SECONDS: the random part is below it */
  constructor(
    private readonly jitterMaxSeconds: number,
    private readonly random: () => number = Math.random,
  ) {}

  of(windowSeconds: number): number {
    return windowSeconds + Math.floor(this.random() * this.jitterMaxSeconds);
  }
}
