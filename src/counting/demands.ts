import type { Operation } from './operation';

/** The demand of a key is that of so many milliseconds. */
export const DEMAND_TIME = 100;
/** Hits per millisecond of a key below which it has no lease: giving one back would cost more than it saves. */
export const LEAST_RATE = 20 / 1_000;
/** Most keys with leases, and most whose demand is known. */
export const MOST_KEYS = 16_384;
/** Longer keys have no lease, in characters: together with their number, this bounds the memory. */
const LONGEST_KEY = 512;
/**
 * Most keys in a millisecond for which it is looked up whether they were there just before, and most that are
 * remembered for that.
 */
const [SIGHTED_AT_ONCE, MOST_SIGHTED] = [4, 1_024];
/** How many demands are looked at each time that unused ones are forgotten. */
const FORGOTTEN_AT_ONCE = 64;

/** How many hits of this process a key has, in all of its windows. */
export class Demand {
  /** Hits per millisecond. */
  rate = 0;
  readonly begun: number;
  #hits = 0;
  #since: number;

  constructor(now: number) {
    this.begun = now;
    this.#since = now;
  }

  add(hits: number, now: number): void {
    this.#hits += hits;
    const passed = now - this.#since;
    if (passed < DEMAND_TIME / 10) return;
    this.rate += (this.#hits / passed - this.rate) * Math.min(1, passed / DEMAND_TIME);
    this.#hits = 0;
    this.#since = now;
  }
}

/** The demands of keys, which are known after two hits in a short time: most keys are never looked at again. */
export class Demands {
  readonly #byKey = new Map<string, Demand>();
  /** Keys of single hits since a time. */
  readonly #sighted = new Set<string>();
  #sightedSince = 0;
  /** How many keys may still be looked up there in the millisecond since a time. */
  #sightings = 0;
  #sightingsSince = -Infinity;

  get isEmpty(): boolean {
    return this.#byKey.size === 0;
  }

  /** That of the key of an operation, which does not count its hits yet. Undefined: it is not known. */
  of({ key, hits }: Operation, now: number): Demand | undefined {
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    if (key.length > LONGEST_KEY || this.#byKey.size >= MOST_KEYS) return undefined;
    if (hits < 2 && !this.#isSightedAgain(key, now)) return undefined;
    const demand = new Demand(now);
    this.#byKey.set(key, demand);
    return demand;
  }

  /** The counter of the next window has another key, and begins with what is known of this one. */
  move(demand: Demand, from: string, to: string): void {
    this.#byKey.delete(from);
    this.#byKey.set(to, demand);
  }

  /** Some at a time, in turn. */
  forgetUnused(now: number): void {
    let looked = 0;
    for (const [key, demand] of this.#byKey) {
      if ((looked += 1) > FORGOTTEN_AT_ONCE) break;
      this.#byKey.delete(key);
      demand.add(0, now);
      if (demand.rate >= LEAST_RATE / 2 || now - demand.begun < DEMAND_TIME) this.#byKey.set(key, demand);
    }
  }

  #isSightedAgain(key: string, now: number): boolean {
    if (now - this.#sightingsSince >= 1) [this.#sightings, this.#sightingsSince] = [SIGHTED_AT_ONCE, now];
    if (this.#sightings === 0) return false;
    this.#sightings -= 1;
    if (now - this.#sightedSince >= DEMAND_TIME || this.#sighted.size >= MOST_SIGHTED) {
      this.#sighted.clear();
      this.#sightedSince = now;
    }
    if (this.#sighted.delete(key)) return true;
    this.#sighted.add(key);
    return false;
  }
}
