import type { Socket } from 'node:net';
import type { ServerTls } from '../grpc/http2/tls/tls-options';
import { type GrpcServer, adoptingGrpcServer } from '../grpc/server/grpc-server';
import { adoptingHttp } from '../http/serve-http';
import type { HttpServer } from '../http/server/http-server';
import { PUBLIC_LIMITS } from '../http/server/limits';
import type { Settings } from '../settings/settings';
import type { ListenerName } from '../workers/messages';
import { type DecisionServersOptions, grpcGauges, grpcServerOptions, httpServerOptions } from './decision-servers';
import type { RefusedConnections } from './refused-connections';

export interface WorkerServersOptions extends Omit<DecisionServersOptions, 'onGrpcRefused' | 'hasWorkers'> {
  /** Is notified of each connection that is refused. */
  readonly refusals: RefusedConnections;
  /** How many workers share the HTTP connections. */
  readonly workers: number;
}

/** The servers for decisions in a worker, whose connections the primary accepts. */
export class WorkerServers {
  readonly #grpc: GrpcServer;
  readonly #http: HttpServer;

  /** @throws when the certificate cannot be used */
  constructor(settings: Settings, tls: ServerTls | undefined, { refusals, workers, ...rest }: WorkerServersOptions) {
    const options: DecisionServersOptions = {
      ...rest,
      hasWorkers: true,
      onGrpcRefused: (bound) => refusals.grpcRefused(bound, this.#grpc.connectionCount, settings),
    };
    this.#http = adoptingHttp({
      ...httpServerOptions(options),
      limits: { maxConnections: Math.ceil(PUBLIC_LIMITS.maxConnections / workers) },
    });
    this.#grpc = adoptingGrpcServer(grpcServerOptions(options, settings, tls));
    grpcGauges(options.statistics, () => this.#grpc);
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
