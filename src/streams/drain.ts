import {
  EMPTY,
  type Observable,
  type SchedulerLike,
  catchError,
  concat,
  defer,
  filter,
  ignoreElements,
  map,
  merge,
  of,
  pairwise,
  raceWith,
  take,
  timer,
} from 'rxjs';

/**
 * Milliseconds from a signal to the end of the process, at most, if the delay before the drain leaves enough of them:
 * Docker and Podman wait 10 s before they kill.
 */
export const STOP_TIME = 9_500;
/** Milliseconds that a drain has at least, whatever the delay. */
export const LEAST_DRAIN = 4_500;

/** One part of the service that has to end before the process does. */
export interface DrainStep {
  /** What is drained, for log lines: `gRPC calls`. */
  readonly name: string;
  /**
   * Ends the part on subscribing; completes when it has ended. Its values are ignored.
   *
   * @param within milliseconds from the first step to the deadline
   */
  readonly run: (within: number) => Observable<unknown>;
}

/** What aborts a drain. */
export type AbortReason = 'second signal' | 'deadline';

/** How a drain ended. */
export type DrainOutcome =
  { readonly kind: 'drained' } | { readonly kind: 'aborted'; readonly why: AbortReason; readonly step: string };

export interface DrainOptions {
  readonly steps: readonly DrainStep[];
  /** Completes when the first step may run; until then, nothing ends. */
  readonly delay$: Observable<never>;
  /** Called when the delay is over, before the first step. */
  readonly onBegin: () => void;
  /** A further signal aborts the drain and its delay. */
  readonly signal$: Observable<unknown>;
  /**
   * Milliseconds from subscribing after which the drain is aborted; {@link LEAST_DRAIN} after the delay at the
   * earliest.
   */
  readonly deadline: number;
  readonly scheduler: SchedulerLike;
  /** Called with each step that failed; the steps after it still run. */
  readonly onFailure: (step: string, error: unknown) => void;
}

/** The connections of the listeners for decisions. */
export interface Connections {
  readonly open: number;
  /** How many were accepted so far. */
  readonly accepted: number;
}

/** Milliseconds without a connection after which there are no callers that a delay could be for. */
const UNCONNECTED = 500;

/**
 * Completes after `delay` milliseconds, or earlier when no connection has been open for a while. Callers that open one
 * for each call are seen by those that were accepted.
 */
export function shutdownDelay(
  delay: number,
  connections: () => Connections,
  scheduler: SchedulerLike,
): Observable<never> {
  const unconnected$ = timer(0, UNCONNECTED, scheduler).pipe(
    map(connections),
    pairwise(),
    filter(([before, now]) => before.open === 0 && now.open === 0 && before.accepted === now.accepted),
  );
  return timer(delay, scheduler).pipe(raceWith(unconnected$), take(1), ignoreElements());
}

/** What is in flight before the first step. */
const DELAY = 'shutdown delay';

/**
 * Waits for the delay and runs the steps in order, each after the one before has ended. Emits the outcome once and
 * completes; never fails.
 */
export function drain({
  steps,
  delay$,
  onBegin,
  signal$,
  deadline,
  scheduler,
  onFailure,
}: DrainOptions): Observable<DrainOutcome> {
  return defer(() => {
    const since = scheduler.now();
    let current = DELAY;
    function abortedBy(why: AbortReason): DrainOutcome {
      return { kind: 'aborted', why, step: current };
    }
    const steps$ = defer(() => {
      const within = Math.max(deadline - (scheduler.now() - since), LEAST_DRAIN);
      onBegin();
      const runs = steps.map(({ name, run }) =>
        defer(() => {
          current = name;
          return run(within);
        }).pipe(
          ignoreElements(),
          catchError((error: unknown) => {
            onFailure(name, error);
            return EMPTY;
          }),
        ),
      );
      const deadline$ = timer(within, scheduler).pipe(map(() => abortedBy('deadline')));
      return merge(concat(...runs, of<DrainOutcome>({ kind: 'drained' })), deadline$);
    });
    return merge(concat(delay$, steps$), signal$.pipe(map(() => abortedBy('second signal')))).pipe(take(1));
  });
}
