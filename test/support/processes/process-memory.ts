import { readFileSync } from 'node:fs';

/** The resident memory of a process, in MiB. */
export function residentMemory(pid: number): number {
  return read('VmRSS', pid);
}

/** The largest resident memory that a process has had, in MiB. */
export function peakMemory(pid: number): number {
  return read('VmHWM', pid);
}

/** @throws when the process has ended */
function read(name: string, pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024;
}
