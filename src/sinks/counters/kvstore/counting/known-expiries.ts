import type { Step } from '../../guarded-batch';

/** After how many milliseconds all keys are forgotten. */
const LIFETIME = 10_000;
/** Most keys, and the most characters of a key that is remembered: together they bound the memory. */
const MAX_KEYS = 32_768;
const MAX_KEY_LENGTH = 256;

/**
 * Keys that were seen to have an expiry within the last ten seconds, and for windows of which length, so that scripts need not examine
 * it at every hit. A key that expires and is created again gets its expiry regardless of this memory. Only the expiry of a key in use
 * that another program removes or shortens is set again up to ten seconds later.
 */
export class KnownExpiries {
  readonly #now: () => number;
  /** The length of the longest window, in seconds. */
  #keys = new Map<string, number>();
  #since = 0;

  /** @param now milliseconds of a clock that does not jump */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Forgets the keys when it is time. Called before keys are looked up. */
  forgetOld(): void {
    const now = this.#now();
    if (now - this.#since < LIFETIME) return;
    this.#since = now;
    this.#keys = new Map();
  }

  has({ key, windowSeconds }: Step): boolean {
    return (this.#keys.get(key) ?? 0) >= windowSeconds;
  }

  /** Adds the keys of steps that were counted and whose expiry was examined: those that added hits. */
  add(steps: readonly Step[]): void {
    for (const step of steps) {
      if (this.#keys.size >= MAX_KEYS) return;
      const { key, hits, windowSeconds } = step;
      if (hits > 0 && key.length <= MAX_KEY_LENGTH && !this.has(step)) this.#keys.set(key, windowSeconds);
    }
  }
}
