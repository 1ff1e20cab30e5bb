import { setImmediate } from 'node:timers/promises';

/** Lists items in parts, each in a turn of the event loop of its own, so that a long list does not delay decisions. */
export async function* inParts<T>(items: Iterable<T>, size: number): AsyncIterableIterator<readonly T[]> {
  let part: T[] = [];
  for (const item of items) {
    if (part.push(item) < size) continue;
    yield part;
    part = [];
    await setImmediate();
  }
  if (part.length > 0) yield part;
}
