import { type Observable, type SchedulerLike, exhaustMap, ignoreElements, interval } from 'rxjs';

/**
 * Flushes again and again, `span` milliseconds from the start of one flush to the next. A flush that takes longer is left
 * alone: the ticks that fall into it are skipped, and the next tick begins another. An error of a flush ends the stream.
 */
export function flushing(flush: () => Observable<unknown>, span: number, scheduler: SchedulerLike): Observable<never> {
  return interval(span, scheduler).pipe(exhaustMap(flush), ignoreElements());
}
