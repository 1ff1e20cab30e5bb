/** Does something with each of the items, with `width` of them under way at a time. Completes when all are done; `act` must not reject. */
export async function mapConcurrent<T>(
  items: readonly T[],
  width: number,
  act: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  async function lane(): Promise<void> {
    while (next < items.length) {
      const item = items[next] as T;
      next += 1;
      await act(item);
    }
  }
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, lane));
}
