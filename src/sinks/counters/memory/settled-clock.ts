/** Deviations up to this many milliseconds are followed at once: a late timer causes them, too. */
const TOLERANCE = 10_000;
/** How many readings in a row must confirm a jump before it is followed. */
const CONFIRMING_READINGS = 60;

/**
 * Follows a clock that is read at regular intervals, and a jump of it only after the readings of a minute have confirmed it. What
 * is removed because its time has passed cannot be restored when the clock turns out to have been wrong for a moment.
 */
export class SettledClock {
  readonly #interval: number;
  #time: number;
  #last: number;
  #confirmations = 0;

  /**
   * @param interval milliseconds between two readings
   * @param now the first reading, in milliseconds of Unix time
   */
  constructor(interval: number, now: number) {
    this.#interval = interval;
    this.#time = now;
    this.#last = now;
  }

  /** @returns the settled time, in milliseconds of Unix time */
  read(now: number): number {
    const isSteady = Math.abs(now - this.#last - this.#interval) <= TOLERANCE;
    const expected = this.#time + this.#interval;
    this.#last = now;
    this.#confirmations = isSteady ? this.#confirmations + 1 : 0;
    const isFollowed = Math.abs(now - expected) <= TOLERANCE || this.#confirmations >= CONFIRMING_READINGS;
    this.#time = isFollowed ? now : expected;
    return this.#time;
  }
}
