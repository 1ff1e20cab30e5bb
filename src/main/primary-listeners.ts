import type { Socket } from 'node:net';
import { unavailableHttp } from '../http/serve-unavailable';
import type { HttpServer } from '../http/server/http-server';
import { GRPC_BACKLOG } from '../grpc/server/grpc-server';
import type { Readiness } from '../streams/readiness';
import { asError } from '../text/thrown';
import { type Acceptor, acceptConnections } from '../workers/primary/accept-connections';
import { ConnectionDispatch } from '../workers/primary/connection-dispatch';
import type { WorkerPool } from '../workers/primary/worker-pool';
import { nameOfPeer } from './address-text';
import type { App } from './app';
import type { HttpRejections } from './http-rejections';
import { type Addresses, grpcAddress, httpAddress } from './servers';
import type { RefusedConnections } from './refused-connections';

export interface PrimaryListenersOptions {
  readonly pool: WorkerPool;
  /** What probes are answered while no worker is ready. */
  readonly readiness: Readiness;
  readonly rejections: HttpRejections;
  readonly refusals: RefusedConnections;
}

/** The listeners for decisions of a primary: their connections are given to the workers. */
export class PrimaryListeners {
  readonly #app: App;
  readonly #options: PrimaryListenersOptions;
  readonly #dispatch: ConnectionDispatch;
  readonly #unavailable: HttpServer;
  #grpc: Acceptor | undefined;
  #http: Acceptor | undefined;

  constructor(app: App, options: PrimaryListenersOptions) {
    const { pool, readiness, rejections } = options;
    this.#app = app;
    this.#options = options;
    this.#unavailable = unavailableHttp({
      health: () => readiness.health,
      checks: () => readiness.checks,
      onRejected: rejections.of('HTTP'),
      log: app.log,
    });
    this.#dispatch = new ConnectionDispatch({
      pool,
      maxGrpcConnections: app.settings.grpcMaxConnections,
      serveUnavailable: (socket) => this.#unavailable.adopt(socket),
      onRefused: (listener, bound, socket) => this.#refused(listener, bound, socket),
    });
  }

  /** @throws when a listener cannot open: a port that is in use */
  async open(): Promise<Addresses> {
    const dispatch = this.#dispatch;
    const onError = (error: Error): void => this.#app.log.error('a listener has failed', { error: asError(error) });
    const http = await acceptConnections({
      at: httpAddress(this.#app),
      onConnection: (socket) => dispatch.accepted('http', socket),
      onError,
    });
    this.#http = http;
    const grpc = await acceptConnections({
      at: grpcAddress(this.#app),
      backlog: GRPC_BACKLOG,
      onConnection: (socket) => dispatch.accepted('grpc', socket),
      onError,
    });
    this.#grpc = grpc;
    return { grpc: grpc.address, http: http.address };
  }

  /** Accepts no more gRPC connections; resolves when none is on its way to a worker. */
  async closeGrpc(): Promise<void> {
    this.#grpc?.close();
    await this.#dispatch.settled('grpc');
  }

  /** The same for HTTP connections. */
  async closeHttp(): Promise<void> {
    this.#http?.close();
    await this.#dispatch.settled('http');
  }

  /** Ends what is left, when all workers have exited. */
  async close(): Promise<void> {
    this.#dispatch.close();
    await this.#unavailable.close();
  }

  /** As the servers do in a single process. */
  #refused(listener: 'grpc' | 'http', bound: 'connections' | 'file_descriptors', socket: Socket): void {
    const { statistics, settings, log } = this.#app;
    const { rejections, refusals } = this.#options;
    if (listener === 'http') {
      rejections.of('HTTP')('connections', socket, 'few file descriptors are left');
      return;
    }
    statistics.counter(`ratelimit_server.http2.${bound}`).add(1);
    refusals.grpcRefused(bound, this.#dispatch.count('grpc'), settings);
    if (log.isDebug) {
      log.debug('gRPC connection or stream rejected', { kind: bound, reason: '', peer: nameOfPeer(socket) });
    }
  }
}
