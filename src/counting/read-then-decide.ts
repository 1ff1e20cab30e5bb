import { tableKey } from '../text/table-key';
import type { LimitState } from './algorithms/algorithm';
import { type Counted, LARGEST_COUNT, Operation, type Stored } from './operation';
import { type CounterTable, simulate } from './simulate';

// Where a store cannot apply the operations of a group as one step: over several lanes, over the slots of a cluster,
// without scripts, and in memcached. The counters are read first, and counted then; hits of other processes in between
// are missed.

/** Whether the hits of an operation depend on the counts of all operations of its group. */
export function stopsWhenOver({ group }: Operation): boolean {
  return group?.mode === 'stop_when_over';
}

/** What was read of counters, on which operations are simulated: the counters themselves stay as they are. */
export class ReadTable implements CounterTable {
  readonly #stored = new Map<string, Stored | Error>();

  /** @param stored by key; a count that is missing, or an error, is 0 */
  constructor(stored: Iterable<readonly [key: string, stored: Stored | Error]>) {
    // Not by the keys themselves: V8 hashes very long texts by their length alone.
    for (const [key, each] of stored) this.#stored.set(tableKey(key), each);
  }

  countOf({ key }: Counted): number {
    return Number(this.#stored.get(tableKey(key))) || 0;
  }

  add(counter: Counted, hits: number): number {
    const after = Math.min(LARGEST_COUNT, Math.max(0, this.countOf(counter) + hits));
    this.#stored.set(tableKey(counter.key), after);
    return after;
  }

  stateOf({ key }: Counted): LimitState {
    return this.#stored.get(tableKey(key)) as LimitState;
  }

  keep({ key }: Counted, state: LimitState): void {
    this.#stored.set(tableKey(key), state);
  }
}

/**
 * The hits that each operation adds, by counts that were read before. Within the batch none are missed: each group is
 * judged on the counts that the operations before it will have left. Limits with algorithms are left to the store.
 *
 * @param stored what was read of each operation's counter
 */
export function hitsOnRead(batch: readonly Operation[], stored: readonly (Stored | Error)[]): readonly number[] {
  const tried = batch.map(({ limit, key, hits, group, purpose }) => {
    return Object.assign(new Operation(limit, key, hits, group), { purpose });
  });
  const table = new ReadTable(batch.map(({ key }, index) => [key, stored[index]!]));
  simulate(
    tried.filter(({ limit }) => limit.algorithm === undefined),
    table,
  );
  return tried.map(({ addedHits }) => addedHits);
}

/** Operations that add what {@link hitsOnRead} says, each by itself; those with an algorithm are kept as they are. */
export function decidedOnRead(batch: readonly Operation[], stored: readonly (Stored | Error)[]): readonly Operation[] {
  const hits = hitsOnRead(batch, stored);
  return batch.map((operation, index) => {
    if (operation.limit.algorithm !== undefined) return operation;
    return new Operation(operation.limit, operation.key, hits[index] as number);
  });
}
