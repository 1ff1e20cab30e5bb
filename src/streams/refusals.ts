import {
  type Observable,
  type SchedulerLike,
  concat,
  debounceTime,
  exhaustMap,
  map,
  of,
  scan,
  share,
  startWith,
  take,
} from 'rxjs';

/** Milliseconds without a refusal after which refusing has ended. */
const QUIET = 5_000;

/** A listener begins to refuse connections, or has ended after this many. */
export type RefusalPhase<T> =
  { readonly kind: 'began'; readonly first: T } | { readonly kind: 'ended'; readonly first: T; readonly count: number };

/**
 * When refusing begins and ends, from each refused connection. It ends after five seconds without a refusal, so that a listener
 * at its bound, which refuses some and accepts others, changes its phase once. Completes and fails with `refused$`; a phase that
 * is in progress then ends first if `refused$` completes.
 */
export function refusalPhases<T>(refused$: Observable<T>, scheduler: SchedulerLike): Observable<RefusalPhase<T>> {
  const shared$ = refused$.pipe(share());
  return shared$.pipe(
    exhaustMap((first) => {
      const ended$ = shared$.pipe(
        startWith(first),
        scan((count) => count + 1, 0),
        debounceTime(QUIET, scheduler),
        take(1),
        map((count) => ({ kind: 'ended', first, count }) as const),
      );
      return concat(of({ kind: 'began', first } as const), ended$);
    }),
  );
}
