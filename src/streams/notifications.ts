import {
  EMPTY,
  type Observable,
  type SchedulerLike,
  distinctUntilChanged,
  map,
  merge,
  take,
  takeUntil,
  timer,
} from 'rxjs';

/** What is reported to a service manager. */
export interface NotificationSources {
  /** What the service does, in one line without secrets: the current text on subscription, then every change. */
  readonly status$: Observable<string>;
  /** Emits when callers can be served. */
  readonly ready$: Observable<unknown>;
  /** The signals that end the process, shared. */
  readonly termination$: Observable<string>;
}

export interface NotificationOptions {
  /** Milliseconds within which the manager expects the next sign of life; undefined without a watchdog. */
  readonly watchdog: number | undefined;
  /** Milliseconds that the process takes at most from the first signal to its end. */
  readonly stopTimeout: number;
  readonly scheduler: SchedulerLike;
}

/** Begins the message at the first signal. */
export const STOPPING = 'STOPPING=1';

/** One message: assignments such as `READY=1`. */
export type Notification = readonly [string, ...string[]];

/**
 * The messages for a service manager, in the protocol of systemd: the status at each change, `READY=1` once,
 * `STOPPING=1` at the first signal, after which there is neither, and `WATCHDOG=1` twice in the time within which it is
 * expected. Completes after the first signal only without a watchdog.
 */
export function notifications(
  { status$, ready$, termination$ }: NotificationSources,
  { watchdog, stopTimeout, scheduler }: NotificationOptions,
): Observable<Notification> {
  const status = status$.pipe(
    distinctUntilChanged(),
    map((text): Notification => [`STATUS=${text}`]),
    takeUntil(termination$),
  );
  const ready = ready$.pipe(
    take(1),
    map((): Notification => ['READY=1']),
    takeUntil(termination$),
  );
  const stopping = termination$.pipe(
    take(1),
    // The manager must not kill it during a delay or a drain that its own timeout does not consider.
    map((signal): Notification => [
      STOPPING,
      `STATUS=stopping after ${signal}`,
      `EXTEND_TIMEOUT_USEC=${Math.ceil(stopTimeout * 1000)}`,
    ]),
  );
  const alive =
    watchdog === undefined ? EMPTY : timer(0, watchdog / 2, scheduler).pipe(map((): Notification => ['WATCHDOG=1']));
  return merge(alive, ready, status, stopping);
}
