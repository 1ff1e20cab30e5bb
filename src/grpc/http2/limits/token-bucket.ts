import type { Rate } from './limits';

/** Allows a burst and then a steady rate. Times are milliseconds of a monotonic clock. */
export class TokenBucket {
  readonly #rate: Rate;
  #tokens: number;
  #refilledAt = -Infinity;

  constructor(rate: Rate) {
    this.#rate = rate;
    this.#tokens = rate.burst;
  }

  /** Takes tokens. Returns false, and takes none, if there are not enough. */
  take(now: number, tokens = 1): boolean {
    this.#refill(now, tokens);
    if (this.#tokens < tokens) return false;
    this.#tokens -= tokens;
    return true;
  }

  #refill(now: number, needed: number): void {
    if (this.#tokens < needed) {
      const refilled = ((now - this.#refilledAt) / 1_000) * this.#rate.perSecond;
      this.#tokens = Math.min(this.#rate.burst, this.#tokens + refilled);
      this.#refilledAt = now;
    } else if (this.#tokens === this.#rate.burst) this.#refilledAt = now;
  }

  giveBack(tokens: number): void {
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + tokens);
  }
}
