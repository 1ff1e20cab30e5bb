/** Parts of a list, as what writes it while it is generated receives them. */
export async function* partsOf<T>(...parts: readonly (readonly T[])[]): AsyncIterableIterator<readonly T[]> {
  for (const part of parts) yield await Promise.resolve(part);
}
