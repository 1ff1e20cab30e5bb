import { type SchedulerAction, type SchedulerLike, Subscription } from 'rxjs';

/**
 * A scheduler whose unit is the turn of the event loop. Work without delay runs at the end of the present turn, after the
 * input of every socket that was ready; work below a millisecond at the end of the turn in which its delay has elapsed, which
 * no timer of Node can do; longer work by a timer. A window that waits below a millisecond keeps the loop turning.
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

/** The one scheduler of the event loop's turns. */
export const turnScheduler: SchedulerLike = new TurnScheduler();

/**
 * A clock that is read once in a callback of the event loop, whoever asks in it: milliseconds with fractions, from the start of
 * the process. Calls that arrive or are answered together share a reading, which makes it cheap enough to time every one;
 * what they differ by is how long the others before them took.
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
      // Runs when the callback is over, before the next one.
      queueMicrotask(forget);
    }
    return now;
  };
}
