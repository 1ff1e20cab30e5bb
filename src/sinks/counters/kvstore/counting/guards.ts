import type { CounterOperation, Guard } from '../../../../limiter/counter-operation';
import type { Outcome } from './outcome';

/** What a step needs to know of an operation that no guard ties to others. */
export type Step = Pick<CounterOperation, 'key' | 'hits' | 'windowSeconds'>;

/** How many operations from this one on stand together: those of its guard, or itself alone. */
export function tiedFrom(batch: readonly CounterOperation[], index: number): number {
  const guard = batch[index]?.guard;
  if (guard === undefined) return 1;
  let end = index + 1;
  while (batch[end]?.guard === guard) end += 1;
  return end - index;
}

/** The same operations, to be read only. */
export function readsOf(batch: readonly CounterOperation[]): readonly CounterOperation[] {
  return batch.map(({ key, windowSeconds, limit }) => ({ key, windowSeconds, limit, hits: 0, guard: undefined }));
}

/**
 * Decides guarded operations on counts that were read before, where no atomic step can: calls of other processes at the same
 * time can slip through between. Within the batch nothing slips: each operation is judged on what those before it will have
 * added.
 *
 * @param stored what reading each operation's key gave
 * @param decides whether a guard is decided here; operations of others stay as they are
 */
export function decideGuards(
  batch: readonly CounterOperation[],
  stored: readonly (Outcome | Error)[],
  decides: (guard: Guard) => boolean = () => true,
): readonly CounterOperation[] {
  const counts = new Map<string, number>();
  batch.forEach(({ key }, index) => {
    const count = stored[index];
    if (typeof count === 'number') counts.set(key, count);
  });
  const decided: CounterOperation[] = [];
  for (let index = 0; index < batch.length;) {
    const tied = batch.slice(index, index + tiedFrom(batch, index));
    const goesOver = tied.map(
      ({ key, hits, guard, limit }) => guard !== undefined && (counts.get(key) ?? 0) + hits > limit,
    );
    const isAnyOver = goesOver.includes(true);
    for (const [place, operation] of tied.entries()) {
      const { key, windowSeconds, limit, guard } = operation;
      const hits = isAnyOver && goesOver[place] === false ? 0 : operation.hits;
      counts.set(key, Math.max(0, (counts.get(key) ?? 0) + hits));
      decided.push(
        guard !== undefined && decides(guard) ? { key, windowSeconds, limit, hits, guard: undefined } : operation,
      );
    }
    index += tied.length;
  }
  return decided;
}
