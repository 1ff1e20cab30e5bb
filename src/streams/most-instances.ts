import { type Observable, type SchedulerLike, distinctUntilChanged, map, merge, of, scan, timer } from 'rxjs';

/** Milliseconds to the second look, which shows whom the first one has found, and between two further ones. */
const [FIRST, INTERVAL] = [2_000, 10_000];
/** The looks of the last ten minutes. */
const KEPT_LOOKS = 60;

/**
 * The most instances that were seen in the last ten minutes, then every change; it does not fall while the store is
 * away. Never completes.
 *
 * @param look how many are seen now, this one included; begins to look again
 */
export function mostInstances(
  look: () => number,
  isStoreAway: () => boolean,
  scheduler: SchedulerLike,
): Observable<number> {
  return merge(of(0), timer(FIRST, INTERVAL, scheduler)).pipe(
    scan(
      (seen: readonly number[]) =>
        [...seen, Math.max(look(), isStoreAway() ? Math.max(...seen) : 1)].slice(-KEPT_LOOKS),
      [1],
    ),
    map((seen) => Math.max(...seen)),
    distinctUntilChanged(),
  );
}
