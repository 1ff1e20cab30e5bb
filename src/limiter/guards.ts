/** What a guarded step does to one operation: its hits, or 0 where it is only read. */
export interface GuardedOperation {
  readonly key: string;
  readonly hits: number;
  readonly limit: number;
}

/**
 * The hits that each operation of a guarded step adds: all of them when none goes over its limit; otherwise only those of the
 * operations that are over or would go over. Each addition is judged alone, on the stored count; negative hits always count, and lower
 * the count on which later operations of the same key are judged.
 *
 * @param stored the count of each key before the step
 */
export function guardedHits(
  operations: readonly GuardedOperation[],
  stored: (key: string) => number,
): readonly number[] {
  const lowered = new Map<string, number>();
  const goesOver = operations.map(({ key, hits, limit }) => {
    const count = lowered.get(key) ?? stored(key);
    if (hits >= 0) return count + hits > limit;
    lowered.set(key, Math.max(0, count + hits));
    return true;
  });
  const isAnyOver = operations.some(({ hits }, index) => hits >= 0 && goesOver[index]);
  return operations.map(({ hits }, index) => (isAnyOver && !goesOver[index] ? 0 : hits));
}
