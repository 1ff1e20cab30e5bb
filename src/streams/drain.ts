import {
  EMPTY,
  type Observable,
  type SchedulerLike,
  catchError,
  concat,
  defer,
  ignoreElements,
  map,
  merge,
  of,
  race,
  take,
  timer,
} from 'rxjs';

/** One part of the service that has to end before the process does. */
export interface DrainStep {
  /** What is drained, for log lines: `gRPC calls`. */
  readonly name: string;
  /** Ends the part on subscribing; completes when it has ended. Its values are ignored. */
  readonly run: () => Observable<unknown>;
}

/** What aborts a drain. */
export type AbortReason = 'second signal' | 'deadline';

/** How a drain ended. */
export type DrainOutcome =
  { readonly kind: 'drained' } | { readonly kind: 'aborted'; readonly why: AbortReason; readonly step: string };

export interface DrainOptions {
  readonly steps: readonly DrainStep[];
  /** Milliseconds before the first step, during which nothing ends; 0: none. */
  readonly delay: number;
  /** Called when the delay is over, before the first step. */
  readonly onBegin: () => void;
  /** A further signal aborts the drain and its delay. */
  readonly signal$: Observable<unknown>;
  /** Milliseconds after the delay at which the drain is aborted. */
  readonly deadline: number;
  readonly scheduler: SchedulerLike;
  /** Called with each step that failed; the steps after it still run. */
  readonly onFailure: (step: string, error: unknown) => void;
}

/**
 * Emits why a drain is aborted, once.
 *
 * @param signal$ the second signal
 * @param after milliseconds from the subscription to the deadline
 */
export function abortReasons(
  signal$: Observable<unknown>,
  after: number,
  scheduler: SchedulerLike,
): Observable<AbortReason> {
  return race(
    signal$.pipe(map(() => 'second signal' as const)),
    timer(after, scheduler).pipe(map(() => 'deadline' as const)),
  ).pipe(take(1));
}

/** What is in flight before the first step. */
const DELAY = 'shutdown delay';

/**
 * Waits for the delay and runs the steps in order, each after the one before has ended. Emits the outcome once and completes; never
 * fails.
 */
export function drain({
  steps,
  delay,
  onBegin,
  signal$,
  deadline,
  scheduler,
  onFailure,
}: DrainOptions): Observable<DrainOutcome> {
  return defer(() => {
    let current = DELAY;
    const delay$ = delay === 0 ? EMPTY : timer(delay, scheduler).pipe(ignoreElements());
    const begin$ = defer(() => {
      onBegin();
      return EMPTY;
    });
    const runs = steps.map(({ name, run }) =>
      defer(() => {
        current = name;
        return run();
      }).pipe(
        ignoreElements(),
        catchError((error: unknown) => {
          onFailure(name, error);
          return of<never>();
        }),
      ),
    );
    const aborted$ = abortReasons(signal$, delay + deadline, scheduler).pipe(
      map((why): DrainOutcome => ({ kind: 'aborted', why, step: current })),
    );
    return merge(concat(delay$, begin$, ...runs, of<DrainOutcome>({ kind: 'drained' })), aborted$).pipe(take(1));
  });
}
