import { type Observable, type SchedulerLike, asyncScheduler, filter, interval, map, pairwise, startWith } from 'rxjs';

/** How often the clocks are compared, in milliseconds. */
const INTERVAL = 1000;
/** Smaller differences are adjustments of the clock, or two readings that the operating system has separated. In milliseconds. */
const SMALLEST_JUMP = 1000;

export interface Clocks {
  /** Unix time, in milliseconds. */
  readonly system: () => number;
  /** Milliseconds of a clock that only runs evenly; its origin does not matter. */
  readonly monotonic: () => number;
}

const CLOCKS: Clocks = { system: Date.now, monotonic: () => performance.now() };

/**
 * Emits each jump of the system clock, within a second: by how many milliseconds it moved against the monotonic clock, positive
 * ahead and negative back. A process that was suspended also sees a jump ahead. Never completes.
 */
export function clockJumps(
  { system, monotonic }: Clocks = CLOCKS,
  scheduler: SchedulerLike = asyncScheduler,
): Observable<number> {
  return interval(INTERVAL, scheduler).pipe(
    startWith(undefined),
    map(() => system() - monotonic()),
    pairwise(),
    map(([before, after]) => after - before),
    filter((difference) => Math.abs(difference) >= SMALLEST_JUMP),
  );
}
