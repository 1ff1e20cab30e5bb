import { type Observable, type SchedulerLike, repeat, takeLast, timer } from 'rxjs';

/** A time is measured by this many timers. */
const PARTS = 10;

/**
 * Emits once after a time in milliseconds, then completes.
 *
 * The time is measured by several timers one after the other: when this process itself stood still for long, messages that arrived
 * meanwhile are read between two of them.
 */
export function patientTimer(time: number, scheduler: SchedulerLike): Observable<unknown> {
  return timer(time / PARTS, scheduler).pipe(repeat(PARTS), takeLast(1));
}
