import type { Socket } from 'node:net';
import { ChannelCredentials } from '@grpc/grpc-js';

type SecureConnector = ReturnType<ChannelCredentials['_createSecureConnector']>;

/**
 * Credentials that report each socket before the handshake on it. A peer that accepts a connection and then sends nothing keeps
 * grpc-js waiting forever, and closing the channel leaves the socket open: after a timeout the caller has to destroy it. The
 * wrapped method is internal to grpc-js; the tests with a silent peer fail when it changes.
 */
export class TrackedCredentials extends ChannelCredentials {
  readonly #inner: ChannelCredentials;
  readonly #onSocket: (socket: Socket) => void;

  constructor(inner: ChannelCredentials, onSocket: (socket: Socket) => void) {
    super();
    this.#inner = inner;
    this.#onSocket = onSocket;
  }

  override _isSecure(): boolean {
    // oxlint-disable-next-line no-underscore-dangle -- the name is that of grpc-js
    return this.#inner._isSecure();
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(...args: Parameters<ChannelCredentials['_createSecureConnector']>): SecureConnector {
    // oxlint-disable-next-line no-underscore-dangle -- the name is that of grpc-js
    const connector = this.#inner._createSecureConnector(...args);
    return {
      connect: (socket) => {
        this.#onSocket(socket);
        return connector.connect(socket);
      },
      waitForReady: () => connector.waitForReady(),
      getCallCredentials: () => connector.getCallCredentials(),
      destroy: () => connector.destroy(),
    };
  }
}
