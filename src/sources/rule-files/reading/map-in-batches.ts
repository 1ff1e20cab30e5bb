/** Items that are processed at the same time: as many as keep the threads of the file system busy. */
const BATCH = 32;

/**
 * Maps items in order, some at a time: each result of the file system takes time of the event loop, and so do thousands at once.
 * Rejects with the first error.
 */
export async function mapInBatches<T, R>(items: readonly T[], map: (item: T) => Promise<R>): Promise<readonly R[]> {
  const results: R[] = [];
  for (let first = 0; first < items.length; first += BATCH) {
    for (const result of await Promise.all(items.slice(first, first + BATCH).map(map))) results.push(result);
  }
  return results;
}
