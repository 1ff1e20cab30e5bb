/** Takes the samples of a timer, some hundred at a time. */
export interface Samples {
  /** The first `count` of the values, in milliseconds; the array is used again afterwards. */
  add(values: Float64Array, count: number): void;
}

const GATHERED = 512;

/**
 * Durations of one kind, in milliseconds. To record one costs no more than to write a number down: it sits on the decision
 * path. Whoever keeps samples takes them from here in heaps.
 */
export class Timer {
  readonly #gathered = new Float64Array(GATHERED);
  #count = 0;
  readonly #keepers: Samples[] = [];

  constructor(readonly name: string) {}

  record(milliseconds: number): void {
    this.#gathered[this.#count] = milliseconds;
    this.#count += 1;
    if (this.#count === GATHERED) this.settle();
  }

  /** Gives the samples from now on to somebody who keeps them. */
  giveTo(keeper: Samples): void {
    this.settle();
    this.#keepers.push(keeper);
  }

  /** Hands out what was gathered: to be called by whoever wants to look at what it keeps. */
  settle(): void {
    const count = this.#count;
    if (count === 0) return;
    this.#count = 0;
    for (const keeper of this.#keepers) keeper.add(this.#gathered, count);
  }
}
