import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type ConnectionKind, type OpenFiles, openFiles } from '../net/open-files';
import type { Exchange } from './errors';
import type { HttpLimits, HttpTimeouts, OnHttpRejected } from './limits';

/** How many connections are considered for closing when a new one arrives at the limit. */
const MAX_CANDIDATES = 256;
/** Between two checks of the connections, at most. */
const CHECK_INTERVAL_MS = 1_000;

/** The type of a response that ends only with its reader, and whose sender skips what the reader does not read. */
export const EVENT_STREAM = 'text/event-stream';

export interface ConnectionsOptions {
  readonly limits: HttpLimits;
  readonly timeouts: HttpTimeouts;
  readonly onRejected: OnHttpRejected;
  /** Which connections it has in the order of those that leave file descriptors free; default: those of operators. */
  readonly kind?: ConnectionKind;
  /** Default: the descriptors of the process. */
  readonly files?: OpenFiles | undefined;
}

/** A connection and its responses that are not sent completely, in the order in which they will be sent. */
interface Connection {
  readonly socket: Socket;
  readonly responses: ServerResponse[];
  /** When its last request began, or it was accepted, in milliseconds of `performance.now()`. */
  usedAt: number;
  /** Something arrived that is not HTTP, or not in time. */
  hasFailed: boolean;
  /** What is being sent, and since when, as of the last check. */
  sending: ServerResponse | undefined;
  sendingSince: number;
}

