import type { Limits } from '../limits/limits';

/** Streams of a connection that wait to run. */
export interface PacedWork {
  /** They may run, in one of the next turns. Returns false if there are none any more. */
  resume(): boolean;
}

export interface IdleClock {
  /** Milliseconds for which this process has waited for events since it started. */
  idle(): number;
}

/** The share of the time that the event loop waits for events, below which this process has more work than time. */
const LEAST_IDLE = 0.1;
/** How the limit changes with each check that finds the process busy, and with each that does not while streams wait. */
const SHRINKING = 0.7;
const GROWTH = 1.5;

/**
 * Lets streams wait to run while this process has more work than time. What the application keeps for a running stream has to be
 * copied by each garbage collection while the stream runs: with thousands of them a call costs up to twice as much, and a backlog,
 * once there, would not be worked off. A stream that waits takes a fraction of that; it can expire and be reset.
 *
 * While the event loop is hardly ever idle, fewer and fewer streams run at once, down to {@link Limits.pacedStreams}. If it becomes
 * idle by that, the streams wait for something else, which others do not delay: then more may run, and without a limit as soon
 * as none waits.
 */
export class WorkPacing {
  readonly #least: number;
  readonly #clock: IdleClock;
  /** In the order in which they began to wait. */
  #waiting: PacedWork[] = [];
  #running = 0;
  #limit = Infinity;
  #checkedAt: number;
  #idleThen: number;

  /** `now` in milliseconds, as of {@link check}. */
  constructor({ pacedStreams }: Pick<Limits, 'pacedStreams'>, clock: IdleClock, now: number) {
    this.#least = pacedStreams;
    this.#clock = clock;
    this.#checkedAt = now;
    this.#idleThen = clock.idle();
  }

  /** Adjusts the limit. Must be called several times a second. */
  check(now: number): void {
    const idle = this.#clock.idle();
    const isBusy = idle - this.#idleThen < (now - this.#checkedAt) * LEAST_IDLE;
    this.#checkedAt = now;
    this.#idleThen = idle;
    if (isBusy) this.#limit = Math.max(this.#least, Math.min(this.#limit, this.#running) * SHRINKING);
    else this.#limit = this.#waiting.length === 0 ? Infinity : this.#limit * GROWTH;
    if (!this.mayStart) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const work of waiting) work.resume();
  }

  get mayStart(): boolean {
    return this.#running < this.#limit;
  }

  started(): void {
    this.#running += 1;
  }

  ended(): void {
    this.#running -= 1;
    while (this.#waiting.length > 0 && this.mayStart) {
      if (this.#waiting.shift()!.resume()) return;
    }
  }

  /** The work waits until it is resumed. */
  wait(work: PacedWork): void {
    this.#waiting.push(work);
  }
}
