import { type Observable, combineLatest, defer, filter, map, merge, mergeMap, take, throwError } from 'rxjs';
import type { Store } from './store';

/**
 * Emits once when every store has been connected to, and completes. Fails at the first failed attempt after `maxElapsed`
 * milliseconds since subscribing (0: no limit). As in the Go service the limit is checked after failed attempts only, so an
 * attempt that is in progress is not aborted.
 *
 * @param now milliseconds of a monotonic clock
 */
export function waitForStore(
  stores: readonly Store[],
  maxElapsed: number,
  now: () => number = () => performance.now(),
): Observable<void> {
  return defer(() => {
    const start = now();
    const connected$ = combineLatest(
      stores.map((store) =>
        store.connected$.pipe(
          filter((isConnected) => isConnected),
          take(1),
        ),
      ),
    ).pipe(map(() => undefined));
    const timeout$ = merge(...stores.map(({ failures$ }) => failures$)).pipe(
      filter(() => maxElapsed > 0 && now() - start >= maxElapsed),
      mergeMap((error) => throwError(() => notReached(error, maxElapsed))),
    );
    return merge(connected$, timeout$).pipe(take(1));
  });
}

function notReached(cause: Error, maxElapsed: number): Error {
  return new Error(`cannot connect to the counter store within ${maxElapsed} ms: ${cause.message}`, { cause });
}
