import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';

/** What limits the memory of a process, in bytes. */
export interface MemoryLimits {
  /** Of V8: `--max-old-space-size`, or what it derives from the memory of the machine. */
  readonly heap: number;
  /** Of the container. Without one, Node reports 0, or a number beyond any machine. */
  readonly container: number;
  readonly machine: number;
}

/** The memory that this process may use for its heap, in bytes: the smallest of the limits. */
export function usableMemory(limits: MemoryLimits = limitsOfProcess()): number {
  const { heap, container, machine } = limits;
  return Math.min(heap, machine, container > 0 ? container : Infinity);
}

function limitsOfProcess(): MemoryLimits {
  return {
    heap: getHeapStatistics().heap_size_limit,
    container: process.constrainedMemory(),
    machine: totalmem(),
  };
}
