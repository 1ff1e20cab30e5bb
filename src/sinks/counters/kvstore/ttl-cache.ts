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
export class TtlCache {
  readonly #lifetime: number;
  /** The length of the longest window of each key, in seconds. */
  #lengths = new Map<string, number>();
  /** The latest end of a window of the calendar of each key, in Unix seconds. */
  #ends = new Map<string, number>();
  #since = performance.now();

  /** @param setAgain whether the expiry is set again while a key is in use, as that of the state of an algorithm */
  constructor(setAgain = false) {
    this.#lifetime = setAgain ? SHORT_LIFETIME : LIFETIME;
  }

  /** Forgets the keys when it is time. Called before keys are looked up. */
  forgetOld(): void {
    const now = performance.now();
    const lifetime = this.#size < MAX_KEYS ? this.#lifetime : SHORT_LIFETIME;
    if (now - this.#since < lifetime) return;
    this.#since = now;
    this.#lengths = new Map();
    this.#ends = new Map();
  }

  has({ key, limit: { lengthSeconds, endsAt } }: Step): boolean {
    if (endsAt === undefined) return (this.#lengths.get(key) ?? -1) >= lengthSeconds;
    return (this.#ends.get(key) ?? -1) >= endsAt;
  }

  /** Adds the keys of steps that were counted and whose expiry was examined: those that added hits. */
  add(steps: readonly Step[]): void {
    for (const step of steps) {
      if (this.#size >= MAX_KEYS) return;
      const { key, hits, limit } = step;
      if (hits <= 0 || key.length > MAX_KEY_LENGTH || this.has(step)) continue;
      if (limit.endsAt === undefined) this.#lengths.set(key, limit.lengthSeconds);
      else this.#ends.set(key, limit.endsAt);
    }
  }

  get #size(): number {
    return this.#lengths.size + this.#ends.size;
  }
}
