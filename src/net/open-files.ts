import { readFileSync, readdirSync } from 'node:fs';
import type net from 'node:net';

/** File descriptors that connections leave free for everything else: the store, the rule files, the outputs. */
const RESERVED = 64;
/**
 * The part of so many again that connections of a kind leave to the kinds after it: probes and operators are answered
 * whatever gRPC has open.
 */
const LEFT = { grpc: 3 / 4, http: 1 / 4, operators: 0 } as const;
/**
 * How many connections a new one closes, if more are open than there may be: other files were opened, or connections
 * that may leave less.
 */
const MAX_CLOSED = 2;
/** Milliseconds for which the number of descriptors that are not connections counts as known… */
const KNOWN_MS = 1_000;
/** …at least, so that reading it takes at most this part of the time. */
const READING_PART = 0.01;
/** Milliseconds for which the order of the idle connections is used… */
const ORDERED_MS = 500;
/**
 * …and after which it may be renewed at the earliest, unless as many as this part of the connections were closed by it.
 */
const RENEWED_MS = 50;
const RENEWED_PART = 1 / 16;
/**
 * Milliseconds after which a connection that its peer has not used is closed before all that are used, as if idle for
 * so long already.
 */
const SILENT_MS = 1_000;
const SILENT_SINCE = 1e12;

export type ConnectionKind = keyof typeof LEFT;

/** An open connection, as far as another one may take its place. */
export interface Dispensable {
  /** Since when it is idle, in milliseconds of `performance.now()`; undefined: it is not, and stays open. */
  readonly idleSince: number | undefined;
  /** Whether its peer has sent something. */
  readonly wasUsed: boolean;
  /** Closes it at once, for another connection. */
  giveWay(): void;
}

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

/** How many file descriptors this process has open. */
function countOpenFiles(): number {
  // One of them is that of this folder.
  return readdirSync('/proc/self/fd').length - 1;
}

/**
 * The file descriptors of this process that are connections of its listeners. A new connection that would leave too few
 * takes the place of the one that is idle for the longest, whichever listener has it; those whose peer has sent nothing
 * for a second are the first. At the limit of the system, Node would close connections without any event (libuv accepts
 * and closes them), and nothing else could open a file or a connection.
 */
export class OpenFiles {
  readonly #limit: number;
  readonly #reserved: number;
  readonly #count: () => number;
  readonly #connections = new Map<net.Socket, Dispensable>();
  /** Descriptors that are not connections, and until when, in milliseconds of `performance.now()`, that is known. */
  #others = 0;
  #knownUntil = -Infinity;
  /** Connections that were idle when they were last put in order, the idlest last. */
  #idle: IdleSocket[] = [];
  #orderedAt = -Infinity;
  #closedSince = 0;

  constructor(limit = openFilesLimit(), count = countOpenFiles) {
    this.#limit = limit;
    this.#reserved = Math.min(RESERVED, limit / 4);
    this.#count = count;
  }

  /**
   * Whether an accepted connection may stay open; if not, the caller closes it. Others may have been closed for it. A
   * socket that is passed on within the process may be admitted again, and is.
   */
  admit(socket: net.Socket, kind: ConnectionKind, connection: Dispensable): boolean {
    if (!Number.isFinite(this.#limit)) return true;
    if (!this.#connections.has(socket)) {
      this.#readOthers();
      const bound = Math.floor(this.#limit - this.#reserved * (1 + LEFT[kind]));
      for (let closed = 0; closed < MAX_CLOSED && this.#others + this.#connections.size >= bound; closed += 1) {
        if (this.#closeIdlest()) continue;
        if (closed === 0) return false;
        break;
      }
      socket.once('close', () => this.#connections.delete(socket));
    }
    this.#connections.set(socket, connection);
    return true;
  }

  #readOthers(): void {
    const now = performance.now();
    if (now < this.#knownUntil) return;
    // The new connection is not among those that are counted yet.
    this.#others = this.#count() - this.#connections.size - 1;
    const end = performance.now();
    this.#knownUntil = end + Math.max(KNOWN_MS, (end - now) / READING_PART);
  }

  #closeIdlest(): boolean {
    const now = performance.now();
    if (now - this.#orderedAt >= ORDERED_MS) this.#order(now);
    return this.#closeNext() || (this.#order(now) && this.#closeNext());
  }

  /** Closes the next one in the order that has not been used or closed since. */
  #closeNext(): boolean {
    for (let next = this.#idle.pop(); next !== undefined; next = this.#idle.pop()) {
      const connection = this.#connections.get(next.socket);
      if (connection === undefined || connection.idleSince !== next.idleSince) continue;
      // The descriptor of a socket is free at once, its event 'close' follows later.
      this.#connections.delete(next.socket);
      this.#closedSince += 1;
      connection.giveWay();
      return true;
    }
    return false;
  }

  #order(now: number): boolean {
    if (now - this.#orderedAt < RENEWED_MS && this.#closedSince < this.#connections.size * RENEWED_PART) return false;
    this.#idle = [];
    for (const [socket, { idleSince, wasUsed }] of this.#connections) {
      if (idleSince === undefined) continue;
      const isSilent = !wasUsed && now - idleSince > SILENT_MS;
      this.#idle.push({ socket, idleSince, key: isSilent ? idleSince - SILENT_SINCE : idleSince });
    }
    this.#idle.sort((one, other) => other.key - one.key);
    this.#orderedAt = now;
    this.#closedSince = 0;
    return true;
  }
}

interface IdleSocket {
  readonly socket: net.Socket;
  readonly idleSince: number;
  readonly key: number;
}

/** The descriptors of this process, which all of its listeners share. */
export const openFiles = new OpenFiles();
