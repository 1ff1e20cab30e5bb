/** Milliseconds before the first replacement of a worker. */
const FIRST_DELAY = 100;
/** The longest delay in milliseconds. */
const MAX_DELAY = 10_000;
/** A worker that lived this long, in milliseconds, is not counted as one that keeps dying. */
const STABLE = 60_000;

/** How long to wait before a worker is replaced: 100 ms, doubling to 10 s while it keeps dying within a minute. */
export class RestartBackoff {
  #next = FIRST_DELAY;

  /**
   * A worker has ended.
   *
   * @param lived milliseconds from its start to its end
   * @returns milliseconds until its replacement is started
   */
  delayAfter(lived: number): number {
    const delay = lived >= STABLE ? FIRST_DELAY : this.#next;
    this.#next = Math.min(delay * 2, MAX_DELAY);
    return delay;
  }
}
