/**
 * Allocates memory for bytes that are kept beyond the turn. It is never a slice of the pool that small buffers share: one
 * byte kept there would keep the whole pool, which is 8 KiB up to Node 22 and 64 KiB from Node 24 on.
 */
export function roomToKeep(length: number): Buffer {
  return Buffer.allocUnsafeSlow(length);
}

/** Copies `source[start, end)`, so that keeping the bytes does not keep the chunk in which they were received. */
export function copyToKeep(source: Buffer, start: number, end: number): Buffer {
  const copy = roomToKeep(end - start);
  source.copy(copy, 0, start, end);
  return copy;
}
