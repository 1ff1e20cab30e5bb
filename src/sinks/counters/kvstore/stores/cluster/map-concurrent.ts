/**
 * Calls `act` for each of the items, for at most `width` of them at a time. Resolves when all are done; `act` must not
 * reject.
 */
export async function mapConcurrent<T>(
  items: readonly T[],
  width: number,
  act: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  async function work(): Promise<void> {
    while (next < items.length) {
      const item = items[next] as T;
      next += 1;
      await act(item);
    }
  }
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, work));
}
