import { isCalendarEnd } from '../../../counting/windows';
import type { Step } from './protocol';

/**
 * After how many milliseconds all keys are forgotten: those of windows, whose expiry stays; and others, and when there
 * are too many.
 */
const LIFETIME = 60_000;
const SHORT_LIFETIME = 10_000;
/** Most keys, and the most characters of a key that is remembered: together they bound the memory. */
const MAX_KEYS = 32_768;
const MAX_KEY_LENGTH = 256;

/**
 * Keys that were seen to have an expiry within the last minute, or ten seconds, and for windows of which length, so
 * that scripts need not examine it at every hit. A key that expires and is created again gets its expiry regardless of
 * this memory. Only the expiry of a key in use that another program removes or shortens is set again that much later.
 */
export class KnownExpiries {
  readonly #lifetime: number;
  /**
   * The length of the longest window, in seconds, or the latest end of one of the calendar: the one that was seen last.
   */
  #keys = new Map<string, number>();
  #since = performance.now();

  /** @param setAgain whether the expiry is set again while a key is in use, as that of the state of an algorithm */
  constructor(setAgain = false) {
    this.#lifetime = setAgain ? SHORT_LIFETIME : LIFETIME;
  }

  /** Forgets the keys when it is time. Called before keys are looked up. */
  forgetOld(): void {
    const now = performance.now();
    const lifetime = this.#keys.size < MAX_KEYS ? this.#lifetime : SHORT_LIFETIME;
    if (now - this.#since < lifetime) return;
    this.#since = now;
    this.#keys = new Map();
  }

  has({ key, limit: { windowSeconds } }: Step): boolean {
    const known = this.#keys.get(key);
    return known !== undefined && known >= windowSeconds && isCalendarEnd(known) === isCalendarEnd(windowSeconds);
  }

  /** Adds the keys of steps that were counted and whose expiry was examined: those that added hits. */
  add(steps: readonly Step[]): void {
    for (const step of steps) {
      if (this.#keys.size >= MAX_KEYS) return;
      const { key, hits, limit } = step;
      if (hits > 0 && key.length <= MAX_KEY_LENGTH && !this.has(step)) this.#keys.set(key, limit.windowSeconds);
    }
  }
}
