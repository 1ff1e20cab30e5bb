import type { CounterOperation, Guard } from '../../../../limiter/counter-operation';
import type { StepResult } from './step-result';

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
 * between the read and the write are missed. Within the batch none are: each operation is judged on the counts that those
 * before it will have left.
 *
 * @param stored what the reads of {@link readsOf} returned
 * @param decides which guards are decided here; operations of other guards stay unchanged
 */
export function decideGuards(
  batch: readonly CounterOperation[],
  stored: readonly StepResult[],
  decides: (guard: Guard) => boolean = () => true,
): readonly CounterOperation[] {
  const counts = new Map<string, number>();
  batch.forEach(({ key }, index) => {
    const count = stored[index];
    if (typeof count === 'number') counts.set(key, count);
  });
  const decided: CounterOperation[] = [];
  for (let start = 0; start < batch.length;) {
    const group = batch.slice(start, start + groupLength(batch, start));
    const exceeds = group.map(
      ({ key, hits, guard, limit }) => guard !== undefined && (counts.get(key) ?? 0) + hits > limit,
    );
    const anyExceeds = exceeds.includes(true);
    for (const [index, operation] of group.entries()) {
      const { key, windowSeconds, limit, guard } = operation;
      const hits = anyExceeds && exceeds[index] === false ? 0 : operation.hits;
      counts.set(key, Math.max(0, (counts.get(key) ?? 0) + hits));
      decided.push(
        guard !== undefined && decides(guard) ? { key, windowSeconds, limit, hits, guard: undefined } : operation,
      );
    }
    start += group.length;
  }
  return decided;
}
