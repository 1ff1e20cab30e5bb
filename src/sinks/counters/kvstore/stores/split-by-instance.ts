import type { Count, CounterOperation, Guard } from '../../../../limiter/counter-operation';
import { storeError } from '../connections/store-error';
import { decideGuards, readsOf } from '../counting/guards';
import type { Store } from './store';

/** Limits with this window length in seconds are counted on the per-second instance. */
const PER_SECOND = 1;

export interface InstanceStores {
  readonly main: Store;
  readonly perSecond: Store;
}

/**
 * Applies a window to both instances at the same time: limits per second on one, all others on the other. A failure of one
 * instance fails only its operations. No step over both instances is atomic: a guard with operations on both is decided on
 * counts that are read first.
 */
export async function splitByInstance(
  batch: readonly CounterOperation[],
  stores: InstanceStores,
): Promise<readonly Count[]> {
  if (!batch.some(isPerSecond)) return stores.main.apply(batch);
  if (batch.every(isPerSecond)) return stores.perSecond.apply(batch);
  const spanning = spanningGuards(batch);
  if (spanning.size === 0) return applyToBoth(batch, stores);
  const stored = await applyToBoth(readsOf(batch), stores);
  return applyToBoth(
    decideGuards(batch, stored, (guard) => spanning.has(guard)),
    stores,
  );
}

async function applyToBoth(
  batch: readonly CounterOperation[],
  { main, perSecond }: InstanceStores,
): Promise<readonly Count[]> {
  const [mainCounts, perSecondCounts] = await Promise.all([
    applyTo(
      main,
      batch.filter((operation) => !isPerSecond(operation)),
    ),
    applyTo(perSecond, batch.filter(isPerSecond)),
  ]);
  const counts: Count[] = [];
  let onMain = 0;
  for (const operation of batch) {
    if (isPerSecond(operation)) {
      counts.push(perSecondCounts[counts.length - onMain] as Count);
    } else {
      counts.push(mainCounts[onMain] as Count);
      onMain += 1;
    }
  }
  return counts;
}

async function applyTo(store: Store, operations: readonly CounterOperation[]): Promise<readonly Count[]> {
  try {
    return await store.apply(operations);
  } catch (error) {
    const failure = storeError(error);
    return operations.map(() => failure);
  }
}

function isPerSecond({ windowSeconds }: CounterOperation): boolean {
  return windowSeconds === PER_SECOND;
}

/** The guards whose operations are counted on both instances. */
function spanningGuards(batch: readonly CounterOperation[]): ReadonlySet<Guard> {
  function guardsOf(operations: readonly CounterOperation[]): Set<Guard | undefined> {
    return new Set(operations.map(({ guard }) => guard));
  }
  const onMain = guardsOf(batch.filter((operation) => !isPerSecond(operation)));
  const spanning = new Set<Guard>();
  for (const guard of guardsOf(batch.filter(isPerSecond))) {
    if (guard !== undefined && onMain.has(guard)) spanning.add(guard);
  }
  return spanning;
}
