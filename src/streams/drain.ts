import {
  type Observable,
  type SchedulerLike,
  catchError,
  concat,
  defer,
  ignoreElements,
  map,
  merge,
  of,
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

/** How a drain ended. */
export type DrainOutcome =
  | { readonly kind: 'drained' }
  | { readonly kind: 'aborted'; readonly why: 'second signal' | 'deadline'; readonly step: string };

export interface DrainOptions {
  readonly steps: readonly DrainStep[];
  /** A further signal aborts the drain. */
  readonly signal$: Observable<unknown>;
  /** Milliseconds after which the drain is aborted. */
  readonly deadline: number;
  readonly scheduler: SchedulerLike;
  /** Called with each step that failed; the steps after it still run. */
  readonly onFailure: (step: string, error: unknown) => void;
}

/** Runs the steps in order, each after the one before has ended. Emits the outcome once and completes; never fails. */
export function drain({ steps, signal$, deadline, scheduler, onFailure }: DrainOptions): Observable<DrainOutcome> {
  return defer(() => {
    let current = '';
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
    const aborted$ = merge(
      signal$.pipe(map(() => 'second signal' as const)),
      timer(deadline, scheduler).pipe(map(() => 'deadline' as const)),
    ).pipe(map((why): DrainOutcome => ({ kind: 'aborted', why, step: current })));
    return merge(concat(...runs, of<DrainOutcome>({ kind: 'drained' })), aborted$).pipe(take(1));
  });
}
