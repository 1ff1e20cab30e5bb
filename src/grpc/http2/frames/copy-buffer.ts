/**
 * Room for bytes that wait for others. Never a slice of the pool that small buffers share: one byte that waits there keeps
 * all of it, which is 8 KiB up to Node 22 and 64 KiB from Node 24 on.
 */
export function roomToKeep(length: number): Buffer {
  return Buffer.allocUnsafeSlow(length);
}

/** A copy of `[start, end)` that may be kept for as long as its owner likes, without keeping the chunk it came in. */
export function copyToKeep(source: Buffer, start: number, end: number): Buffer {
  const copy = roomToKeep(end - start);
  source.copy(copy, 0, start, end);
  return copy;
}
