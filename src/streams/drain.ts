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

/** One thing that has to end before the process does. */
export interface DrainStep {
  /** For the log: what did not end, or failed to. */
  readonly name: string;
  /** Ends it; completes when it has ended. Its values are ignored. */
  readonly run: () => Observable<unknown>;
}

/** How a drain ended. */
export type DrainOutcome =
  | { readonly kind: 'drained' }
  | { readonly kind: 'cut short'; readonly why: 'second signal' | 'deadline'; readonly step: string };

export interface DrainOptions {
  readonly steps: readonly DrainStep[];
  /** A further signal cuts the drain short. */
  readonly signal$: Observable<unknown>;
  /** What is not done after this many milliseconds is left undone. */
  readonly deadline: number;
  readonly scheduler: SchedulerLike;
  /** Told of a step that failed; the steps after it run all the same. */
  readonly onFailure: (step: string, error: unknown) => void;
}

/** Ends one thing after another, in order. Emits the outcome once and completes; never fails. */
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
    const cutShort$ = merge(
      signal$.pipe(map(() => 'second signal' as const)),
      timer(deadline, scheduler).pipe(map(() => 'deadline' as const)),
    ).pipe(map((why): DrainOutcome => ({ kind: 'cut short', why, step: current })));
    return merge(concat(...runs, of<DrainOutcome>({ kind: 'drained' })), cutShort$).pipe(take(1));
  });
}
