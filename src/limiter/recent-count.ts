/** The time in which recent calls are counted, in minutes; the present one has begun. */
export const RECENT_MINUTES = 10;

/** Counts what happens in the last ten minutes. */
export class RecentCount {
  /** The count of each minute, from the first one on; older ones are overwritten. */
  readonly #counts: Uint32Array<ArrayBuffer>;
  readonly #first: number;
  /** The last minute that was counted in. */
  #last = 0;

  /** @param counts of several, each of which has {@link RECENT_MINUTES} of them, as an array takes 150 bytes more */
  constructor(counts = new Uint32Array(RECENT_MINUTES), first = 0) {
    this.#counts = counts;
    this.#first = first;
  }

  clear(): void {
    this.#last = 0;
  }

  add(count: number, nowSeconds: number): void {
    const minute = Math.floor(nowSeconds / 60);
    for (let empty = Math.max(this.#last, minute - RECENT_MINUTES) + 1; empty <= minute; empty += 1) {
      this.#counts[this.#indexOf(empty)] = 0;
    }
    this.#counts[this.#indexOf(minute)]! += count;
    this.#last = Math.max(this.#last, minute);
  }

  at(nowSeconds: number): number {
    let sum = 0;
    for (let minute = Math.floor(nowSeconds / 60) + 1 - RECENT_MINUTES; minute <= this.#last; minute += 1) {
      sum += this.#counts[this.#indexOf(minute)]!;
    }
    return sum;
  }

  #indexOf(minute: number): number {
    return this.#first + (minute % RECENT_MINUTES);
  }
}
