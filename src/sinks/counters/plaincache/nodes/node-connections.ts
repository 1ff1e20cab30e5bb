import type { ConnectionOptions } from 'node:tls';
import type { Server } from '../../server-address';
import type { ReplyReader } from '../protocol/reply-reader';
import { Connection, ConnectionFailure } from './connection';

export interface NodeConnectionsOptions {
  readonly server: Server;
  /** The options of a TLS connection; undefined: without TLS. */
  readonly tls: (() => ConnectionOptions) | undefined;
  /** How many idle connections are kept: PLAINCACHE_MAX_IDLE_CONNS. */
  readonly maxIdle: number;
  /** The time that each part of an exchange may take, connecting included, in milliseconds. */
  readonly timeout: number;
}

/** The connections to one server. */
export class NodeConnections {
  readonly #options: NodeConnectionsOptions;
  /** The last one that was used is used next, so that surplus ones stay idle until the server closes them. */
  readonly #idle: Connection[] = [];
  readonly #busy = new Set<Connection>();
  #isClosed = false;

  constructor(options: NodeConnectionsOptions) {
    this.#options = options;
  }

  /** A request that changes nothing. It is sent again when the server has closed the idle connection in the meantime. */
  async read<T>(request: string, newReader: () => ReplyReader<T>): Promise<T> {
    const idle = this.#takeIdle();
    if (idle !== undefined) {
      try {
        return await this.#exchange(idle, request, newReader());
      } catch (error) {
        if (!(error instanceof ConnectionFailure) || error.hasAnswered || error.isTimeout) throw error;
      }
    }
    return this.#exchange(this.#open(), request, newReader());
  }

  /** A request that changes counters: never sent a second time, because the server may have applied it. */
  write<T>(request: string, reader: ReplyReader<T>): Promise<T> {
    return this.#exchange(this.#takeIdle() ?? this.#open(), request, reader);
  }

  /** Closes all connections; exchanges in flight fail. */
  close(): void {
    this.#isClosed = true;
    for (const connection of [...this.#idle.splice(0), ...this.#busy]) connection.close();
  }

  async #exchange<T>(connection: Connection, request: string, reader: ReplyReader<T>): Promise<T> {
    this.#busy.add(connection);
    connection.setIdle(false);
    try {
      return await connection.exchange(request, reader, this.#options.timeout);
    } finally {
      this.#busy.delete(connection);
      this.#giveBack(connection);
    }
  }

  #giveBack(connection: Connection): void {
    if (!connection.isUsable) return;
    if (this.#isClosed || this.#idle.length >= this.#options.maxIdle) return connection.close();
    connection.setIdle(true);
    this.#idle.push(connection);
  }

  #takeIdle(): Connection | undefined {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined || connection.isUsable) return connection;
    }
  }

  #open(): Connection {
    const { server, tls } = this.#options;
    return new Connection(server, tls?.());
  }
}
