import { randomBytes } from 'node:crypto';
import type net from 'node:net';
import tls from 'node:tls';
import type { Rejection } from '../limits/rejections';
import { type ServerTls, secureContextOptions, serverTlsOptions } from './tls-options';

const TICKET_KEY_BYTES = 48;

export interface TlsListenerOptions {
  readonly tls: ServerTls;
  /** How long a handshake may take. */
  readonly handshakeMs: number;
  /** Called for every socket, before its handshake. */
  readonly onSocket: (socket: net.Socket) => void;
  /** Called after a handshake that agreed on HTTP/2 and, where it is required, presented the client's certificate. */
  readonly onSecureSocket: (socket: tls.TLSSocket) => void;
  readonly onRejected: (kind: Rejection) => void;
}

/** Accepts TLS connections that speak HTTP/2, and rejects the others. Its certificate can be replaced while it listens. */
export class TlsListener {
  readonly server: tls.Server;
  readonly #onSecureSocket: (socket: tls.TLSSocket) => void;
  readonly #onRejected: (kind: Rejection) => void;
  #clientName: string | undefined;
  #clientCa: ServerTls['clientCa'];

  constructor(options: TlsListenerOptions) {
    this.#onSecureSocket = options.onSecureSocket;
    this.#onRejected = options.onRejected;
    this.#clientName = options.tls.clientName;
    this.#clientCa = options.tls.clientCa;
    this.server = tls.createServer({
      ...serverTlsOptions(options.tls, options.handshakeMs),
      ticketKeys: randomBytes(TICKET_KEY_BYTES),
      noDelay: true,
    });
    this.server.on('connection', options.onSocket);
    this.server.on('tlsClientError', (_error, socket) => {
      this.#onRejected('tls_handshake');
      socket.destroy();
    });
    this.server.on('secureConnection', (socket) => this.#onHandshake(socket));
  }

  /** Throws if the new certificate, key or authority cannot be used; the previous ones then stay. */
  replace(next: ServerTls): void {
    if ((next.clientCa === undefined) !== (this.#clientCa === undefined)) {
      throw new Error('whether clients need a certificate cannot change while the server is running');
    }
    const isNewAuthority = String(next.clientCa) !== String(this.#clientCa);
    this.server.setSecureContext({
      ...secureContextOptions(next),
      // Session tickets remain valid, unless the authority changes: the new one may have revoked a ticket holder's certificate.
      ticketKeys: isNewAuthority ? randomBytes(TICKET_KEY_BYTES) : this.server.getTicketKeys(),
    });
    this.#clientName = next.clientName;
    this.#clientCa = next.clientCa;
  }

  #onHandshake(socket: tls.TLSSocket): void {
    socket.on('error', () => socket.destroy());
    const isNamed = this.#clientName === undefined || isCertifiedFor(socket, this.#clientName);
    // Node accepts a client that offers no ALPN protocol at all.
    if (socket.alpnProtocol === 'h2' && isNamed) {
      this.#onSecureSocket(socket);
      return;
    }
    this.#onRejected('tls_client');
    socket.destroy();
  }
}

function isCertifiedFor(socket: tls.TLSSocket, name: string): boolean {
  return socket.getPeerX509Certificate()?.checkHost(name, { subject: 'never' }) !== undefined;
}
