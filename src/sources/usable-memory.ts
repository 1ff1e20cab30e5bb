import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';

/**
 * The memory that this process may use for its heap, in bytes: the smallest of the limits.
 *
 * @param heap that of V8: `--max-old-space-size`, or what it derives from the memory of the machine
 * @param container that of the container; without one, Node reports 0, or a number beyond any machine
 */
export function usableMemory(
  heap = getHeapStatistics().heap_size_limit,
  container = process.constrainedMemory(),
  machine = totalmem(),
): number {
  return Math.min(heap, machine, container > 0 ? container : Infinity);
}
