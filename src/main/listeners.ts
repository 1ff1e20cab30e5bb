import type { AddressInfo } from 'node:net';
import { type ListeningGrpcServer, serveGrpc } from '../grpc/server/grpc-server';
import { serveHttp } from '../http/serve-http';
import type { ListeningHttpServer } from '../http/server/http-server';
import type { ListenAddress, TcpAddress } from '../net/listen';
import type { LoadedSettings } from '../settings/read-settings';
import { type DecisionServersOptions, grpcGauges, grpcServerOptions, httpServerOptions } from './decision-servers';
import { GrpcTls } from './grpc-certificates';
import type { RefusedConnections } from './refused-connections';

/** Where the listeners for decisions are. */
export interface Addresses {
  /** The path of a Unix socket with `GRPC_UDS`. */
  readonly grpc: AddressInfo | string;
  readonly http: AddressInfo;
}

export interface ListenersOptions extends Omit<DecisionServersOptions, 'onGrpcRefused' | 'hasWorkers'> {
  /** Is notified of each connection that is refused. */
  readonly refusals: RefusedConnections;
}

/** The listeners for decisions: gRPC and HTTP. They open when the service is ready and are closed one after the other. */
export class Listeners {
  readonly #reading: LoadedSettings;
  readonly #options: DecisionServersOptions;
  #grpc: ListeningGrpcServer | undefined;
  #http: ListeningHttpServer | undefined;
  readonly #tls: GrpcTls | undefined;

  constructor(reading: LoadedSettings, { refusals, ...options }: ListenersOptions) {
    const { settings } = reading;
    const { statistics, log } = options;
    this.#reading = reading;
    this.#options = {
      ...options,
      hasWorkers: false,
      onGrpcRefused: (bound) => refusals.grpcRefused(bound, this.#grpc?.connectionCount ?? 0, settings),
    };
    this.#tls = settings.grpcServerUseTls ? new GrpcTls(reading, { statistics, log }) : undefined;
    statistics.gauge('certs.expires_at', () => this.#tls?.expiresAt ?? 0);
    grpcGauges(statistics, () => this.#grpc);
  }

  /** @throws when a listener cannot open: a port that is in use, a certificate that cannot be used */
  async open(): Promise<Addresses> {
    this.#http = await serveHttp({ ...httpServerOptions(this.#options), ...httpAddress(this.#reading) });
    this.#grpc = await this.#openGrpc();
    return { grpc: this.#grpc.address, http: this.#http.address };
  }

  /** Accepts no new gRPC calls and ends streams; resolves when the calls in flight are answered, or after `grace` milliseconds. */
  async drainGrpc(grace: number): Promise<void> {
    this.#tls?.close();
    await this.#grpc?.drain(grace);
  }

  /** Accepts no new HTTP requests; resolves when those in flight are answered. */
  async closeHttp(): Promise<void> {
    await this.#http?.close();
  }

  async #openGrpc(): Promise<ListeningGrpcServer> {
    const server = await serveGrpc({
      ...grpcServerOptions(this.#options, this.#reading.settings, await this.#tls?.first()),
      listen: grpcAddress(this.#reading),
    });
    this.#tls?.follow(server);
    return server;
  }
}

/** Where gRPC is to be served. */
export function grpcAddress({ settings, manager }: LoadedSettings): ListenAddress {
  const { grpcUds, grpcHost: host, grpcPort: port } = settings;
  const inherited = manager.sockets.grpc;
  return grpcUds === undefined || inherited !== undefined ? { host, port, inherited } : { path: grpcUds };
}

/** Where HTTP is to be served. */
export function httpAddress({ settings: { host, port }, manager }: LoadedSettings): TcpAddress {
  return { host, port, inherited: manager.sockets.http };
}
