import type { FileFacts } from './snapshot';
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
export function confirmChange<T extends Believable>(
  look: () => Observable<T>,
  { hold, longest }: Doubt,
  scheduler: SchedulerLike = asyncScheduler,
): Observable<T> {
  return defer(() => {
    const end = scheduler.now() + longest;
    function lookAgain(doubted: T | undefined): Observable<T> {
      return look().pipe(
        switchMap((found) =>
          !found.isDoubtful || found.key === doubted?.key || scheduler.now() >= end
            ? of(found)
            : timer(hold, scheduler).pipe(switchMap(() => lookAgain(found))),
        ),
      );
    }
    return lookAgain(undefined);
  });
}

/**
 * Whether somebody may still be at work on these files: one has gone or is new, was written to in place, or has become blank.
 * Only files that were put in the place of others (renamed over them, switched to) are certainly whole.
 */
export function mayBeWorkInProgress(
  before: ReadonlyMap<string, FileFacts>,
  now: ReadonlyMap<string, FileFacts>,
): boolean {
  for (const path of before.keys()) if (!now.has(path)) return true;
  for (const [path, file] of now) {
    const earlier = before.get(path);
    if (earlier === undefined || (file.isBlank && !earlier.isBlank)) return true;
    if (file.inode === earlier.inode && file.stamp !== earlier.stamp) return true;
  }
  return false;
}
