import { type Observable, shareReplay, tap } from 'rxjs';

/** A stream whose last value can also be read synchronously. It is current while there is at least one subscriber. */
export type Latest<T> = Observable<T> & { readonly value: T };

/**
 * Shares a stream and keeps its last value, for code that cannot wait for an emission, such as the decision path.
 *
 * - Subscribe: the source is subscribed to once for all subscribers; a late subscriber receives the last value at once.
 * - Complete and error: as the source. `value` stays the last one.
 * - Unsubscribe: the last subscriber unsubscribes from the source.
 *
 * @param initial `value` before the source has emitted; it is not emitted
 */
export function latest<T>(source$: Observable<T>, initial: T): Latest<T> {
  let value = initial;
  const values$ = source$.pipe(
    tap((next) => (value = next)),
    shareReplay({ bufferSize: 1, refCount: true }),
  );
  return Object.defineProperty(values$, 'value', { get: () => value }) as Latest<T>;
}
