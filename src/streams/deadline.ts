import { Observable, type SchedulerLike, type Subscription } from 'rxjs';
import { timedOut } from '../counting/decision-error';

/** A scheduler that also measures time. */
export interface Timing extends SchedulerLike {
  /**
   * Milliseconds that no change of the system's clock moves; undefined: `now` is the time of the scheduler, as in
   * tests.
   */
  readonly elapsed?: () => number;
}

/** What measures durations; {@link SchedulerLike.now} is the time of day. */
export function elapsedBy(scheduler: Timing): () => number {
  return scheduler.elapsed ?? (() => scheduler.now());
}

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

/** A connection that carries one batch at a time. */
export interface Cuttable {
  /** Ends it at once, without waiting for the peer: its next reply might belong to what was sent before. */
  cut(reason: Error): void;
}

/** The end of a piece of work, however many steps and connections it takes: what a store receives with a batch. */
export class Deadline {
  /** Whether nothing more is to be sent; a reply may still be read. */
  hasPassed = false;
  /**
   * Whether the store may have counted some of it. A lane that lets work wait before it is sent sets it to false first.
   */
  mayHaveCounted = true;
  /** What follows the answer, set before that: until it is done, the work is in flight, and nothing overtakes it. */
  writing: PromiseLike<unknown> | undefined;
  #connection: Cuttable | undefined;
  #others: Set<Cuttable> | undefined;
  #waiting: Set<() => void> | undefined;

