import {
  EMPTY,
  Observable,
  type OperatorFunction,
  type SchedulerLike,
  Subject,
  type Subscriber,
  type Subscription,
} from 'rxjs';
import { backoff } from './backoff';
import type { SendWindow } from './pipeline-window';

/**
 * What a window shows about its server. `bad`: it cannot be reached, does not answer in time, or cannot count at present. `none`:
 * nothing, because the window failed for another reason, or was not sent.
 */
export type Outcome = 'ok' | 'bad' | 'none';

/** A window whose values have their outcome. */
export interface EndedWindow {
  readonly outcome: Outcome;
  /** How many values it has. */
  readonly size: number;
}

/** Sends the values of a window, which ends after so many milliseconds, if that is limited. Emits once. */
export type SendWithin<T, R> = (values: readonly T[], limit: number | undefined) => Observable<R>;

/** A time in which the server was not called, or only for probes; those that follow each other closely are one. */
export interface Fault {
  readonly milliseconds: number;
  /** The values that were refused, and those of the windows that failed. */
  readonly values: number;
  /** Whether the server has answered in the end; false: it is no longer used. */
  readonly isUp: boolean;
}

export interface BreakerOptions<T> {
  /** So many bad windows in a row open the breaker; 0: it never opens. */
  readonly failures: number;
  readonly scheduler: SchedulerLike;
  /** Most milliseconds that a window may take; undefined: `send` has an end of its own. Probes have it too, and never more than a second. */
  readonly limit?: number | undefined;
  /** Receives each value that is not sent. */
  readonly refuse: (value: T) => void;
  readonly observer: BreakerObserver;
}

/** Is notified of what a breaker does. */
export interface BreakerObserver {
  changed(isOpen: boolean): void;
  faultBegan(): void;
  faultEnded(fault: Fault): void;
}

/** Milliseconds that a probe may take. */
const PROBE_LIMIT = 1_000;
/** Milliseconds without a fault after which one has ended, and the waits begin with the shortest again. */
const QUIET = 5_000;
/** Milliseconds from opening to the first probe, and at most. */
const [FIRST_WAIT, LONGEST_WAIT] = [100, 500];

/**
 * Sends windows to a server only while it answers. Closed, it passes all values on. It opens after `failures` bad windows in a row, or when
 * more than half of at least ten (and of twice `failures`) in the last second were bad; then every value is refused at once, those too
 * that were gathered but not sent. After 50 to 500 ms, the next window is a probe, while all further values are refused: when it is ok, the
 * breaker closes, and otherwise it opens again, for longer. Windows that were in flight when it opened end by themselves, without a say.
 *
 * - Complete: the open window is sent, or refused; the result completes when no window is in flight.
 * - Error of the source: passed on at once. Unsubscribe: ends windows in flight, as without a breaker.
 *
 * @param send emits a window once, when it has ended
 * @param windows gathers values and sends them by the function that it gets; when it completes, it sends what it has gathered
 */
export function circuitBreaker<T, R extends EndedWindow>(
  options: BreakerOptions<T>,
  send: SendWithin<T, R>,
  windows: (send: SendWindow<T, R>) => OperatorFunction<T, R>,
): OperatorFunction<T, R> {
  if (options.failures === 0) return windows((values) => send(values, options.limit));
  return (source) =>
    new Observable<R>((subscriber) => {
      const breaker = new Breaker(options, { subscriber, windows, send });
      subscriber.add(() => breaker.end());
      subscriber.add(
        source.subscribe({
          next: (value) => breaker.add(value),
          error: (error: unknown) => subscriber.error(error),
          complete: () => breaker.complete(),
        }),
      );
    });
}

interface Inner<T, R> {
  readonly subscriber: Subscriber<R>;
  readonly windows: (send: SendWindow<T, R>) => OperatorFunction<T, R>;
  readonly send: SendWithin<T, R>;
}

class Breaker<T, R extends EndedWindow> {
  readonly #options: BreakerOptions<T>;
  readonly #subscriber: Subscriber<R>;
  readonly #windows: Inner<T, R>['windows'];
  readonly #send: Inner<T, R>['send'];
  readonly #wait = backoff({ initial: FIRST_WAIT, max: LONGEST_WAIT, drawn: (wait) => [wait / 2, wait] });
  /** `idle`: half-open, before the probe. */
  #state: 'closed' | 'open' | 'idle' | 'probing' = 'closed';
  /** Where values go. Opening begins another one, so that nothing that was gathered or sent before has a part in what follows. */
  #period: Subject<T>;
  /** The periods with windows in flight, and the present one. */
  #running = 0;
  #isComplete = false;
  /** Bad windows in a row. */
  #row = 0;
  #recent = new RecentOutcomes();
  /** Openings of the same fault. */
  #openings = 0;
  /** When the fault began, and when the breaker last closed in it. */
  #fault: { readonly began: number; closed: number } | undefined;
  /** The values that were refused or failed in the fault, or in the bad windows that may become one. */
  #affected = 0;
  #timer: Subscription | undefined;

