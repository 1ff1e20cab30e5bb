import { type CounterOperation, LARGEST_COUNT } from '../../limiter/counter-operation';
import { guardedHits } from '../../limiter/guards';
import { tableKey } from '../../text/table-key';

/** An operation that is applied by itself: what remains of it once its guard, if any, is decided. */
export type Step = Pick<CounterOperation, 'key' | 'hits' | 'windowSeconds'>;

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
  return batch.map(({ key, windowSeconds, limit }) => ({ key, windowSeconds, limit, hits: 0, guard: undefined }));
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
  stored: readonly (number | Error)[],
): readonly CounterOperation[] {
  const counts = new Map<string, number>();
  const keys = batch.map(({ key }) => tableKey(key));
  keys.forEach((key, index) => {
    const count = stored[index];
    if (typeof count === 'number') counts.set(key, count);
  });
  const decided: CounterOperation[] = [];
  for (let start = 0; start < batch.length;) {
    const group = batch.slice(start, start + groupLength(batch, start));
    const isGuarded = group[0]?.guard !== undefined;
    const hits = isGuarded
      ? guardedHits(group, (key) => counts.get(tableKey(key)) ?? 0)
      : group.map((each) => each.hits);
    group.forEach(({ key, windowSeconds, limit }, index) => {
      const own = hits[index] as number;
      const known = keys[start + index] as string;
      counts.set(known, Math.min(LARGEST_COUNT, Math.max(0, (counts.get(known) ?? 0) + own)));
      decided.push({ key, windowSeconds, limit, hits: own, guard: undefined });
    });
    start += group.length;
  }
  return decided;
}
