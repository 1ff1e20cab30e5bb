const DEADLINE = 20_000;

/** What comes by and by, handed out one at a time to a test that awaits it. */
export class Arrivals<T> {
  readonly #what: string;
  readonly #waiting: T[] = [];
  readonly #takers: ((item: T) => void)[] = [];
  #count = 0;

  /** @param what it is, for the error when it does not come */
  constructor(what: string) {
    this.#what = what;
  }

  /** How many came so far. */
  get count(): number {
    return this.#count;
  }

  /** Whether something has come that nobody has taken. */
  get isWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  add(item: T): void {
    this.#count += 1;
    const taker = this.#takers.shift();
    if (taker === undefined) this.#waiting.push(item);
    else taker(item);
  }

  next(): Promise<T> {
    const [first] = this.#waiting.splice(0, 1);
    if (first !== undefined) return Promise.resolve(first);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${this.#what} did not come`)), DEADLINE);
      this.#takers.push((item) => {
        clearTimeout(timer);
        resolve(item);
      });
    });
  }
}
