/** Milliseconds by which a line can be earlier than one before it: workers write theirs in no order. */
const TOLERANCE = 60_000;
/** Lines after one by which its time is judged. */
const LOOK_AHEAD = 8;

/**
 * Passes on the records of a log in its order, except those that are more than a minute earlier than one before them, or later than most of
 * those that follow: one wrong time must neither end the windows of a replay nor leave out what follows.
 */
export class TimeOrder<Line extends { readonly time: number }> {
  readonly #next: Line[] = [];
  readonly #onMisplaced: (line: Line) => void;
  #latest = -Infinity;

  constructor(onMisplaced: (line: Line) => void) {
    this.#onMisplaced = onMisplaced;
  }

  /** @returns the line that is due, if there is one */
  add(line: Line): Line | undefined {
    this.#next.push(line);
    return this.#next.length > LOOK_AHEAD ? this.#take() : undefined;
  }

  /** The last lines, when there are no further ones. */
  *rest(): Generator<Line> {
    while (this.#next.length > 0) {
      const line = this.#take();
      if (line !== undefined) yield line;
    }
  }

  #take(): Line | undefined {
    const line = this.#next.shift() as Line;
    let earlier = 0;
    for (const { time } of this.#next) if (time < line.time - TOLERANCE) earlier += 1;
    if (line.time < this.#latest - TOLERANCE || earlier > this.#next.length / 2) {
      this.#onMisplaced(line);
      return undefined;
    }
    this.#latest = Math.max(this.#latest, line.time);
    return line;
  }
}
