import { type Observable, type SchedulerLike, distinctUntilChanged, interval, map, scan } from 'rxjs';

/** How often it is checked within the limit whether there was an answer. */
const CHECKS = 10;

/** The oldest request, and at how many checks in a row it was the same as before. */
interface Waiting {
  readonly request: unknown;
  readonly checks: number;
}

/**
 * Whether the other end of a channel is silent, at the first check and at every change. It is when the oldest request has not been answered
 * for a time in milliseconds, and until that request is.
 *
 * The time is measured by several timers one after the other: when this process itself stood still for long, answers that arrived meanwhile
 * are read between two of them.
 *
 * @param oldest the oldest request that has not been answered, undefined if there is none
 */
export function silence(oldest: () => unknown, limit: number, scheduler: SchedulerLike): Observable<boolean> {
  return interval(limit / CHECKS, scheduler).pipe(
    scan<number, Waiting>(
      ({ request, checks }) => {
        const present = oldest();
        const isSame = present !== undefined && present === request;
        return { request: present, checks: isSame ? checks + 1 : 0 };
      },
      { request: undefined, checks: 0 },
    ),
    map(({ checks }) => checks >= CHECKS),
    distinctUntilChanged(),
  );
}
