import { EMPTY, Observable, type SchedulerLike, catchError, defer, finalize, mergeMap, of } from 'rxjs';
import { DecisionError, timedOut } from '../counting/decision-error';
import type { LocalCounts } from '../limiter/local-counts';
import type { Operation, Result } from '../counting/operation';
import { Deadline, afterTime } from './deadline';
import type { CounterLane } from './ports/counters';

/**
 * Applies a batch, which fails with `store_timeout` after so many milliseconds; undefined: the store has an end of its
 * own.
 */
export function applyWithin(
  limit: number | undefined,
  { lane, batch, scheduler }: { lane: CounterLane; batch: readonly Operation[]; scheduler: SchedulerLike },
): Observable<readonly Result[]> {
  const deadline = new Deadline(scheduler);
  const results$ = lane.apply(batch, deadline);
  if (limit === undefined) return results$;
  // By hand, because the operators for this cost as much as a small window.
  return new Observable((subscriber) => {
    subscriber.add(
      afterTime(scheduler, limit, {
        onDue: () => (deadline.hasPassed = true),
        onElapsed: () => subscriber.error(timedOut({ isUncounted: !deadline.hasBegun })),
      }),
    );
    return results$.subscribe(subscriber);
  });
}

/**
 * Adds to a lane the hits that could not be sent to it before, a batch at a time, each within a limit of time. To be
 * subscribed to when the lane works. Completes without a value when none are left, when the lane does not count a
 * batch, and at once if it is adding already.
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
