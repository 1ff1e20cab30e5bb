/** Marks the end of a queue. */
export const NONE = -1;

/** A window of the clock, and the first-in, first-out queue of the slots whose keys count in it: the first slot and the last. */
export interface ClockWindow {
  /** Unix seconds. */
  readonly start: number;
  /** Unix seconds; the first second after the window. */
  readonly end: number;
  head: number;
  tail: number;
}

/**
 * The windows of the clock that have keys, ordered by their ends and by their starts. While the clock runs evenly, they are a few for
 * each unit of time, so a sorted list is enough. Finding a window takes logarithmic time; windows may be added in any order of time.
 */
export class ClockWindows {
  readonly #byEnd: ClockWindow[] = [];
  readonly #byStart: ClockWindow[] = [];
  /** The window that was returned last: mostly, the next key belongs to the same. */
  #latest: ClockWindow | undefined;

  /** The window that ends first. */
  get endsFirst(): ClockWindow | undefined {
    return this.#byEnd[0];
  }

  /** The window that starts last. */
  get startsLast(): ClockWindow | undefined {
    return this.#byStart.at(-1);
  }

  /** The window with these bounds, in Unix seconds; added, with an empty queue, if it has no keys yet. */
  at(start: number, end: number): ClockWindow {
    const latest = this.#latest;
    if (latest !== undefined && latest.start === start && latest.end === end) return latest;
    const index = position(this.#byEnd, (window) => window.end - end || window.start - start);
    const known = this.#byEnd[index];
    if (known !== undefined && known.start === start && known.end === end) return (this.#latest = known);
    const added = { start, end, head: NONE, tail: NONE };
    this.#byEnd.splice(index, 0, added);
    this.#byStart.splice(this.#startIndex(added), 0, added);
    return (this.#latest = added);
  }

  /** Removes a window whose queue is empty. */
  remove(window: ClockWindow): void {
    if (this.#latest === window) this.#latest = undefined;
    this.#byEnd.splice(
      position(this.#byEnd, ({ start, end }) => end - window.end || start - window.start),
      1,
    );
    this.#byStart.splice(this.#startIndex(window), 1);
  }

  #startIndex(window: ClockWindow): number {
    return position(this.#byStart, ({ start, end }) => start - window.start || end - window.end);
  }
}

/** The index of the first window that is not before the place that is looked for, by binary search. */
function position(windows: readonly ClockWindow[], compare: (window: ClockWindow) => number): number {
  let from = 0;
  let to = windows.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (compare(windows[middle] as ClockWindow) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}