  /**
   * A connection carries the work from now on: it is cut when the deadline passes, unless {@link left} is called first.
   */
  begin(connection: Cuttable): void {
    this.mayHaveCounted = true;
    if (this.#connection === undefined) this.#connection = connection;
    else (this.#others ??= new Set()).add(connection);
  }

  /** A connection carries the work no longer. */
  left(connection: Cuttable): void {
    if (this.#connection === connection) this.#connection = undefined;
    else this.#others?.delete(connection);
  }

  /**
   * Calls back when nothing waits for the work any more while it waits to begin, unless the returned function is called
   * first.
   */
  whileWaiting(onOver: () => void): () => void {
    this.#waiting ??= new Set();
    this.#waiting.add(onOver);
    return () => this.#waiting?.delete(onOver);
  }

  /** Nothing waits for the work any more: what has begun may end until the deadline passes, but nothing else begins. */
  abandon(): void {
    this.hasPassed = true;
    for (const onOver of this.#waiting ?? []) onOver();
    this.#waiting = undefined;
  }

  /** Nothing of the work is read any more. */
  pass(): void {
    this.abandon();
    this.#connection?.cut(timedOut());
    for (const connection of this.#others ?? []) connection.cut(timedOut());
  }
}

/** A batch, or commands, on the way to a server and back. Times are milliseconds by {@link elapsedBy}. */
export class Trip extends Deadline {
  sentAt = 0;
  /** When policies answer what need not wait for it. */
  expireBy = Infinity;
  /** When nothing waits for it any more. */
  answerBy = Infinity;
  /** When the connections that carry it are cut. */
  cutBy = Infinity;
  /** Where it is in the list of those in flight. */
  index = -1;

  /**
   * Called when nothing waits for it any more; a reply may still come. A method, because with a closure in each trip,
   * young collections copied the calls of windows that had ended: twice the CPU time and four times the p99 of windows
   * with many calls.
   */
  unanswered(): void {
    // Nothing waits for commands but themselves.
  }

  /** Called when policies answer what need not wait for it. */
  expire(): void {
    // Commands have no policies.
  }
}

export interface TripsOptions {
  readonly scheduler: Timing;
  /** KVSTORE_TIMEOUT: milliseconds after which the connection of a trip is cut; 0 or undefined: no limit. */
  readonly timeout?: number | undefined;
}

/** The process ends: milliseconds of a drain for what follows after what is in flight. */
const AFTERWARDS = 2_500;
/** Most milliseconds, when the process ends, of what begins when less is left for it. */
const LAST_TIMEOUT = 1_000;

/**
 * The trips to one server that are in flight. One timer ends them, armed for the one that is due first and again only
 * when it fires: a timer for each trip costs as much as the rest of a small one.
 */
export class Trips {
  readonly #scheduler: Timing;
  readonly #now: () => number;
  readonly #timeout: number;
  readonly #inFlight: Trip[] = [];
  #timer: Subscription | undefined;
  #armedFor = Infinity;
  #isClosed = false;
  /** When the process ends: the time at which what is in flight has to end. */
  #lastEnd: number | undefined;

  constructor({ scheduler, timeout }: TripsOptions) {
    this.#scheduler = scheduler;
    this.#now = elapsedBy(scheduler);
    this.#timeout = timeout || Infinity;
  }

  /** When the oldest of them began; undefined: there are none. */
  get oldest(): number | undefined {
    return this.#inFlight.length === 0 ? undefined : Math.min(...this.#inFlight.map(({ sentAt }) => sentAt));
  }

  /**
   * @param answerWithin milliseconds that something waits for it
   * @param expireWithin milliseconds that what policies can answer waits for it
   */
  begin(trip: Trip, answerWithin = Infinity, expireWithin = Infinity): void {
    const now = this.#now();
    const left = this.#lastEnd === undefined ? Infinity : Math.max(this.#lastEnd - now, LAST_TIMEOUT);
    trip.sentAt = now;
    trip.answerBy = now + answerWithin;
    trip.expireBy = now + expireWithin;
    trip.cutBy = now + Math.min(this.#timeout, left);
    trip.index = this.#inFlight.push(trip) - 1;
    this.#arm(Math.min(trip.expireBy, trip.answerBy, trip.cutBy));
  }

  /** The work of a trip is done. @returns milliseconds since it began */
  ended(trip: Trip): number {
    const last = this.#inFlight.pop()!;
    if (last !== trip) {
      this.#inFlight[trip.index] = last;
      last.index = trip.index;
    }
    if (this.#isClosed) this.close();
    return this.#now() - trip.sentAt;
  }

  /** The process ends: what is in flight, or begins from now on, ends in time for a drain of so many milliseconds. */
  endWithin(milliseconds: number): void {
    this.#lastEnd = this.#now() + milliseconds - AFTERWARDS;
    for (const trip of this.#inFlight) trip.cutBy = Math.min(trip.cutBy, this.#lastEnd);
    this.#arm(this.#lastEnd);
  }

  /** No more begin: when what is in flight has ended, no timer runs. */
  close(): void {
    this.#isClosed = true;
    if (this.#inFlight.length === 0) this.#timer?.unsubscribe();
  }

  #arm(by: number): void {
    if (by >= this.#armedFor) return;
    this.#timer?.unsubscribe();
    this.#armedFor = by;
    let due = 0;
    this.#timer = afterTime(this.#scheduler, Math.max(1, Math.ceil(by - this.#now())), {
      onDue: () => {
        due = this.#now();
        for (const trip of this.#inFlight) if (Math.min(trip.answerBy, trip.cutBy) <= due) trip.hasPassed = true;
      },
      onElapsed: () => this.#end(due),
    });
  }

  /** Ends trips that were due at a time. */
  #end(due: number): void {
    this.#armedFor = Infinity;
    let next = Infinity;
    for (const trip of [...this.#inFlight]) {
      if (trip.cutBy <= due) {
        trip.cutBy = Infinity;
        trip.pass();
      }
      if (trip.expireBy <= due) {
        trip.expireBy = Infinity;
        trip.expire();
      }
      if (trip.answerBy <= due) {
        trip.answerBy = Infinity;
        trip.abandon();
        trip.unanswered();
      }
      next = Math.min(next, trip.expireBy, trip.answerBy, trip.cutBy);
    }
    this.#arm(next);
  }
}

/** Most milliseconds that calls wait for the store. */
export interface DecisionTimeouts {
  /** STORE_DECISION_TIMEOUT as it was set, for all calls; undefined: the store has an end of its own. */
  readonly ofCalls?: number | undefined;
  /** For calls that only limits with another policy than `error` count; undefined: the store has an end of its own. */
  readonly byPolicy?: number | undefined;
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
  readonly #scheduler: Timing;
  readonly #now: () => number;
  /** What is due at the same millisecond, in order. Mostly, what is added is due last. */
  readonly #due: { readonly at: number; readonly expiring: Expiring[] }[] = [];
  #timer: Subscription | undefined;

  constructor(scheduler: Timing) {
    this.#scheduler = scheduler;
    this.#now = elapsedBy(scheduler);
  }

  /** @param wait in milliseconds */
  add(expiring: Expiring, wait: number): void {
    const at = Math.ceil(this.#now() + Math.max(0, wait));
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
    const milliseconds = Math.max(1, first.at - this.#now());
    this.#timer = afterTime(this.#scheduler, milliseconds, { onElapsed: () => this.#expire() });
  }

  #expire(): void {
    const now = this.#now();
    while (this.#due[0] !== undefined && this.#due[0].at <= now) {
      for (const each of this.#due.shift()!.expiring) each.expire();
    }
    this.#wait();
  }
}
