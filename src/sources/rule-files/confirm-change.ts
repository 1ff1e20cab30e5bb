import { type Observable, type SchedulerLike, asyncScheduler, defer, of, switchMap, timer } from 'rxjs';

/** The result of one scan, as far as {@link confirmChange} needs it. */
export interface ScanResult {
  /** Equal for two scans that found the same. */
  readonly key: string;
  /** Whether the change may still be in progress: a file being written, a folder being filled. */
  readonly mayBeIncomplete: boolean;
}

export interface ConfirmTiming {
  /** Milliseconds before a result that may be incomplete is checked by another scan. */
  readonly recheckDelay: number;
  /** Milliseconds after which a result that may be incomplete is emitted even though it keeps changing. */
  readonly maxWait: number;
}

/**
 * Scans until the result is confirmed, emits it, and completes. A result that may be incomplete is confirmed when the scan
 * after `recheckDelay` finds the same. A scan that completes without a value ends it without a value; a scan that fails
 * makes it fail. Unsubscribing cancels the scan or the wait in progress.
 */
export function confirmChange<T extends ScanResult>(
  scan: () => Observable<T>,
  { recheckDelay, maxWait }: ConfirmTiming,
  scheduler: SchedulerLike = asyncScheduler,
): Observable<T> {
  return defer(() => {
    const deadline = scheduler.now() + maxWait;
    function scanAfter(previous: T | undefined): Observable<T> {
      return scan().pipe(
        switchMap((found) =>
          !found.mayBeIncomplete || found.key === previous?.key || scheduler.now() >= deadline
            ? of(found)
            : timer(recheckDelay, scheduler).pipe(switchMap(() => scanAfter(found))),
        ),
      );
    }
    return scanAfter(undefined);
  });
}
