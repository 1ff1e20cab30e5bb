import type { LimitState } from '../../limiter/algorithm';
import { isCalendarEnd, windowStart } from '../../limiter/cache-key';
import { type CounterOperation, LARGEST_COUNT, guardedHits } from '../../limiter/counter-operation';
import type { ReservationStep } from '../../streams/ports/reservations';
import { tableKey } from '../../text/table-key';

/**
 * The random part of a new key's time to live, in seconds, so that keys do not all expire together.
 *
 * @param jitter its exclusive upper bound: EXPIRATION_JITTER_MAX_SECONDS
 */
export function randomPart(jitter: number): number {
  return Math.floor(Math.random() * jitter);
}

/**
 * For how many seconds a key has to exist: up to the end of the present window of this length. Limits of different units can have one
 * key, whose expiry is at first that of the unit that counted first.
 */
export function secondsLeft(windowSeconds: number): number {
  const now = Math.floor(Date.now() / 1000);
  // A window of the calendar may have ended since the call; a new key needs an expiry even so.
  return Math.max(1, windowStart(now, windowSeconds) + windowSeconds - now);
}

/** For how many seconds a key is kept that is created now, without the random part. */
export function lifetimeOf(windowSeconds: number): number {
  // Until the end of a window of the calendar, and a second more, so that it is not found to be too short.
  return isCalendarEnd(windowSeconds) ? secondsLeft(windowSeconds) + 1 : windowSeconds;
}

/** An operation that is applied by itself: what remains of it once its guard, if any, is decided. */
export type Step = Pick<CounterOperation, 'key' | 'hits' | 'windowSeconds' | 'algorithm'>;

/** How many operations from `index` on belong together: the rest of its guard, or 1 without a guard. */
export function groupLength(batch: readonly CounterOperation[], index: number): number {
  const guard = batch[index]?.guard;
  if (guard === undefined) return 1;
  let end = index + 1;
  while (batch[end]?.guard === guard) end += 1;
  return end - index;
}

/** Reads of the same keys. */
export function readsOf(batch: readonly CounterOperation[]): readonly CounterOperation[] {
  return batch.map(({ key, windowSeconds, limit, algorithm }) => ({
    ...{ key, windowSeconds, limit, algorithm },
    hits: 0,
    guard: undefined,
  }));
}

/**
 * Decides guarded operations on counts that were read before, where the store offers no atomic step: hits of other processes
 * between the read and the write are missed. Within the batch none are: each guard is judged on the counts that the operations
 * before it will have left.
 *
 * @param stored what the reads of {@link readsOf} returned
 */
export function decideGuards(
  batch: readonly CounterOperation[],
  stored: readonly (number | LimitState | Error)[],
): readonly CounterOperation[] {
  // Not by the keys themselves: V8 hashes very long texts by their length alone.
  const keys = batch.map(({ key }) => tableKey(key));
  const counts = new Map(keys.map((key, index) => [key, Number(stored[index]) || 0]));
  const decided: CounterOperation[] = [];
  while (decided.length < batch.length) {
    const first = batch[decided.length] as CounterOperation;
    if (first.algorithm !== undefined) {
      decided.push(first);
      continue;
    }
    const group = batch.slice(decided.length, decided.length + groupLength(batch, decided.length));
    // The hits of an operation without a guard are not changed.
    const hits = guardedHits(group, (key) => counts.get(tableKey(key)) as number);
    for (const [index, { key, windowSeconds, limit }] of group.entries()) {
      const [own, known] = [hits[index] as number, keys[decided.length] as string];
      counts.set(known, Math.min(LARGEST_COUNT, Math.max(0, (counts.get(known) as number) + own)));
      decided.push({ key, windowSeconds, limit, hits: own, guard: undefined });
    }
  }
  return decided;
}

/**
 * Whether the steps that open a reservation are denied, with what {@link ReservationResult} has of them.
 *
 * @param stored the count of a key
 */
export function judged(
  steps: readonly ReservationStep[],
  isDeniedAnyway: boolean,
  stored: (key: string) => number,
): { readonly isDenied: boolean; readonly counts: readonly number[]; readonly added: readonly number[] } {
  const sums = new Map<string, number>();
  let isDenied = isDeniedAnyway;
  let [together, over] = [0, 0];
  const present: number[] = [];
  const after = steps.map(({ key, hits, limit, denies }, index) => {
    const before = sums.get(key) ?? stored(key);
    const sum = Math.min(LARGEST_COUNT, before + hits);
    present[index] = before;
    sums.set(key, sum);
    if (denies === 'together') together += 1;
    if (sum > limit && denies === 'together') over += 1;
    if (sum > limit && denies === 'alone') isDenied = true;
    return sum;
  });
  isDenied ||= together > 0 && over === together;
  if (!isDenied) return { isDenied, counts: after, added: after.map((sum, index) => sum - present[index]!) };
  const counts = steps.map(({ limit }, index) => {
    const sum = after[index] as number;
    return sum > limit ? sum : (present[index] as number);
  });
  return { isDenied, counts, added: steps.map(() => 0) };
}
