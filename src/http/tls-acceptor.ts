import type { Socket } from 'node:net';
import tls from 'node:tls';
import { peerAddress } from '../text/host-port';
import type { HttpLimits, HttpTimeouts, OnHttpRejected } from './limits';

/** What a listener presents, PEM. */
export interface HttpTls {
  readonly cert: string;
  readonly key: string;
}

export interface TlsAcceptorOptions {
  readonly tls: HttpTls;
  readonly limits: Pick<HttpLimits, 'maxConnections'>;
  readonly timeouts: Pick<HttpTimeouts, 'headers'>;
  /** Receives connections after their handshakes. */
  readonly accept: (socket: Socket) => void;
  readonly onRejected: OnHttpRejected;
}

/** Accepts connections with TLS. Its certificate can be replaced while it listens. */
export class TlsAcceptor {
  readonly server: tls.Server;
  /** Connections whose handshake has not ended, by the address of the peer, the oldest first. */
  readonly #handshakes = new Map<string | undefined, Socket>();

  constructor({ tls: presented, limits, timeouts, accept, onRejected }: TlsAcceptorOptions) {
    this.server = tls.createServer({ ...contextOf(presented), noDelay: true, handshakeTimeout: timeouts.headers });
    this.server.on('connection', (socket: Socket) => {
      const [oldest] = this.#handshakes.values();
      if (this.#handshakes.size >= limits.maxConnections) oldest?.destroy();
      const peer = peerAddress(socket);
      this.#handshakes.set(peer, socket);
      socket.once('close', () => this.#handshakes.get(peer) === socket && this.#handshakes.delete(peer));
    });
    this.server.on('secureConnection', (socket) => {
      this.#handshakes.delete(peerAddress(socket));
      accept(socket);
    });
    this.server.on('tlsClientError', (error, socket) => {
      onRejected('tls_handshake', socket, error.message);
      socket.destroy();
    });
  }

  /** @throws when they cannot be used; the previous ones then stay */
  replace(next: HttpTls): void {
    this.server.setSecureContext(contextOf(next));
  }

  /** For the end of the listener, which waits for its connections. */
  endHandshakes(): void {
    for (const socket of this.#handshakes.values()) socket.destroy();
  }
}

/** All options of a context: `setSecureContext` resets those that are absent. */
function contextOf({ cert, key }: HttpTls): tls.SecureContextOptions {
  return { cert, key, minVersion: 'TLSv1.2' };
}
