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

/** How much more memory the service takes than with Node 20, at most: with the option of the image, a fifth. */
export const MORE_MEMORY = Number(process.versions.node.split('.')[0]) < 22 ? 1 : 1.2;
