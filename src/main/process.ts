import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';

/**
 * Where a container sees its CPU limit: with control groups of version 2 and 1. Each names the quota and the period in
 * microseconds.
 */
const QUOTA_FILES: readonly (readonly string[])[] = [
  ['/sys/fs/cgroup/cpu.max'],
  ['/sys/fs/cgroup/cpu/cpu.cfs_quota_us', '/sys/fs/cgroup/cpu/cpu.cfs_period_us'],
];

/** The number of workers that a value of WORKERS means; `auto` is one for each core that the process may use. */
export function processCount(workers: number | 'auto'): number {
  return workers === 'auto' ? usableCores(availableParallelism(), QUOTA_FILES.map(readAll)) : workers;
}

/**
 * @param cores those that the process may run on
 * @param quotas the texts `quota period`, where there are any
 * @returns whole cores, at least 1
 */
export function usableCores(cores: number, quotas: readonly (string | undefined)[]): number {
  const limits = quotas.map((text = '') => {
    const [quota, period] = text.trim().split(/\s+/).map(Number);
    // Without a limit, version 2 has the word "max" and version 1 has -1.
    return quota !== undefined && period !== undefined && quota > 0 && period > 0 ? quota / period : Infinity;
  });
  return Math.max(1, Math.floor(Math.min(cores, ...limits)));
}

function readAll(files: readonly string[]): string | undefined {
  try {
    return files.map((file) => readFileSync(file, 'utf8')).join(' ');
  } catch {
    return undefined;
  }
}

/**
 * Makes V8 collect its young objects on one thread. Few of them are alive when that happens, so that the work takes a
 * fraction of a millisecond, and by default V8 shares it with helper threads: when the cores are busy, the event loop
 * stands still until each of them has had its turn (measured at 49038a6).
 */
export function collectOnOneThread(): void {
  setFlagsFromString('--no-parallel-scavenge');
}
