import { windowStart } from '../../limiter/cache-key';

/**
 * The time to live of new keys in seconds: the window's length plus a random part, so that keys do not all expire together.
 */
export class Expiry {
  readonly #jitterMaxSeconds: number;
  readonly #random: () => number;

  /** @param jitterMaxSeconds exclusive upper bound of the random part: EXPIRATION_JITTER_MAX_SECONDS */
  constructor(jitterMaxSeconds: number, random: () => number = Math.random) {
    this.#jitterMaxSeconds = jitterMaxSeconds;
    this.#random = random;
  }

  of(windowSeconds: number): number {
    return windowSeconds + this.randomPart();
  }

  /** The exclusive bound of random parts, at least 1. */
  get bound(): number {
    return Math.max(1, this.#jitterMaxSeconds);
  }

  /** A random part in seconds. */
  randomPart(): number {
    return Math.floor(this.#random() * this.#jitterMaxSeconds);
  }
}

/**
 * For how many seconds a key has to exist: up to the end of the present window of this length. Limits of different units can have one
 * key, whose expiry is at first that of the unit that counted first.
 */
export function secondsLeft(windowSeconds: number): number {
  const now = Math.floor(Date.now() / 1000);
  return windowStart(now, windowSeconds) + windowSeconds - now;
}
