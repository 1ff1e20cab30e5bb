import net from 'node:net';
import { performance } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Connection, type ConnectionContext } from './connection';
import { DirectSocket } from '../../net/direct-socket';
import type { RequestInterpreter } from './header-reader';
import { HeldBytes } from './held-bytes';
import { DEFAULT_LIMITS, LIMITS, type Limits, type OnRejected } from './limits';
import { WorkPacing } from './run-queue';
import { type ServerTls, TlsListener, socketBelow } from './tls';
import { FlushScheduler } from './flush-scheduler';

/** The interval at which deadlines are checked, and so their precision. */
const TICK_MS = 50;

export interface Http2ServerOptions {
  /** If absent, the server speaks cleartext HTTP/2 with prior knowledge. */
  readonly tls?: ServerTls | undefined;
  /** The limits that differ from {@link DEFAULT_LIMITS}. */
  readonly limits?: Partial<Limits> | undefined;
  readonly interpreter: RequestInterpreter;
  /** Whether there is a file descriptor for an accepted socket. If not, it is closed. Default: there is. */
  readonly admit?: ((socket: net.Socket, connection: IdleConnection) => boolean) | undefined;
  readonly onRejected?: OnRejected | undefined;
  /**
   * Called with an internal error after the connection on which it occurred has been ended, or with an error of the
   * listener.
   */
  readonly onInternalError?: ((error: unknown) => void) | undefined;
}

/** An open connection that may have to give its file descriptor to another one. */
export interface IdleConnection {
  /** Since when it is idle, in milliseconds of `performance.now()`; undefined: it has calls. */
  readonly idleSince: number | undefined;
  /** Whether its peer has sent something. */
  readonly wasUsed: boolean;
  /** Closes it at once, with GOAWAY if it is one of HTTP/2 already. */
  giveWay(): void;
}

/**
 * An HTTP/2 server (RFC 9113, RFC 7541) for the calls of one interpreter of requests. It does not listen by itself: the
 * caller makes {@link listener} listen, or passes connections to {@link adopt}.
 */
export class Http2Server {
  /** The server that accepts the sockets: a `tls.Server` if TLS is configured. */
  readonly listener: net.Server;
  readonly #limits: Limits;
  readonly #tls: TlsListener | undefined;
  readonly #context: ConnectionContext;
  readonly #admit: NonNullable<Http2ServerOptions['admit']>;
  readonly #onRejected: OnRejected;
  readonly #connections = new Set<Connection>();
  /** The sockets of all connections, and those without one: their TLS handshake has not finished. */
  readonly #sockets = new Map<net.Socket, Connection | undefined>();
  readonly #listenerClosed: Promise<unknown>;
  /** How many connections were accepted, also those that were refused. */
  acceptedConnections = 0;
  #address: net.AddressInfo | string | null = null;
  #ticker: NodeJS.Timeout | undefined;
  #isClosing = false;

