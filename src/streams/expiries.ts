import type { SchedulerLike, Subscription } from 'rxjs';

/** Calls back for what is due at the same millisecond. */
interface Due {
  readonly at: number;
  readonly expiring: Expiring[];
}

export interface Expiring {
  /** Called once, when the time is over, whatever has become of it. */
  expire(): void;
}

/**
 * Ends waits. One timer is for all of them, because a timer for each call costs as much as the rest of its way to the store; what has
 * ended before is not removed, so the waits should be short.
 */
export class Expiries {
  readonly #scheduler: SchedulerLike;
  /** In order. Mostly, what is added is due last. */
  readonly #due: Due[] = [];
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
    this.#timer = this.#scheduler.schedule(() => this.#expire(), Math.max(1, first.at - this.#scheduler.now()));
  }

  #expire(): void {
    const now = this.#scheduler.now();
    while (this.#due[0] !== undefined && this.#due[0].at <= now) {
      for (const each of this.#due.shift()!.expiring) each.expire();
    }
    this.#wait();
  }
}
