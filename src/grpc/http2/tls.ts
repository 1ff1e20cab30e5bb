import type { OnRejected, Peer } from './limits';
import { constants, randomBytes } from 'node:crypto';
import type net from 'node:net';
import tls from 'node:tls';
import type { SecureContextOptions, TlsOptions } from 'node:tls';

type Pem = string | Buffer;

/** The certificate of the server, and what it requires of its clients. */
export interface ServerTls {
  /** The certificate chain, PEM. */
  readonly cert: Pem;
  /** The private key, PEM. */
  readonly key: Pem;
  /** The authority that must have issued clients' certificates, PEM. If absent, clients need no certificate. */
  readonly clientCa?: Pem | undefined;
  /** A DNS name that clients' certificates must carry. Requires {@link clientCa}. */
  readonly clientName?: string | undefined;
  /** The 48 bytes that encrypt session tickets, for servers that share them; if absent, the server chooses its own. */
  readonly ticketKeys?: Buffer | undefined;
}

/**
 * RFC 9113, appendix A, prohibits the suites of TLS 1.2 without forward secrecy or AEAD. All suites of TLS 1.3 have
 * both.
 */
const CIPHERS = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':');

/** All options of a context: `setSecureContext` resets those that are absent. */
function secureContextOptions({ cert, key, clientCa }: ServerTls): SecureContextOptions {
  return {
    cert,
    key,
    ...(clientCa !== undefined && { ca: clientCa }),
    minVersion: 'TLSv1.2',
    ciphers: CIPHERS,
    honorCipherOrder: true,
    // RFC 9113, section 9.2.1: no renegotiation.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    // By default, Node takes the command line, and servers that share ticket keys may differ in theirs.
    sessionIdContext: 'weir',
  };
}

function serverTlsOptions(options: ServerTls, handshakeTimeout: number): TlsOptions {
  return {
    ...secureContextOptions(options),
    ALPNProtocols: ['h2'],
    handshakeTimeout,
    requestCert: options.clientCa !== undefined,
    rejectUnauthorized: true,
  };
}

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

/**
 * Accepts TLS connections that speak HTTP/2, and rejects the others. Its certificate can be replaced while it listens.
 */
export class TlsListener {
  readonly server: tls.Server;
  readonly #onSecureSocket: (socket: tls.TLSSocket) => void;
  readonly #onRejected: OnRejected;
  /**
   * Sockets that were closed when they were accepted, the failed handshakes of which are no rejections of their own.
   */
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

  /**
   * Session tickets remain valid, unless the authority changes: the new one may have revoked a ticket holder's
   * certificate.
   */
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

/** The socket of which a TLS socket reads; undefined for another one. */
export function socketBelow(socket: net.Socket): net.Socket | null | undefined {
  const { _parent: below } = socket as { _parent?: net.Socket | null };
  return below;
}

function handshakeFailure(error: Error): string {
  // OpenSSL's short text; the message has the place in its source, too.
  const { code, reason } = error as { code?: string; reason?: string };
  if (code === 'ECONNRESET') return 'the client has disconnected; it may not trust the certificate';
  return reason ?? error.message;
}
