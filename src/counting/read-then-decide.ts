import { tableKey } from '../text/table-key';
import { hitsOfGroup } from './group';
import { LARGEST_COUNT, Operation, type Stored, groupLength, readOf } from './operation';

// Where a store cannot apply the operations of a group as one step: over several lanes, over the slots of a cluster, without scripts, and in
// memcached. The counters are read first, and counted then; hits of other processes in between are missed.

/** Whether the hits of an operation depend on the counts of all operations of its group. */
export function stopsWhenOver({ group }: Operation): boolean {
  return group?.mode === 'stop_when_over';
}

/** Reads of the same counters. */
export function readsOf(batch: readonly Operation[]): readonly Operation[] {
  return batch.map(readOf);
}

/**
 * The hits that each operation adds, by counts that were read before. Within the batch none are missed: each group is judged on the counts
 * that the operations before it will have left.
 *
 * @param stored what was read of each operation's counter
 */
export function hitsOnRead(batch: readonly Operation[], stored: readonly (Stored | Error)[]): readonly number[] {
  // Not by the keys themselves: V8 hashes very long texts by their length alone.
  const keys = new Map(batch.map((operation) => [operation, tableKey(operation.key)]));
  const counts = new Map(batch.map((operation, index) => [keys.get(operation), Number(stored[index]) || 0]));
  const decided: number[] = [];
  function countOf(operation: Operation): number {
    return counts.get(keys.get(operation)) as number;
  }
  while (decided.length < batch.length) {
    const first = decided.length;
    const length = stopsWhenOver(batch[first]!) ? groupLength(batch, first) : 1;
    const members = batch.slice(first, first + length);
    const hits = stopsWhenOver(members[0]!) ? hitsOfGroup(members, countOf) : [members[0]!.hits];
    for (const [index, operation] of members.entries()) {
      const own = hits[index] as number;
      decided.push(own);
      if (operation.limit.algorithm !== undefined) continue;
      counts.set(keys.get(operation), Math.min(LARGEST_COUNT, Math.max(0, countOf(operation) + own)));
    }
  }
  return decided;
}

/** Operations that add what {@link hitsOnRead} says, each by itself; those with an algorithm are kept as they are. */
export function decidedOnRead(batch: readonly Operation[], stored: readonly (Stored | Error)[]): readonly Operation[] {
  const hits = hitsOnRead(batch, stored);
  return batch.map((operation, index) => {
    if (operation.limit.algorithm !== undefined) return operation;
    return new Operation(operation.limit, operation.key, hits[index] as number);
  });
}
