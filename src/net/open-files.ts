import { readFileSync } from 'node:fs';
import type net from 'node:net';

/** File descriptors that connections leave free for everything else: the store, the rule files, the debug listener. */
const RESERVED = 64;

/** The open-files limit of this process (`ulimit -n`); Infinity if there is none, or if the system has no `/proc`. */
export function openFilesLimit(): number {
  let limits: string;
  try {
    limits = readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return Infinity;
  }
  const [, soft] = /^Max open files +(\d+)/m.exec(limits) ?? [];
  return soft === undefined ? Infinity : Number(soft);
}

/**
 * Whether an accepted connection leaves enough file descriptors free. If not, it must be closed. At the limit itself, Node would
 * close connections without any event (libuv accepts and closes them), and nothing else could open a file or a connection.
 */
export function leavesFilesFree(socket: net.Socket, limit: number): boolean {
  const { _handle: handle } = socket as { _handle?: { fd?: number } | null };
  // The system gives the lowest number that is free, so all lower ones are in use.
  return (handle?.fd ?? 0) < limit - Math.min(RESERVED, limit / 4);
}
