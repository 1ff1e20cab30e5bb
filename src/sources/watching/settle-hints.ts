import {
  type Observable,
  type OperatorFunction,
  type SchedulerLike,
  asyncScheduler,
  connect,
  debounceTime,
  exhaustMap,
  map,
  merge,
  startWith,
  take,
  timer,
} from 'rxjs';

export interface Settling {
  /** Milliseconds without a hint after which a burst counts as over. */
  readonly quiet: number;
  /** Milliseconds after the first hint of a burst at which it counts as over even though it goes on. */
  readonly longest: number;
}

/**
 * Makes one hint of each burst of hints, when the burst is over. A burst that is under way when the source completes is
 * still told; on unsubscribing it is not.
 */
export function settleHints<T>(
  { quiet, longest }: Settling,
  scheduler: SchedulerLike = asyncScheduler,
): OperatorFunction<T, void> {
  return connect((hints$: Observable<T>) =>
    hints$.pipe(
      exhaustMap((first) =>
        merge(hints$.pipe(startWith(first), debounceTime(quiet, scheduler)), timer(longest, scheduler)).pipe(
          take(1),
          map(() => undefined),
        ),
      ),
    ),
  );
}
