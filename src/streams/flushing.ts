import {
  type Observable,
  type SchedulerLike,
  concat,
  exhaustMap,
  ignoreElements,
  interval,
  takeUntil,
  timer,
} from 'rxjs';

/** Milliseconds that the last flush of an output may take when the service stops. */
const LAST_FLUSH_TIMEOUT = 2_000;

/**
 * Flushes every `span` milliseconds, counted from the start of one flush to the start of the next. A flush that takes
 * longer is not interrupted: ticks during a flush are skipped. An error of a flush ends the stream; unsubscribing
 * unsubscribes from the flush.
 */
export function flushing(flush: () => Observable<unknown>, span: number, scheduler: SchedulerLike): Observable<never> {
  return interval(span, scheduler).pipe(exhaustMap(flush), ignoreElements());
}

/**
 * Flushes an output a last time. Completes when that is done, or after {@link LAST_FLUSH_TIMEOUT}.
 *
 * @param flush$ flushes on subscription, shared with the subscribers of a flush in flight
 */
export function lastFlush(flush$: Observable<unknown>, scheduler: SchedulerLike): Observable<unknown> {
  // The first one joins a flush in flight, which may have missed the last changes; the second one sends them. Each has
  // a value, so that the limit must not be a race, which the first value would end.
  return concat(flush$, flush$).pipe(takeUntil(timer(LAST_FLUSH_TIMEOUT, scheduler)));
}
