import { readFileSync } from 'node:fs';

/** In bytes. */
export function residentMemoryOf(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) * 1_024;
}
