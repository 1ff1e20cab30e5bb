import { LARGEST_COUNT } from '../counter-operation';
import { guardedHits } from '../guards';
import type { LimitedDescriptor } from '../limited-descriptor';

/**
 * Sets the hits that each operation of a request would add, and the count that it would have after it, as the stores count.
 *
 * @param stored the present count of each key
 */
export function simulateCounts(operations: readonly LimitedDescriptor[], stored: ReadonlyMap<string, number>): void {
  const counts = new Map(stored);
  const isGuarded = operations[0]?.guard !== undefined;
  const hits = isGuarded
    ? guardedHits(operations, (key) => counts.get(key) ?? 0)
    : operations.map((operation) => operation.hits);
  operations.forEach((operation, index) => {
    const before = counts.get(operation.key) ?? 0;
    operation.hits = hits[index] as number;
    operation.after = Math.min(LARGEST_COUNT, Math.max(0, before + operation.hits));
    counts.set(operation.key, operation.after);
  });
}
