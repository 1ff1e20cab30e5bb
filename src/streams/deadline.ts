import { Observable, type SchedulerLike, type Subscription } from 'rxjs';

/**
 * Calls `onElapsed` when a time is over, unless the returned subscription is unsubscribed from first.
 *
 * When the event loop has stood still, it runs timers before it reads sockets. `onElapsed` therefore waits for one more
 * turn of the scheduler, in which sockets are read: a reply that has arrived in time still counts.
 *
 * @param milliseconds from now on
 * @param onDue called before the sockets are read once more
 */
export function afterTime(
  scheduler: SchedulerLike,
  milliseconds: number,
  { onElapsed, onDue }: { readonly onElapsed: () => void; readonly onDue?: () => void },
): Subscription {
  let isDue = false;
  return scheduler.schedule(function elapse() {
    if (isDue) return onElapsed();
    isDue = true;
    onDue?.();
    this.schedule(undefined, 0);
  }, milliseconds);
}

/** Fails with an error when so many milliseconds have passed since the subscription, as {@link afterTime} ends. */
export function failAfter(scheduler: SchedulerLike, milliseconds: number, error: Error): Observable<never> {
  return new Observable((subscriber) =>
    afterTime(scheduler, milliseconds, { onElapsed: () => subscriber.error(error) }),
  );
}

/**
 * The end of a piece of work for callers that wait, however many steps it takes. Notifies everything that the work
 * waits for when its time is over.
 */
export class Deadline {
  /** Whether nothing more is to be sent; a reply may still be read. */
  hasPassed = false;
  /** Whether the store may have counted some of it. To be set by a lane that lets work wait before it is sent. */
  hasBegun = true;
  readonly #scheduler: SchedulerLike;
  #timer: Subscription | undefined;
  /** With whether they wait to begin. */
  readonly #watchers = new Map<() => void, boolean>();

  constructor(scheduler: SchedulerLike) {
    this.#scheduler = scheduler;
  }

  /** Lets it pass so many milliseconds from now on, at the latest. */
  passWithin(milliseconds: number): void {
    const timer = afterTime(this.#scheduler, milliseconds, {
      onDue: () => (this.hasPassed = true),
      onElapsed: () => {
        for (const onPassed of this.#watchers.keys()) onPassed();
        this.#watchers.clear();
      },
    });
    if (this.#timer === undefined) this.#timer = timer;
    else this.#timer.add(timer);
  }

  /**
   * Calls `onPassed` when the deadline passes, unless the returned function is called first.
   *
   * @param isWaiting also when the work is abandoned, because it waits to begin
   */
  watch(onPassed: () => void, isWaiting = false): () => void {
    this.#watchers.set(onPassed, isWaiting);
    return () => this.#watchers.delete(onPassed);
  }

  /** Nothing waits for the work any more: what has begun may end until the deadline, but nothing else begins. */
  abandon(): void {
    this.hasPassed = true;
    for (const [onPassed, isWaiting] of this.#watchers) {
      if (!isWaiting) continue;
      this.#watchers.delete(onPassed);
      onPassed();
    }
  }

  /** The work is done: the deadline no longer passes. */
  end(): void {
    this.#timer?.unsubscribe();
    this.#watchers.clear();
  }
}

export interface Expiring {
  /** Called once, when the time is over, whatever has become of it. */
  expire(): void;
}

/**
 * Ends the waits of calls. One timer is for all of them, because a timer for each call costs as much as the rest of its
 * way to the store; what has ended before is not removed, so the waits should be short.
 */
export class Expiries {
  readonly #scheduler: SchedulerLike;
  /** What is due at the same millisecond, in order. Mostly, what is added is due last. */
  readonly #due: { readonly at: number; readonly expiring: Expiring[] }[] = [];
  #timer: Subscription | undefined;

  constructor(scheduler: SchedulerLike) {
    this.#scheduler = scheduler;
  }

  /** @param wait in milliseconds */
  add(expiring: Expiring, wait: number): void {
    const at = Math.ceil(this.#scheduler.now() + Math.max(0, wait));
    let index = this.#due.length;
    while (index > 0 && this.#due[index - 1]!.at > at) index -= 1;
    const last = this.#due[index - 1];
    if (last?.at === at) {
      last.expiring.push(expiring);
      return;
    }
    this.#due.splice(index, 0, { at, expiring: [expiring] });
    if (index === 0) this.#wait();
  }

  #wait(): void {
    this.#timer?.unsubscribe();
    const [first] = this.#due;
    if (first === undefined) return;
    const milliseconds = Math.max(1, first.at - this.#scheduler.now());
    this.#timer = afterTime(this.#scheduler, milliseconds, { onElapsed: () => this.#expire() });
  }

  #expire(): void {
    const now = this.#scheduler.now();
    while (this.#due[0] !== undefined && this.#due[0].at <= now) {
      for (const each of this.#due.shift()!.expiring) each.expire();
    }
    this.#wait();
  }
}
