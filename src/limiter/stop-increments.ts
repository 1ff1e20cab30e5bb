import type { LimitedDescriptor } from './limited-descriptor';

/**
 * STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: if the local cache reports a key as over, no hits are added; otherwise the store
 * decides in one step. Negative hits are not affected.
 */
export function stopIncrements(
  operations: readonly LimitedDescriptor[],
  isAnyOver: boolean,
): readonly LimitedDescriptor[] {
  const additions = operations.filter(({ isNegative }) => !isNegative);
  if (isAnyOver) {
    for (const addition of additions) addition.hits = 0;
  } else if (additions.length > 1) {
    // Negative hits are part of the step, because they lower the count on which later additions are judged.
    const guard = { operations: operations.length };
    for (const operation of operations) operation.guard = guard;
  }
  return operations;
}
