import { type Observable, combineLatest, defer, filter, map, merge, mergeMap, take, throwError } from 'rxjs';
import type { Store } from './store';

/**
 * Emits once when every store has been reached, and completes. Fails after an attempt that failed when more time than
 * `maxElapsed` milliseconds has passed since subscribing; 0: never. The time is looked at then and not before, as the Go
 * service does it.
 *
 * @param now milliseconds of a clock that only goes forward
 */
export function waitForStore(
  stores: readonly Store[],
  maxElapsed: number,
  now: () => number = () => performance.now(),
): Observable<void> {
  return defer(() => {
    const begin = now();
    const reached$ = combineLatest(
      stores.map(({ connected$ }) =>
        connected$.pipe(
          filter((isConnected) => isConnected),
          take(1),
        ),
      ),
    ).pipe(map(() => undefined));
    const late$ = merge(...stores.map(({ failures$ }) => failures$)).pipe(
      filter(() => maxElapsed > 0 && now() - begin >= maxElapsed),
      mergeMap((error) =>
        throwError(
          () =>
            new Error(`the counter store could not be reached within ${maxElapsed} ms: ${error.message}`, {
              cause: error,
            }),
        ),
      ),
    );
    return merge(reached$, late$).pipe(take(1));
  });
}
