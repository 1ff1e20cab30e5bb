import { type Observable, type SchedulerLike, asyncScheduler, defer, of, switchMap, timer } from 'rxjs';

/** What one look at the rules found. */
export interface Believable {
  /** Equal when the same was found. */
  readonly key: string;
  /** It may be something half done: a file still being written, a folder still being filled. */
  readonly isDoubtful: boolean;
}

export interface Doubt {
  /** Milliseconds to wait before looking again at what is doubtful. */
  readonly hold: number;
  /** Milliseconds after which something doubtful is believed even though it keeps changing. */
  readonly longest: number;
}

/**
 * Looks until what is found can be believed, emits that, and completes: something doubtful only when it is still the same
 * after the hold. A look that emits nothing ends it without a value.
 */
export function believe<T extends Believable>(
  look: () => Observable<T>,
  { hold, longest }: Doubt,
  scheduler: SchedulerLike = asyncScheduler,
): Observable<T> {
  return defer(() => {
    const end = scheduler.now() + longest;
    const lookAgain = (doubted: T | undefined): Observable<T> =>
      look().pipe(
        switchMap((found) =>
          !found.isDoubtful || found.key === doubted?.key || scheduler.now() >= end
            ? of(found)
            : timer(hold, scheduler).pipe(switchMap(() => lookAgain(found))),
        ),
      );
    return lookAgain(undefined);
  });
}
