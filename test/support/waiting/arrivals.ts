/** In milliseconds. */
const TIMEOUT = 60_000;

/** Queues items as they arrive, for a test that waits for them one by one. */
export class Arrivals<T> {
  readonly #what: string;
  readonly #unread: T[] = [];
  readonly #readers: ((item: T) => void)[] = [];
  #count = 0;

  /** @param what names an item in the error of a timeout, for example `an event` */
  constructor(what: string) {
    this.#what = what;
  }

  /** How many items have arrived so far. */
  get count(): number {
    return this.#count;
  }

  /** Whether an item has arrived that has not been read. */
  get hasUnread(): boolean {
    return this.#unread.length > 0;
  }

  add(item: T): void {
    this.#count += 1;
    const reader = this.#readers.shift();
    if (reader === undefined) this.#unread.push(item);
    else reader(item);
  }

  /** Returns the next item, or waits for it. */
  next(): Promise<T> {
    const [first] = this.#unread.splice(0, 1);
    if (first !== undefined) return Promise.resolve(first);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${this.#what} did not arrive`)), TIMEOUT);
      this.#readers.push((item) => {
        clearTimeout(timer);
        resolve(item);
      });
    });
  }
}
