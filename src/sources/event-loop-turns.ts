import { type SchedulerAction, type SchedulerLike, Subscription } from 'rxjs';

/**
 * A scheduler whose unit is the turn of the event loop. Work without a delay runs at the end of the current turn, after the
 * input of every socket that was ready. Work with a delay below a millisecond runs at the end of the turn in which the delay
 * has elapsed, which no timer of Node can do; until then it keeps the event loop turning. Longer delays use a timer.
 */
class TurnScheduler implements SchedulerLike {
  now(): number {
    return Date.now();
  }

  schedule<T>(work: (this: SchedulerAction<T>, state?: T) => void, delay = 0, state?: T): Subscription {
    return new TurnAction(work).schedule(state, delay);
  }
}

class TurnAction<T> extends Subscription implements SchedulerAction<T> {
  readonly #work: (this: SchedulerAction<T>, state?: T) => void;
  #cancel: () => void = () => undefined;

  constructor(work: (this: SchedulerAction<T>, state?: T) => void) {
    super();
    this.#work = work;
  }

  schedule(state?: T, delay = 0): Subscription {
    if (this.closed) return this;
    this.#cancel();
    const run = (): void => {
      this.#cancel = () => undefined;
      this.#work(state);
    };
    if (delay >= 1) {
      const timer = setTimeout(run, delay);
      this.#cancel = () => clearTimeout(timer);
    } else if (delay > 0) {
      this.#afterTurns(performance.now() + delay, run);
    } else {
      this.#atEndOfTurn(run);
    }
    return this;
  }

  override unsubscribe(): void {
    this.#cancel();
    super.unsubscribe();
  }

  #atEndOfTurn(run: () => void): void {
    const immediate = setImmediate(run);
    this.#cancel = () => clearImmediate(immediate);
  }

  #afterTurns(due: number, run: () => void): void {
    this.#atEndOfTurn(() => (performance.now() >= due ? run() : this.#afterTurns(due, run)));
  }
}

/** The shared scheduler of event loop turns. */
export const turnScheduler: SchedulerLike = new TurnScheduler();

/**
 * A clock that is read once per callback of the event loop, however often it is called there: milliseconds with fractions,
 * since the start of the process. Requests that arrive or are answered in the same callback share a reading, which makes it
 * cheap enough to time every request; the error is the time that the requests before it in that callback took.
 */
export function turnClock(read: () => number = () => performance.now()): () => number {
  let now = 0;
  let isRead = false;
  function forget(): void {
    isRead = false;
  }
  return () => {
    if (!isRead) {
      now = read();
      isRead = true;
      // Runs after this callback and before the next one.
      queueMicrotask(forget);
    }
    return now;
  };
}
