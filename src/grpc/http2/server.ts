import { randomBytes } from 'node:crypto';
import net from 'node:net';
import { performance } from 'node:perf_hooks';
import tls from 'node:tls';
import type { Application } from './streams/application';
import { Connection, type ConnectionContext } from './connection/connection';
import { HeaderBlockReader } from './headers/header-blocks';
import { DEFAULT_LIMITS, type Limits } from './limits/limits';
import { type ListenAddress, listen } from './listen';
import type { Refusal } from './limits/refusals';
import { type ServerTls, secureContextOptions, serverTlsOptions } from './tls-options';

/** How often time is looked at; deadlines are kept within this. */
const TICK_MS = 50;
const TICKET_KEY_BYTES = 48;

export interface Http2ServerOptions<M, S> {
  readonly listen: ListenAddress;
  /** Without it the server speaks cleartext, with prior knowledge. */
  readonly tls?: ServerTls | undefined;
  readonly limits?: Partial<Limits> | undefined;
  readonly application: Application<M, S>;
  /** Called once for everything that is refused. */
  readonly refused?: ((kind: Refusal) => void) | undefined;
  /** A defect of ours that ended a connection. */
  readonly crashed?: ((error: unknown) => void) | undefined;
}

/** An HTTP/2 server that listens. */
export interface Http2Server {
  /** Where it listens: what `net.Server` says, with the port that the system picked. */
  readonly address: net.AddressInfo | string;
  /** Connections that are open, those that only say goodbye included. */
  readonly connectionCount: number;
  /**
   * Listens no more, tells every peer to go away, lets open streams finish, and cuts what is left after `graceMs`. Resolves
   * when all connections are closed.
   */
  drain(graceMs: number): Promise<void>;
  /**
   * New handshakes use these; open connections stay. Throws on what cannot be used, and then keeps the old. Whether
   * callers' certificates are asked for at all cannot change.
   */
  replaceTls(tls: ServerTls): void;
  /** Listens no more and cuts every connection. Resolves when all are closed. */
  close(): Promise<void>;
}

/** Starts an HTTP/2 server (RFC 9113, 7541) for one application. Rejects when it cannot listen. */
export async function serveHttp2<M, S>(options: Http2ServerOptions<M, S>): Promise<Http2Server> {
  const limits: Limits = { ...DEFAULT_LIMITS, ...options.limits };
  const { application, refused = () => {}, crashed = () => {} } = options;
  const connections = new Set<Connection<M, S>>();
  const sockets = new Set<net.Socket>();
  let toFlush: Connection<M, S>[] = [];
  let toRun: Connection<M, S>[] = [];
  let isTurnEndScheduled = false;
  let timer: NodeJS.Timeout | undefined;
  let isClosing = false;

  function endTurn() {
    isTurnEndScheduled = false;
    const [flushing, running] = [toFlush, toRun];
    toFlush = [];
    toRun = [];
    for (const connection of flushing) connection.flush();
    for (const connection of running) {
      connection.runScheduled();
      connection.flush();
    }
  }
  function scheduleTurnEnd() {
    if (isTurnEndScheduled) return;
    isTurnEndScheduled = true;
    setImmediate(endTurn);
  }
  const context: ConnectionContext<M, S> = {
    application,
    limits,
    headerBlocks: new HeaderBlockReader(application, limits),
    held: 0,
    now: () => performance.now(),
    refused,
    crashed,
    flushLater(connection) {
      toFlush.push(connection);
      scheduleTurnEnd();
    },
    runLater(connection) {
      toRun.push(connection);
      scheduleTurnEnd();
    },
  };

  function tick() {
    const now = performance.now();
    for (const connection of connections) connection.tick(now);
  }

  function serveSocket(socket: net.Socket, prefaceMs: number) {
    const connection = new Connection(context, socket, prefaceMs);
    connections.add(connection);
    timer ??= setInterval(tick, TICK_MS).unref();
    socket.on('data', (chunk: Buffer) => connection.receive(chunk));
    socket.on('drain', () => connection.drained());
    // A peer that ends its half waits for nothing any more: HTTP/2 has GOAWAY for leaving politely.
    socket.on('end', () => {
      connection.wireClosed();
      socket.destroy();
    });
    socket.on('close', () => {
      connection.wireClosed();
      connections.delete(connection);
      if (connections.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    });
    if (isClosing) connection.leave('');
  }

  /** First thing on every socket: an error that nobody listens for ends the process. */
  function accept(socket: net.Socket): boolean {
    socket.on('error', () => socket.destroy());
    if (sockets.size >= limits.maxConnections) {
      refused('connections');
      socket.destroy();
      return false;
    }
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    return true;
  }

  const { tls: tlsSettings } = options;
  let clientName = tlsSettings?.clientName;
  let clientCa = tlsSettings?.clientCa;
  let server: net.Server;
  let secureServer: tls.Server | undefined;
  if (tlsSettings === undefined) {
    server = net.createServer({ noDelay: true }, (socket) => {
      if (accept(socket)) serveSocket(socket, limits.prefaceMs);
    });
  } else {
    // Handshake and preface together have the time that the preface has in cleartext.
    const handshakeMs = limits.prefaceMs / 2;
    secureServer = tls.createServer({
      ...serverTlsOptions(tlsSettings, handshakeMs),
      ticketKeys: randomBytes(TICKET_KEY_BYTES),
      noDelay: true,
    });
    server = secureServer;
    secureServer.on('connection', accept);
    secureServer.on('tlsClientError', (_error, socket) => {
      refused('tls_handshake');
      socket.destroy();
    });
    secureServer.on('secureConnection', (socket) => {
      socket.on('error', () => socket.destroy());
      const isNamed = clientName === undefined || isCertifiedFor(socket, clientName);
      // Node lets a client through that offers no protocol at all.
      if (socket.alpnProtocol !== 'h2' || !isNamed) {
        refused('tls_client');
        socket.destroy();
        return;
      }
      serveSocket(socket, limits.prefaceMs - handshakeMs);
    });
  }

  await listen(server, options.listen);
  server.on('error', crashed);
  const closed = new Promise<void>((resolve) => {
    server.once('close', () => resolve());
  });
  function stopListening() {
    if (isClosing) return;
    isClosing = true;
    server.close();
    // Sockets that have not come so far as to be a connection.
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
  }

  return {
    address: server.address()!,
    get connectionCount() {
      return sockets.size;
    },
    async drain(graceMs) {
      stopListening();
      for (const connection of connections) connection.leave('');
      const cut = setTimeout(() => {
        for (const connection of connections) connection.cut('');
      }, graceMs);
      await closed;
      clearTimeout(cut);
    },
    replaceTls(next) {
      if (secureServer === undefined) throw new Error('the server was started without TLS');
      if ((next.clientCa === undefined) !== (clientCa === undefined)) {
        throw new Error('whether callers need a certificate cannot change while the server runs');
      }
      const authorityChanged = String(next.clientCa) !== String(clientCa);
      secureServer.setSecureContext({
        ...secureContextOptions(next),
        // Tickets survive a swap, but not one that may have revoked their holder.
        ticketKeys: authorityChanged ? randomBytes(TICKET_KEY_BYTES) : secureServer.getTicketKeys(),
      });
      clientName = next.clientName;
      clientCa = next.clientCa;
    },
    async close() {
      stopListening();
      for (const connection of connections) connection.cut('');
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function isCertifiedFor(socket: tls.TLSSocket, name: string): boolean {
  return socket.getPeerX509Certificate()?.checkHost(name, { subject: 'never' }) !== undefined;
}
