import { type Observable, type SchedulerLike, exhaustMap, ignoreElements, interval } from 'rxjs';

/**
 * Flushes every `span` milliseconds, counted from the start of one flush to the start of the next. A flush that takes longer is not
 * interrupted: ticks during a flush are skipped. An error of a flush ends the stream; unsubscribing unsubscribes from the flush.
 */
export function flushing(flush: () => Observable<unknown>, span: number, scheduler: SchedulerLike): Observable<never> {
  return interval(span, scheduler).pipe(exhaustMap(flush), ignoreElements());
}
