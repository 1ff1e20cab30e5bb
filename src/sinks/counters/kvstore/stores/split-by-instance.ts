import type { Count, CounterOperation, Guard } from '../../../../limiter/counter-operation';
import { decideGuards, readsOf } from '../counting/guards';
import type { Store } from './store';
import { storeError } from '../connections/store-error';

/** Limits of this many seconds are counted on the per-second instance. */
const PER_SECOND = 1;

/**
 * Takes a window on two instances at the same time, limits per second on one, all others on the other. What fails on one
 * fails only there. No step over both is atomic: where a guard ties operations of both together, look, then count.
 */
export async function splitByInstance(
  batch: readonly CounterOperation[],
  main: Store,
  perSecond: Store,
): Promise<readonly Count[]> {
  if (!batch.some(isPerSecond)) return main.run(batch);
  if (batch.every(isPerSecond)) return perSecond.run(batch);
  const spanning = spanningGuards(batch);
  if (spanning.size === 0) return onBoth(batch, main, perSecond);
  const stored = await onBoth(readsOf(batch), main, perSecond);
  return onBoth(
    decideGuards(batch, stored, (guard) => spanning.has(guard)),
    main,
    perSecond,
  );
}

async function onBoth(batch: readonly CounterOperation[], main: Store, perSecond: Store): Promise<readonly Count[]> {
  const [onMain, onPerSecond] = await Promise.all([
    run(
      main,
      batch.filter((operation) => !isPerSecond(operation)),
    ),
    run(perSecond, batch.filter(isPerSecond)),
  ]);
  let nextOnMain = 0;
  let nextOnPerSecond = 0;
  return batch.map((operation) =>
    isPerSecond(operation) ? (onPerSecond[nextOnPerSecond++] as Count) : (onMain[nextOnMain++] as Count),
  );
}

async function run(store: Store, operations: readonly CounterOperation[]): Promise<readonly Count[]> {
  try {
    return await store.run(operations);
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
