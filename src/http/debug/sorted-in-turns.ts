import { setImmediate as nextTurn } from 'node:timers/promises';

/** Items that are merged, or yielded, in one turn of the event loop: less than a millisecond. */
const PER_TURN = 1_000;

/**
 * Sorts items, which arrive in parts, by their keys, and yields them in parts. Keys are compared by code units. The event loop turns
 * between the steps, so that a long list does not delay decisions.
 */
export async function* sortedInTurns<T>(
  parts: AsyncIterable<readonly T[]>,
  keyOf: (item: T) => string,
): AsyncIterableIterator<readonly T[]> {
  let runs: (readonly T[])[] = [];
  for await (const part of parts) {
    runs.push(part.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : Number(keyOf(one) > keyOf(other)))));
  }
  while (runs.length > 1) {
    const merged: (readonly T[])[] = [];
    for (let i = 0; i < runs.length; i += 2) merged.push(await merge(runs[i]!, runs[i + 1] ?? [], keyOf));
    runs = merged;
  }
  const sorted = runs[0] ?? [];
  for (let i = 0; i < sorted.length; i += PER_TURN) {
    yield sorted.slice(i, i + PER_TURN);
    await nextTurn();
  }
}

async function merge<T>(one: readonly T[], other: readonly T[], keyOf: (item: T) => string): Promise<readonly T[]> {
  const merged: T[] = [];
  for (let i = 0, j = 0; i < one.length || j < other.length;) {
    const takesOne = j === other.length || (i < one.length && keyOf(one[i]!) <= keyOf(other[j]!));
    merged.push(takesOne ? one[i]! : other[j]!);
    if (takesOne) i += 1;
    else j += 1;
    if (merged.length % PER_TURN === 0) await nextTurn();
  }
  return merged;
}
