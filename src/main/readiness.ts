import {
  BehaviorSubject,
  EMPTY,
  type Observable,
  asyncScheduler,
  catchError,
  combineLatest,
  map,
  startWith,
  tap,
  timer,
} from 'rxjs';
import type { Awaited } from '../streams/awaited';
import { type Check, checks, describeAwaited } from '../streams/checks';
import { type Health, STARTING } from '../streams/health';
import type { Log } from '../streams/ports/log';
import type { Service } from '../streams/service';

/** Milliseconds after which it is logged what the service is waiting for. */
const LOG_AFTER = 1_000;

/** The log line of each item. */
const AWAITED: Readonly<Record<Awaited, string>> = {
  rules: 'no active rules; not serving until valid rules are loaded',
  'counter store': 'no connection to the counter store; not serving until it is reached',
  workers: 'not all workers are ready; not serving until they are',
};

/** Whether the service can be called: its health, and until its listeners are open what it waits for. */
export class Readiness {
  readonly #streams: Pick<Service, 'health$' | 'awaited$'>;
  readonly #hasWorkers: boolean;
  readonly #hasOpened = new BehaviorSubject(false);

  constructor(streams: Pick<Service, 'health$' | 'awaited$'>, { hasWorkers }: { readonly hasWorkers: boolean }) {
    this.#streams = streams;
    this.#hasWorkers = hasWorkers;
  }

  /** The listeners for decisions are open. */
  opened(): void {
    this.#hasOpened.next(true);
  }

  get hasOpened(): boolean {
    return this.#hasOpened.value;
  }

  /** Whether the listeners for decisions are open: now and when they are. */
  get opened$(): Observable<boolean> {
    return this.#hasOpened.asObservable();
  }

  /** What the service does, in one line without addresses: now, and at every change. Never fails. */
  get status$(): Observable<string> {
    const { health$, awaited$ } = this.#streams;
    // Why the service cannot start, `phase$` reports.
    const lastAwaited$ = awaited$.pipe(catchError(() => EMPTY));
    return combineLatest([this.#hasOpened, health$.pipe(startWith(STARTING)), lastAwaited$]).pipe(
      map(([hasOpened, { healthy, unhealthy }, awaited]) => {
        if (hasOpened) return healthy ? 'serving' : `serving, but unhealthy: ${unhealthy.join(', ')}`;
        return `starting: ${missing(awaited).join(', ')}`;
      }),
    );
  }

  get health(): Health {
    const health = this.#streams.health$.value;
    if (this.hasOpened) return health;
    return { healthy: false, unhealthy: [...health.unhealthy, ...missing(this.#streams.awaited$.value)] };
  }

  /** What probes list: the checks of the service, and that its listeners for decisions are open. */
  get checks(): readonly Check[] {
    const { health$, awaited$ } = this.#streams;
    const listeners: Check = { name: 'listeners', failure: this.hasOpened ? undefined : 'not open yet' };
    const options = { awaited: this.hasOpened ? [] : awaited$.value, hasWorkers: this.#hasWorkers };
    return [...checks(health$.value, options), listeners];
  }

  /** Logs what is still awaited one second after subscribing, one line for each item; then completes. */
  logAwaited(log: Log, scheduler = asyncScheduler): Observable<unknown> {
    return timer(LOG_AFTER, scheduler).pipe(
      tap(() => {
        for (const item of this.#streams.awaited$.value) log.warn(AWAITED[item]);
      }),
    );
  }
}

/** What is missing before the listeners are open, in words. */
function missing(awaited: readonly Awaited[]): readonly string[] {
  return awaited.length > 0 ? awaited.map(describeAwaited) : ['opening the listeners'];
}
