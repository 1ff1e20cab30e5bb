import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import type { WeirProcess } from './weir-process';

/** A worker of a service, as the system sees it. */
export interface Worker {
  readonly number: number;
  readonly pid: number;
}

const LISTEN = '0A';
/** Of a Unix socket; that of the listener is 01. */
const CONNECTED = '03';

/** The workers of a service that run, by their numbers. */
export function workersOf({ pid }: Pick<WeirProcess, 'pid'>): readonly Worker[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const [, number] = /^weir: worker (\d+)/.exec(textOf(`/proc/${name}/cmdline`)) ?? [];
      const [, parent] = /^PPid:\s+(\d+)/m.exec(textOf(`/proc/${name}/status`)) ?? [];
      return number === undefined || Number(parent) !== pid ? [] : [{ number: Number(number), pid: Number(name) }];
    })
    .sort((one, other) => one.number - other.number);
}

/** How many connections of a TCP port a process has. */
export function connectionsTo(port: number, pid: number): number {
  const rows = tcpRows().filter(([, local, , state]) => local?.endsWith(hexPort(port)) === true && state !== LISTEN);
  return count(pid, new Set(rows.map((row) => row[9])));
}

/**
 * The worker that serves a connection to the gRPC port, by the port of the client's end; undefined when there is none.
 */
export function ownerOf(weir: WeirProcess, clientPort: number): number | undefined {
  const [local, remote] = [hexPort(weir.ports.grpc), hexPort(clientPort)];
  const row = tcpRows().find(([, here, there]) => here?.endsWith(local) === true && there?.endsWith(remote) === true);
  const inode = row?.[9];
  return inode === undefined ? undefined : workersOf(weir).find(({ pid }) => socketsOf(pid).includes(inode))?.pid;
}

/** How many connections of a Unix socket a process has. */
export function connectionsToPath(path: string, pid: number): number {
  const rows = rowsOf('/proc/net/unix').filter((row) => row[7] === path && row[5] === CONNECTED);
  return count(pid, new Set(rows.map((row) => row[6])));
}

function count(pid: number, inodes: ReadonlySet<string | undefined>): number {
  return socketsOf(pid).filter((inode) => inodes.has(inode)).length;
}

/** The connections and listeners of the system, each as the fields of its row. */
function tcpRows(): readonly string[][] {
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap(rowsOf);
}

function rowsOf(file: string): readonly string[][] {
  return textOf(file)
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
}

/** The end of an address with this port in such a row. */
function hexPort(port: number): string {
  return `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** The inodes of the sockets of a process; none when it has ended. */
function socketsOf(pid: number): readonly string[] {
  const descriptors = orElse([], () => readdirSync(`/proc/${pid}/fd`));
  return descriptors.flatMap((fd) => {
    const target = orElse('', () => readlinkSync(`/proc/${pid}/fd/${fd}`));
    return /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? [];
  });
}

/** The empty text for a process that has ended. */
function textOf(file: string): string {
  return orElse('', () => readFileSync(file, 'utf8'));
}

/** The result, or the other value when the process has ended or the file was closed. */
function orElse<T>(other: T, read: () => T): T {
  try {
    return read();
  } catch {
    return other;
  }
}
