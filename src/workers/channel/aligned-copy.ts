/** A copy for typed arrays, whose elements must be aligned in memory: the body of a frame begins anywhere. */
export function alignedCopy(bytes: Uint8Array): ArrayBuffer {
  const copy = new ArrayBuffer(bytes.length);
  new Uint8Array(copy).set(bytes);
  return copy;
}
