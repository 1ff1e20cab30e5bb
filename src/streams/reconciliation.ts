import {
  EMPTY,
  type Observable,
  type SchedulerLike,
  catchError,
  defer,
  finalize,
  mergeMap,
  of,
  throwError,
  timeout,
} from 'rxjs';
import { DecisionError, timedOut } from '../limiter/decision-error';
import type { LocalCounts } from '../limiter/local-counts';
import type { Count, CounterOperation } from '../limiter/counter-operation';
import type { CounterLane, Trip } from './ports/counters';

/** Applies a batch, which fails with `store_timeout` after so many milliseconds; undefined: the store has an end of its own. */
export function applyWithin(
  limit: number | undefined,
  { lane, batch, scheduler }: { lane: CounterLane; batch: readonly CounterOperation[]; scheduler: SchedulerLike },
): Observable<readonly Count[]> {
  if (limit === undefined) return lane.apply(batch);
  const trip: Trip = {};
  function late(): Observable<never> {
    return throwError(() => timedOut({ isUncounted: trip.hasBegun?.() === false }));
  }
  return lane.apply(batch, trip).pipe(timeout({ first: limit, scheduler, with: late }));
}

/**
 * Adds to a lane the hits that could not be sent to it before, a batch at a time, each within a limit of time. To be subscribed to when the
 * lane works. Completes without a value when none are left, when the lane does not count a batch, and at once if it is adding already.
 */
export function reconciliation(
  lane: CounterLane,
  local: LocalCounts,
  scheduler: SchedulerLike,
): (limit: number | undefined) => Observable<never> {
  let isAdding = false;
  function next(limit: number | undefined): Observable<never> {
    const taken = local.take(lane, Math.floor(scheduler.now() / 1000));
    if (taken.length === 0) return EMPTY;
    return applyWithin(limit, { lane, batch: taken, scheduler }).pipe(
      catchError((error: unknown) => {
        const failure = error instanceof DecisionError ? error : timedOut();
        return of(taken.map(() => failure));
      }),
      mergeMap((results) => (local.sent(taken, results, scheduler.now()) ? next(limit) : EMPTY)),
    );
  }
  return (limit) =>
    defer(() => {
      if (isAdding) return EMPTY;
      isAdding = true;
      return next(limit).pipe(finalize(() => (isAdding = false)));
    });
}
