import type { Socket } from 'node:net';
import type { ServerTls } from '../grpc/http2/tls/tls-options';
import { type GrpcServer, adoptingGrpcServer } from '../grpc/server/grpc-server';
import { adoptingHttp } from '../http/serve-http';
import type { HttpServer } from '../http/server/http-server';
import { PUBLIC_LIMITS } from '../http/server/limits';
import type { ListenerName } from '../workers/messages';
import type { App } from './app';
import { type ServerInputs, grpcServerOptions, httpServerOptions } from './servers';

export interface WorkerServerInputs extends ServerInputs {
  readonly tls: ServerTls | undefined;
  /** How many workers share the HTTP connections. */
  readonly workers: number;
}

/** The servers for decisions in a worker, whose connections the primary accepts. */
export class WorkerServers {
  readonly #grpc: GrpcServer;
  readonly #http: HttpServer;

  /** @throws when the certificate cannot be used */
  constructor(app: App, { tls, workers, ...inputs }: WorkerServerInputs) {
    const limits = { maxConnections: Math.ceil(PUBLIC_LIMITS.maxConnections / workers) };
    this.#http = adoptingHttp({ ...httpServerOptions(app, inputs), limits });
    this.#grpc = adoptingGrpcServer({ ...grpcServerOptions(app, inputs, () => this.#grpc), tls });
  }

  adopt(listener: ListenerName, socket: Socket): void {
    if (listener === 'grpc') this.#grpc.adopt(socket);
    else this.#http.adopt(socket);
  }

  replaceTls(tls: ServerTls): void {
    this.#grpc.replaceTls(tls);
  }

  /** Ends streams; resolves when the calls in flight are answered, or after `grace` milliseconds. */
  drainGrpc(grace: number): Promise<void> {
    return this.#grpc.drain(grace);
  }

  /** Resolves when the HTTP requests in flight are answered. */
  closeHttp(): Promise<void> {
    return this.#http.close();
  }
}
