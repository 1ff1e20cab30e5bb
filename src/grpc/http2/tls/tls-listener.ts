import { randomBytes } from 'node:crypto';
import type net from 'node:net';
import tls from 'node:tls';
import type { OnRejected, Peer } from '../limits/rejections';
import { type ServerTls, secureContextOptions, serverTlsOptions } from './tls-options';

const TICKET_KEY_BYTES = 48;

export interface TlsListenerOptions {
  readonly tls: ServerTls;
  /** How long a handshake may take. */
  readonly handshakeMs: number;
  /** Called for every socket, before its handshake. Returns false if it was closed instead. */
  readonly onSocket: (socket: net.Socket) => boolean;
  /** Called after a handshake that agreed on HTTP/2 and, where it is required, presented the client's certificate. */
  readonly onSecureSocket: (socket: tls.TLSSocket) => void;
  readonly onRejected: OnRejected;
}

/** Accepts TLS connections that speak HTTP/2, and rejects the others. Its certificate can be replaced while it listens. */
export class TlsListener {
  readonly server: tls.Server;
  readonly #onSecureSocket: (socket: tls.TLSSocket) => void;
  readonly #onRejected: OnRejected;
  /** Sockets that were closed when they were accepted, the failed handshakes of which are no rejections of their own. */
  readonly #refused = new WeakSet<Peer>();
  #clientName: string | undefined;
  #clientCa: ServerTls['clientCa'];

  constructor(options: TlsListenerOptions) {
    this.#onSecureSocket = options.onSecureSocket;
    this.#onRejected = options.onRejected;
    this.#clientName = options.tls.clientName;
    this.#clientCa = options.tls.clientCa;
    this.server = tls.createServer({
      ...serverTlsOptions(options.tls, options.handshakeMs),
      ticketKeys: options.tls.ticketKeys ?? randomBytes(TICKET_KEY_BYTES),
      noDelay: true,
    });
    this.server.on('connection', (socket) => {
      // Node reads the address once and keeps it; a socket that is closed has none.
      void socket.remoteAddress;
      if (!options.onSocket(socket)) this.#refused.add(socket);
    });
    this.server.on('tlsClientError', (error, socket) => {
      const below = socketBelow(socket);
      if (below && this.#refused.has(below)) return;
      this.#onRejected('tls_handshake', peerOf(socket), handshakeFailure(error));
      socket.destroy();
    });
    this.server.on('secureConnection', (socket) => this.#onHandshake(socket));
  }

  /** Throws if the new certificate, key or authority cannot be used; the previous ones then stay. */
  replace(next: ServerTls): void {
    if ((next.clientCa === undefined) !== (this.#clientCa === undefined)) {
      throw new Error('whether clients need a certificate cannot change while the server is running');
    }
    this.server.setSecureContext({
      ...secureContextOptions(next),
      ticketKeys: next.ticketKeys ?? this.#nextTicketKeys(next),
    });
    this.#clientName = next.clientName;
    this.#clientCa = next.clientCa;
  }

  /** Session tickets remain valid, unless the authority changes: the new one may have revoked a ticket holder's certificate. */
  #nextTicketKeys({ clientCa }: ServerTls): Buffer {
    const isNewAuthority = String(clientCa) !== String(this.#clientCa);
    return isNewAuthority ? randomBytes(TICKET_KEY_BYTES) : this.server.getTicketKeys();
  }

  #onHandshake(socket: tls.TLSSocket): void {
    socket.on('error', () => socket.destroy());
    // Node accepts a client that offers no ALPN protocol at all.
    if (socket.alpnProtocol !== 'h2') return this.#reject(socket, 'the client does not offer HTTP/2 (ALPN h2)');
    if (this.#clientName !== undefined && !isCertifiedFor(socket, this.#clientName)) {
      return this.#reject(socket, `the certificate of the client does not carry the name ${this.#clientName}`);
    }
    this.#onSecureSocket(socket);
  }

  #reject(socket: tls.TLSSocket, reason: string): void {
    this.#onRejected('tls_client', socket, reason);
    socket.destroy();
  }
}

function isCertifiedFor(socket: tls.TLSSocket, name: string): boolean {
  return socket.getPeerX509Certificate()?.checkHost(name, { subject: 'never' }) !== undefined;
}

/** The TLS socket of a client that has disconnected has no address, but the socket below it does. */
function peerOf(socket: tls.TLSSocket): Peer {
  return socket.remoteAddress === undefined ? (socketBelow(socket) ?? socket) : socket;
}

function socketBelow(socket: tls.TLSSocket): Peer | null | undefined {
  const { _parent: below } = socket as { _parent?: Peer | null };
  return below;
}

function handshakeFailure(error: Error): string {
  // OpenSSL's short text; the message has the place in its source, too.
  const { code, reason } = error as { code?: string; reason?: string };
  if (code === 'ECONNRESET') return 'the client has disconnected; it may not trust the certificate';
  return reason ?? error.message;
}