/** The open connections of a listener, within its limits. */
export class Connections {
  readonly #options: ConnectionsOptions;
  /** The connection whose last request began the longest ago is the first. */
  readonly #bySocket = new Map<Socket, Connection>();
  readonly #timer: NodeJS.Timeout;
  #onEmpty: () => void = () => undefined;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    const interval = Math.ceil(Math.min(CHECK_INTERVAL_MS, options.timeouts.response / 4));
    this.#timer = setInterval(() => this.#endSlowReaders(performance.now()), interval).unref();
  }

  /** A new connection. Closes another one, or it, when there are too many: then the result is false. */
  opened(socket: Socket): boolean {
    const { limits, kind = 'operators', files = openFiles } = this.#options;
    if (this.#bySocket.size - this.#streams() >= limits.maxConnections) {
      const victim = this.#dispensable() ?? socket;
      const bound = `${limits.maxConnections} connections are open`;
      this.#reject(victim, victim === socket ? `${bound}, and none is idle` : bound);
      if (victim === socket) return false;
    }
    const usedAt = performance.now();
    const connection: Connection = {
      ...{ socket, responses: [], usedAt, hasFailed: false, sending: undefined, sendingSince: 0 },
    };
    const isAdmitted = files.admit(socket, kind, {
      get idleSince() {
        return isDispensable(connection) ? connection.usedAt : undefined;
      },
      get wasUsed() {
        return connection.usedAt !== usedAt;
      },
      giveWay: () => this.#reject(socket, 'few file descriptors are left'),
    });
    if (!isAdmitted) {
      this.#reject(socket, 'few file descriptors are left, and no connection is idle');
      return false;
    }
    this.#bySocket.set(socket, connection);
    socket.once('close', () => {
      this.#bySocket.delete(socket);
      if (this.#bySocket.size === 0) this.#onEmpty();
    });
    return true;
  }

  #reject(socket: Socket, reason: string): void {
    this.#options.onRejected('connections', socket, reason);
    socket.destroy();
    this.#bySocket.delete(socket);
  }

  /** A request has begun. Returns false, and ends the connection, if it is one too many in flight. */
  began({ socket }: IncomingMessage, response: ServerResponse): boolean {
    const connection = this.#bySocket.get(socket);
    // Requests that have been read with one that ended the connection.
    if (connection === undefined || socket.destroyed) return false;
    const { responses } = connection;
    while (responses[0]?.writableFinished === true) responses.shift();
    if (responses.length >= this.#options.limits.maxPipelined) {
      this.#options.onRejected('pipelining', socket, `${responses.length} requests are in flight`);
      socket.destroy();
      return false;
    }
    responses.push(response);
    connection.usedAt = performance.now();
    this.#bySocket.delete(socket);
    this.#bySocket.set(socket, connection);
    return true;
  }

  /** The responses of a connection that are not sent completely, in the order in which they will be sent. */
  unsent(socket: Socket): readonly ServerResponse[] {
    return this.#bySocket.get(socket)?.responses.filter((response) => !response.writableFinished) ?? [];
  }

  /**
   * Something arrived that is not HTTP, or not in time. Returns whether it is the first such thing on an open
   * connection.
   */
  failed(socket: Socket): boolean {
    const connection = this.#bySocket.get(socket);
    if (connection === undefined || connection.hasFailed) return false;
    connection.hasFailed = true;
    return true;
  }

  get count(): number {
    return this.#bySocket.size;
  }

  get sockets(): Iterable<Socket> {
    return this.#bySocket.keys();
  }

  /** Resolves when no connection is open; called once, when no further one will be. */
  async ended(): Promise<void> {
    if (this.#bySocket.size > 0) await new Promise<void>((resolve) => (this.#onEmpty = resolve));
    clearInterval(this.#timer);
  }

  /** How many connections have an event stream, should there be as many that it matters. */
  #streams(): number {
    const { maxConnections, maxStreams } = this.#options.limits;
    if (maxStreams === 0 || this.#bySocket.size < maxConnections) return 0;
    return Math.min(maxStreams, Array.from(this.#bySocket.values()).filter(isStream).length);
  }

  /**
   * The connection to be closed for a new one: the one without a request for the longest time, of those that are idle,
   * whose request is incomplete, or that are being sent a response other than an event stream.
   */
  #dispensable(): Socket | undefined {
    let candidates = 0;
    for (const connection of this.#bySocket.values()) {
      if (isDispensable(connection)) return connection.socket;
      candidates += 1;
      if (candidates === MAX_CANDIDATES) return undefined;
    }
    return undefined;
  }

  #endSlowReaders(now: number): void {
    const { limits, timeouts, onRejected } = this.#options;
    let unread = 0;
    for (const connection of this.#bySocket.values()) {
      if (isStream(connection)) continue;
      const bytes = unreadBytes(connection);
      unread += bytes;
      const next = firstUnsent(connection);
      if (next === undefined || !next.headersSent) connection.sending = undefined;
      else if (connection.sending !== next) {
        connection.sending = next;
        connection.sendingSince = now;
      } else if (now - connection.sendingSince > timeouts.response) {
        onRejected('slow_reader', connection.socket, `${bytes} bytes were not read in time`);
        connection.socket.destroy();
      }
    }
    if (unread > limits.maxUnreadBytes) this.#endLargest(unread - limits.maxUnreadBytes);
  }

  /** Ends connections, those with the most unread bytes first, until so many bytes are released. */
  #endLargest(excess: number): void {
    const byBytes = Array.from(this.#bySocket.values(), (connection) => ({
      connection,
      bytes: unreadBytes(connection),
    }));
    byBytes.sort((one, other) => other.bytes - one.bytes);
    let released = 0;
    for (const { connection, bytes } of byBytes) {
      if (released >= excess) return;
      released += bytes;
      this.#options.onRejected('slow_reader', connection.socket, `${bytes} bytes are unread, of too many in total`);
      connection.socket.destroy();
    }
  }
}

/**
 * Ends a response when its caller ends its half of the connection. For one that takes long before it writes anything:
 * only then does a caller that is gone differ from one that has nothing more to send.
 */
export function endWithCaller({ req: { socket }, res }: Exchange): void {
  function end(): void {
    res.destroy();
  }
  if (socket.readableEnded) end();
  socket.once('end', end);
  res.once('close', () => socket.off('end', end));
}

/** What is due first, or is being sent. */
function firstUnsent({ responses }: Connection): ServerResponse | undefined {
  return responses.find((response) => !response.writableFinished);
}

function isDispensable(connection: Connection): boolean {
  const next = firstUnsent(connection);
  return next === undefined || !next.req.complete || (next.headersSent && !isStream(connection));
}

function isStream(connection: Connection): boolean {
  return firstUnsent(connection)?.getHeader('Content-Type') === EVENT_STREAM;
}

/** Bytes of responses that wait for their caller. */
function unreadBytes({ responses }: Connection): number {
  let bytes = 0;
  for (const response of responses) if (!response.writableFinished) bytes += response.writableLength;
  return bytes;
}
