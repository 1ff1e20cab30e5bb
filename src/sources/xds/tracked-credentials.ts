import type { Socket } from 'node:net';
import { ChannelCredentials } from '@grpc/grpc-js';

type SecureConnector = ReturnType<ChannelCredentials['_createSecureConnector']>;

/**
 * Credentials that show each socket before anything is said on it. A peer that accepts a connection and then says nothing keeps
 * grpc-js waiting for ever, and closing the channel leaves the socket open: whoever gives up has to destroy it. (The method
 * that is wrapped is an inner one of grpc-js; the tests with a silent peer tell when it changes.)
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
    // oxlint-disable-next-line no-underscore-dangle -- the name that grpc-js gave it
    return this.#inner._isSecure();
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(...args: Parameters<ChannelCredentials['_createSecureConnector']>): SecureConnector {
    // oxlint-disable-next-line no-underscore-dangle -- the name that grpc-js gave it
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
