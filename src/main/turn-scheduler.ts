import { type SchedulerAction, Subscription } from 'rxjs';
import type { Timing } from '../streams/deadline';

/**
 * A scheduler whose unit is the turn of the event loop. Work with a delay below a millisecond runs at the end of the
 * current turn, after the input of every socket that was ready: no timer of Node is finer, and turning until such a
 * delay is over would keep a core busy. Longer delays use a timer.
 */
class TurnScheduler implements Timing {
  now(): number {
    return Date.now();
  }

  elapsed(): number {
    return performance.now();
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
    } else {
      const immediate = setImmediate(run);
      this.#cancel = () => clearImmediate(immediate);
    }
    return this;
  }

  override unsubscribe(): void {
    this.#cancel();
    super.unsubscribe();
  }
}

/** The shared scheduler of event loop turns. */
export const turnScheduler: Timing = new TurnScheduler();

/**
 * A clock that is read once per callback of the event loop, however often it is called there: milliseconds with
 * fractions, since the start of the process. Requests that arrive or are answered in the same callback share a reading,
 * which makes it cheap enough to time every request; the error is the time that the requests before it in that callback
 * took.
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
