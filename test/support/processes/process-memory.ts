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

/** The major version of Node. */
export const NODE_MAJOR = Number(process.versions.node.split('.')[0]);

/** How many times the memory that the service takes with Node 20 it may take with this version. */
export const MORE_MEMORY = NODE_MAJOR < 22 ? 1 : 1.2;
