import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import type { WeirProcess } from './weir-process';
import { workersOf } from './worker-processes';

/** The worker that serves a connection to the gRPC port, by the port of the client's end; undefined when there is none. */
export function ownerOf(weir: WeirProcess, clientPort: number): number | undefined {
  const [local, remote] = [hexOf(weir.ports.grpc), hexOf(clientPort)];
  const row = ['/proc/net/tcp', '/proc/net/tcp6']
    .flatMap((file) => readFileSync(file, 'utf8').split('\n'))
    .map((line) => line.trim().split(/\s+/))
    .find(([, here, there]) => here?.endsWith(local) === true && there?.endsWith(remote) === true);
  if (row === undefined) return undefined;
  const socket = `socket:[${row[9]}]`;
  return workersOf(weir).find(({ pid }) => linksOf(pid).includes(socket))?.pid;
}

function hexOf(port: number): string {
  return `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** The open files of a process; none when it has ended. */
function linksOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
  } catch {
    return [];
  }
}

function linkOf(path: string): readonly string[] {
  try {
    return [readlinkSync(path)];
  } catch {
    // Closed in the meantime.
    return [];
  }
}
