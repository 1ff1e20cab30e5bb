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

export interface SettleTiming {
  /** Milliseconds without a hint after which a burst has ended. */
  readonly quiet: number;
  /** Milliseconds after the first hint of a burst at which one is emitted although hints keep coming. */
  readonly maxWait: number;
}

/**
 * Emits once per burst of hints, when the burst has ended. When the source completes during a burst, the burst is emitted
 * before the completion; when it fails, or on unsubscribing, it is dropped.
 */
export function settleHints<T>(
  { quiet, maxWait }: SettleTiming,
  scheduler: SchedulerLike = asyncScheduler,
): OperatorFunction<T, void> {
  return connect((hints$: Observable<T>) =>
    hints$.pipe(
      exhaustMap((first) =>
        merge(hints$.pipe(startWith(first), debounceTime(quiet, scheduler)), timer(maxWait, scheduler)).pipe(
          take(1),
          map(() => undefined),
        ),
      ),
    ),
  );
}