  /** Throws if the TLS certificate, key or authority cannot be used. */
  constructor(options: Http2ServerOptions) {
    const { onRejected = () => {}, onInternalError = () => {} } = options;
    const limits: Limits = { ...DEFAULT_LIMITS, ...options.limits };
    function now(): number {
      return performance.now();
    }
    const scheduler = new FlushScheduler(now);
    this.#limits = limits;
    this.#admit = options.admit ?? (() => true);
    this.#onRejected = onRejected;
    this.#context = {
      limits,
      interpreter: options.interpreter,
      heldBytes: new HeldBytes(limits),
      openStreams: 0,
      streamingCalls: 0,
      pacing: new WorkPacing(limits, { idle: () => performance.eventLoopUtilization().idle }, now()),
      now,
      rejected: onRejected,
      internalError: onInternalError,
      flushLater: (connection) => scheduler.flushLater(connection),
      runLater: (connection) => scheduler.runLater(connection),
      isTurnOver: (time) => scheduler.isOver(time),
    };
    this.#tls = options.tls && this.#secureListener(options.tls);
    this.listener = this.#tls?.server ?? this.#cleartextListener();
    this.listener.once('listening', () => {
      this.#address = this.listener.address();
      this.listener.on('error', onInternalError);
    });
    this.#listenerClosed = new Promise((resolve) => {
      this.listener.once('close', resolve);
    });
  }

  /** The address that it listens on, or listened on, with the port that the system chose; the path of a Unix socket. */
  get address(): net.AddressInfo | string {
    if (this.#address === null) throw new Error('the server has not been made to listen');
    return this.#address;
  }

  /**
   * Serves a connection that was accepted elsewhere, before anything was read from it. The server need not listen
   * itself.
   */
  adopt(socket: net.Socket): void {
    this.listener.emit('connection', socket);
  }

  /** The number of open sockets, including those of connections that have ended and wait for the peer to close. */
  get connectionCount(): number {
    return this.#sockets.size;
  }

  /** The calls that are open, or cancelled while the application still works on them. */
  get openStreams(): number {
    return this.#context.openStreams;
  }

  /** The calls that wait because the process has more work than time. */
  get waitingStreams(): number {
    let streams = 0;
    for (const connection of this.#connections) streams += connection.waitingStreams;
    return streams;
  }

  /** Bytes of incomplete requests that are kept. */
  get heldBytes(): number {
    return this.#context.heldBytes.total;
  }

  /**
   * Stops listening, sends GOAWAY on every connection, ends the calls that stay open, lets the others finish, and ends
   * the remaining connections after `graceMs`. Resolves when all connections are closed.
   */
  async drain(graceMs: number): Promise<void> {
    this.#stopListening();
    const abort = setTimeout(() => void this.#inSlices((connection) => connection.abort('')), graceMs);
    await this.#inSlices((connection) => connection.drain());
    await this.#allClosed();
    clearTimeout(abort);
  }

  /** Stops listening and aborts every connection. Resolves when all are closed. */
  async close(): Promise<void> {
    this.#stopListening();
    for (const connection of this.#connections) connection.abort('');
    for (const socket of this.#sockets.keys()) socket.destroy();
    await this.#allClosed();
  }

  /**
   * Uses another certificate, key and authority for new handshakes; open connections are not affected. Throws if they
   * cannot be used, and keeps the previous ones. Whether clients need a certificate cannot be changed.
   */
  replaceTls(tls: ServerTls): void {
    if (this.#tls === undefined) throw new Error('the server was started without TLS');
    this.#tls.replace(tls);
  }

  #cleartextListener(): net.Server {
    return net.createServer({ noDelay: true, pauseOnConnect: true }, (accepted) => {
      const direct = new DirectSocket(accepted);
      if (this.#accept(direct.socket)) direct.onChunk = this.#serve(direct.socket, LIMITS.prefaceMs);
    });
  }

  #secureListener(tls: ServerTls): TlsListener {
    // The handshake and the preface together have as much time as the preface alone has in cleartext.
    const handshakeMs = LIMITS.prefaceMs / 2;
    return new TlsListener({
      tls,
      handshakeMs,
      onSocket: (socket) => this.#accept(socket),
      onSecureSocket: (socket) => socket.on('data', this.#serve(socket, LIMITS.prefaceMs - handshakeMs)),
      onRejected: this.#onRejected,
    });
  }

  /** The first step for every socket: an 'error' event without a listener would end the process. */
  #accept(socket: net.Socket): boolean {
    this.acceptedConnections += 1;
    socket.on('error', () => socket.destroy());
    if (this.#sockets.size >= this.#limits.maxConnections) return this.#refuse(socket, 'connections');
    if (!this.#admit(socket, this.#idleConnection(socket))) return this.#refuse(socket, 'file_descriptors');
    this.#sockets.set(socket, undefined);
    socket.on('close', () => this.#sockets.delete(socket));
    return true;
  }

  #idleConnection(socket: net.Socket): IdleConnection {
    const accepted = performance.now();
    const sockets = this.#sockets;
    return {
      get idleSince() {
        const connection = sockets.get(socket);
        return connection === undefined ? accepted : connection.idleSince;
      },
      get wasUsed() {
        return socket.bytesRead > 0;
      },
      giveWay: () => {
        this.#sockets.get(socket)?.abort('file_descriptors');
        this.#refuse(socket, 'file_descriptors');
      },
    };
  }

  #refuse(socket: net.Socket, kind: 'connections' | 'file_descriptors'): false {
    this.#onRejected(kind, socket, '');
    socket.destroy();
    return false;
  }

  /** Returns what is to be called with each chunk that arrives. */
  #serve(socket: net.Socket, prefaceMs: number): (chunk: Buffer) => void {
    const connection = new Connection(this.#context, socket, prefaceMs);
    this.#connections.add(connection);
    this.#sockets.set(socketBelow(socket) ?? socket, connection);
    this.#ticker ??= setInterval(() => this.#tick(), TICK_MS).unref();
    socket.on('drain', () => connection.drained());
    socket.allowHalfOpen = true;
    socket.on('end', () => connection.peerEnded());
    socket.on('close', () => {
      connection.transportClosed();
      this.#connections.delete(connection);
      if (this.#connections.size > 0) return;
      clearInterval(this.#ticker);
      this.#ticker = undefined;
    });
    if (this.#isClosing) connection.drain();
    return (chunk) => connection.receive(chunk);
  }

  /** Does something to all connections without blocking: thousands of them take longer than a turn may. */
  async #inSlices(work: (connection: Connection) => void): Promise<void> {
    let until = performance.now() + LIMITS.roundMs;
    for (const connection of this.#connections) {
      work(connection);
      if (performance.now() < until) continue;
      await nextTurn();
      until = performance.now() + LIMITS.roundMs;
    }
  }

  /** The listener, when it closes, waits only for the connections that it has accepted itself. */
  async #allClosed(): Promise<void> {
    await this.#listenerClosed;
    for (const socket of this.#sockets.keys()) await new Promise((resolve) => socket.once('close', resolve));
  }

  #tick(): void {
    const now = performance.now();
    this.#context.heldBytes.check(now);
    this.#context.pacing.check(now);
    for (const connection of this.#connections) connection.tick(now);
  }

  #stopListening(): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    this.listener.close();
    // Sockets on which nothing has arrived have no connection that could end gracefully.
    for (const socket of this.#sockets.keys()) if (socket.bytesRead === 0) socket.destroy();
  }
}
