import { type CounterOperation, LARGEST_COUNT } from '../../../limiter/counter-operation';
import type { Expiry } from '../counting';
import { decideGuards } from '../counting';
import type { StoredValue, WriteCommand } from './commands';
import type { WireKey } from './keys';

export interface BatchKeys {
  /** The key of each operation. */
  readonly wires: readonly WireKey[];
  /** The values that were read. */
  readonly stored: ReadonlyMap<WireKey, StoredValue>;
}

export interface BatchPlan {
  /** The count after each operation. */
  readonly counts: readonly number[];
  /** What changes the counters accordingly, in order. */
  readonly commands: readonly WriteCommand[];
}

/** A key as the operations so far have left it. */
interface KeyState {
  /** Undefined while the key is absent. */
  count: number | undefined;
  /** The last command on the key, if it is an addition: further additions are joined with it. */
  addition: { hits: number } | undefined;
}

/**
 * Decides a batch on counts that were read, as if its operations were applied one after the other: the counts after them, and the
 * commands that the server still has to execute. Subtracting creates no key; a counter saturates at 2^53 − 1.
 */
export function planBatch(batch: readonly CounterOperation[], { wires, stored }: BatchKeys, expiry: Expiry): BatchPlan {
  const operations = batch.some(({ guard }) => guard !== undefined)
    ? decideGuards(
        batch,
        wires.map((wire) => stored.get(wire) ?? 0),
      )
    : batch;
  const keys = new Map<WireKey, KeyState>();
  const commands: WriteCommand[] = [];
  const counts = operations.map(({ hits, windowSeconds }, index) => {
    const wire = wires[index]!;
    const state = keys.get(wire) ?? { count: stored.get(wire), addition: undefined };
    keys.set(wire, state);
    const before = state.count ?? 0;
    if (hits === 0 || (hits < 0 && state.count === undefined)) return before;
    state.count = Math.min(LARGEST_COUNT, Math.max(0, before + hits));
    // Near the largest count, only the hits that fit are added: memcached would count on up to 2^64 and then from 0.
    const added = state.count - before;
    if (hits < 0) {
      commands.push({ kind: 'decr', key: wire, hits: -hits, lifetime: 0 });
      state.addition = undefined;
    } else if (added > 0 && state.addition !== undefined) state.addition.hits += added;
    else if (added > 0) {
      const addition = { kind: 'incr', key: wire, hits: added, lifetime: expiry.of(windowSeconds) } as const;
      commands.push((state.addition = addition));
    }
    return state.count;
  });
  return { counts, commands };
}