  constructor(options: BreakerOptions<T>, { subscriber, windows, send }: Inner<T, R>) {
    this.#options = options;
    this.#subscriber = subscriber;
    this.#windows = windows;
    this.#send = send;
    this.#period = this.#begin();
  }

  add(value: T): void {
    if (this.#state === 'closed' || this.#state === 'idle') this.#period.next(value);
    else this.#refuse(value);
  }

  complete(): void {
    this.#isComplete = true;
    this.#timer?.unsubscribe();
    this.#period.complete();
  }

  end(): void {
    this.#timer?.unsubscribe();
    if (this.#state !== 'closed') this.#options.observer.changed(false);
    if (this.#fault !== undefined) this.#endFault();
  }

  #begin(): Subject<T> {
    const period = new Subject<T>();
    this.#running += 1;
    this.#subscriber.add(
      period.pipe(this.#windows((values) => this.#sendIn(period, values))).subscribe({
        next: (window) => {
          if (period === this.#period && !this.#isComplete) this.#ended(window);
          this.#subscriber.next(window);
        },
        error: (error: unknown) => this.#subscriber.error(error),
        complete: () => {
          this.#running -= 1;
          if (this.#isComplete && this.#running === 0) this.#subscriber.complete();
        },
      }),
    );
    return period;
  }

  #sendIn(period: Subject<T>, values: readonly T[]): Observable<R> {
    if (period !== this.#period) {
      for (const value of values) this.#refuse(value);
      return EMPTY;
    }
    const { limit } = this.#options;
    if (this.#state !== 'idle') return this.#send(values, limit);
    this.#state = 'probing';
    return this.#send(values, Math.min(limit ?? PROBE_LIMIT, PROBE_LIMIT));
  }

  /** A window of the present period. While the breaker is half-open, there is none in flight but the probe. */
  #ended({ outcome, size }: R): void {
    if (outcome === 'bad') this.#affected += size;
    if (this.#state === 'probing') this.#probed(outcome);
    else if (outcome !== 'none') this.#settled(outcome === 'bad');
  }

  #settled(isBad: boolean): void {
    const { failures, scheduler } = this.#options;
    const recent = this.#recent;
    recent.add(isBad, scheduler.now());
    if (isBad) {
      this.#row += 1;
      const isMostlyBad = recent.size >= Math.max(10, 2 * failures) && recent.bad > recent.size / 2;
      if (this.#row >= failures || isMostlyBad) this.#open();
    } else {
      this.#row = 0;
      if (this.#fault === undefined) this.#affected = 0;
    }
  }

  #probed(outcome: Outcome): void {
    if (outcome === 'none') this.#state = 'idle';
    else if (outcome === 'ok') this.#close();
    else this.#open();
  }

  #open(): void {
    const { observer, scheduler } = this.#options;
    const before = this.#period;
    this.#period = this.#begin();
    this.#state = 'open';
    this.#openings += 1;
    observer.changed(true);
    if (this.#fault === undefined) {
      this.#fault = { began: scheduler.now(), closed: 0 };
      observer.faultBegan();
    }
    this.#timer?.unsubscribe();
    this.#timer = scheduler.schedule(() => (this.#state = 'idle'), this.#wait(this.#openings));
    before.complete();
  }

  #close(): void {
    const { observer, scheduler } = this.#options;
    this.#state = 'closed';
    this.#row = 0;
    this.#recent = new RecentOutcomes();
    observer.changed(false);
    if (this.#fault !== undefined) this.#fault.closed = scheduler.now();
    this.#timer = scheduler.schedule(() => this.#endFault(), QUIET);
  }

  #endFault(): void {
    const { observer, scheduler } = this.#options;
    const { began = 0, closed = 0 } = this.#fault ?? {};
    const isUp = this.#state === 'closed';
    observer.faultEnded({ milliseconds: (isUp ? closed : scheduler.now()) - began, values: this.#affected, isUp });
    this.#fault = undefined;
    this.#openings = 0;
    this.#affected = 0;
  }

  #refuse(value: T): void {
    this.#affected += 1;
    this.#options.refuse(value);
  }
}

const [SLOTS, SLOT_LENGTH] = [10, 100];

/** The outcomes of the last second, in tenths of it. */
class RecentOutcomes {
  size = 0;
  bad = 0;
  readonly #sizes = new Array<number>(SLOTS).fill(0);
  readonly #bad = new Array<number>(SLOTS).fill(0);
  #newest = 0;

  add(isBad: boolean, now: number): void {
    const newest = Math.floor(now / SLOT_LENGTH);
    // A clock that was set back begins a new second.
    const passed = newest < this.#newest ? SLOTS : Math.min(SLOTS, newest - this.#newest);
    for (let step = 0; step < passed; step += 1) this.#empty((newest - step) % SLOTS);
    this.#newest = newest;
    this.#sizes[newest % SLOTS]! += 1;
    this.size += 1;
    if (!isBad) return;
    this.#bad[newest % SLOTS]! += 1;
    this.bad += 1;
  }

  #empty(slot: number): void {
    this.size -= this.#sizes[slot]!;
    this.bad -= this.#bad[slot]!;
    this.#sizes[slot] = this.#bad[slot] = 0;
  }
}
