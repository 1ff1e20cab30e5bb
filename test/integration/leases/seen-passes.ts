/** Hits that have passed at some time from one Unix millisecond to another one: that of the store cannot be seen. */
export interface SeenPass {
  readonly from: number;
  readonly to: number;
  readonly hits: number;
}

/**
 * By how many hits the passes are certainly more than a bucket allows, wherever in their time each was: in no interval
 * may more pass than the bucket holds and what flows in. That is so if a server that works at its rate can serve each
 * from its first moment on, and at most as long after its last one as the bucket takes to be full; and then serving the
 * most urgent ones first does it.
 *
 * @param perHit the milliseconds that a hit takes
 * @param capacity in hits
 */
export function beyondBucket(passes: readonly SeenPass[], perHit: number, capacity: number): number {
  if (passes.length === 0) return 0;
  const sorted = passes.toSorted((one, other) => one.from - other.from);
  const start = sorted[0]!.from;
  const end = Math.max(...sorted.map(({ to }) => to));
  /** The milliseconds of work by the last moment of its passes. */
  const waiting = new Float64Array(end - start + 1);
  /** The most urgent of what waits and the least urgent. */
  let [urgent, last] = [0, -1];
  let [next, beyond] = [0, 0];
  for (let now = start; now <= end + capacity * perHit + 1; now += 1) {
    for (; next < sorted.length && sorted[next]!.from <= now; next += 1) {
      const { to, hits } = sorted[next]!;
      waiting[to - start]! += hits * perHit;
      urgent = Math.min(urgent, to - start);
      last = Math.max(last, to - start);
    }
    for (let left = 1; left > 0 && urgent <= last;) {
      const served = Math.min(left, waiting[urgent]!);
      waiting[urgent]! -= served;
      left -= served;
      // What rounding leaves of it is no work.
      if (waiting[urgent]! < 1e-6) urgent += 1;
    }
    if (urgent <= last && start + urgent + capacity * perHit < now + 1) {
      beyond = Math.max(beyond, waiting[urgent]! / perHit);
    }
  }
  return beyond;
}

/**
 * The same of a sliding window. Of each pass: those that were certainly in the window of the clock before it, weighted
 * as at its last moment, those that were certainly before it in its own, and itself.
 */
export function beyondSlidingWindow(passes: readonly SeenPass[], length: number, limit: number): number {
  /** By the number of the window, in the order of their last moments. */
  const windows = new Map<number, SeenPass[]>();
  for (const pass of passes.toSorted((one, other) => one.to - other.to)) {
    const number = Math.floor(pass.from / length);
    if (Math.floor(pass.to / length) !== number) continue;
    const known = windows.get(number);
    if (known === undefined) windows.set(number, [pass]);
    else known.push(pass);
  }
  let beyond = 0;
  for (const [number, own] of windows) {
    const previous = sumOf(windows.get(number - 1) ?? []);
    let [next, before] = [0, 0];
    for (const { from, to, hits } of own.toSorted((one, other) => one.from - other.from)) {
      for (; own[next]!.to < from; next += 1) before += own[next]!.hits;
      const weighted = Math.ceil((previous * (length - (to % length))) / length);
      beyond = Math.max(beyond, weighted + before + hits - limit);
    }
  }
  return beyond;
}

function sumOf(passes: readonly SeenPass[]): number {
  return passes.reduce((sum, { hits }) => sum + hits, 0);
}
