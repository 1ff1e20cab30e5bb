import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import type { WeirProcess } from './weir-process';

/** A worker of a service, as the system sees it. */
export interface Worker {
  readonly number: number;
  readonly pid: number;
}

/** The workers of a service that run, by their numbers. */
export function workersOf({ pid }: Pick<WeirProcess, 'pid'>): readonly Worker[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const [, number] = /^weir: worker (\d+)/.exec(textOf(`/proc/${name}/cmdline`)) ?? [];
      if (number === undefined || parentOf(name) !== pid) return [];
      return [{ number: Number(number), pid: Number(name) }];
    })
    .sort((one, other) => one.number - other.number);
}

/** How many connections of a TCP port a process has. */
export function connectionsTo(port: number, pid: number): number {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const inodes = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) =>
    textOf(file)
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, address, , state]) => address?.endsWith(local) === true && state !== LISTEN)
      .map((fields) => fields[9]),
  );
  return socketsOf(pid).filter((inode) => inodes.includes(inode)).length;
}

/** How many connections of a Unix socket a process has. */
export function connectionsToPath(path: string, pid: number): number {
  const inodes = textOf('/proc/net/unix')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[7] === path && fields[5] === CONNECTED)
    .map((fields) => fields[6]);
  return socketsOf(pid).filter((inode) => inodes.includes(inode)).length;
}

const LISTEN = '0A';
/** Of a Unix socket; that of the listener is 01. */
const CONNECTED = '03';

function socketsOf(pid: number): readonly string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap(
    (fd) => /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`))?.[1] ?? [],
  );
}

function parentOf(pid: string): number {
  return Number(/^PPid:\s+(\d+)/m.exec(textOf(`/proc/${pid}/status`))?.[1]);
}

/** The empty text for a process that has ended. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function linkOf(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return '';
  }
}
