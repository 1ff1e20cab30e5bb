/** The times at which the store was away or a worker was missing, and the calls that failed meanwhile and otherwise. Times in ms. */
export class Outages {
  readonly #outages: { readonly from: number; to: number }[] = [];
  readonly #failures: (readonly [due: number, failed: number])[] = [];

  begin(now: number): void {
    this.#outages.push({ from: now, to: Infinity });
  }

  end(now: number): void {
    const last = this.#outages.at(-1);
    if (last !== undefined) last.to = now;
  }

  fail(due: number, now: number): void {
    this.#failures.push([due, now]);
  }

  get count(): number {
    return this.#outages.length;
  }

  /** The time of all outages together. */
  get duration(): number {
    return this.#outages.reduce((sum, { from, to }) => sum + to - from, 0);
  }

  /** Calls that failed although they were in flight during no outage. */
  get failedOutside(): number {
    return this.#failures.filter(([due, failed]) => !this.#outages.some(({ from, to }) => due <= to && failed >= from))
      .length;
  }

  /** From and to, relative to a time, in seconds. */
  relativeTo(begun: number): readonly (readonly [number, number])[] {
    return this.#outages.map(({ from, to }) => [(from - begun) / 1_000, (to - begun) / 1_000]);
  }
}
