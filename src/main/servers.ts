import type { AddressInfo } from 'node:net';
import type { ServerTls } from '../grpc/http2/tls';
import type { UnaryCall } from '../grpc/method';
import { MethodObserver } from '../grpc/method-observer';
import { SHOULD_RATE_LIMIT, shouldRateLimit } from '../grpc/rate-limit/rate-limit-service';
import { RESERVATIONS, reservationsService } from '../grpc/reservations/reservations-service';
import { type GrpcServer, type GrpcServerOptions, serveGrpc } from '../grpc/server/grpc-server';
import { healthService } from '../grpc/server/health-service';
import { reflectionService } from '../grpc/server/reflection-service';
import { type HttpServerOptions, serveHttp } from '../http/serve-http';
import type { HttpListener } from '../http/listener';
import type { ListenAddress, TcpAddress } from '../net/listen';
import { PARENT_FIELDS } from '../sinks/traces/parent';
import { turnClock } from './turn-scheduler';
import { SERVICE_ERRORS, type Statistics } from '../statistics/statistics';
import type { Connections } from '../streams/drain';
import type { Decide } from '../streams/ports/decide';
import type { Reservations } from '../streams/ports/reservations';
import type { Tracer } from '../streams/ports/tracer';
import type { Readiness } from '../streams/readiness';
import { asError } from '../text/thrown';
import { nameOfPeer } from '../text/host-port';
import { type App, showsValues } from './app';
import { GrpcTls } from '../sources/certificates';
import type { HttpRejections } from './http-rejections';
import type { RefusedConnections } from './refused-connections';

/** What the servers for decisions use of the service. */
export interface ServerInputs {
  readonly decide: Decide;
  readonly reservations: Reservations;
  /** What health checks answer. */
  readonly readiness: Readiness;
  /** Samples calls; undefined without tracing. */
  readonly tracer: Tracer | undefined;
  /** Is notified of what the HTTP server rejects. */
  readonly rejections: HttpRejections;
  /** Is notified of each gRPC connection that is refused. */
  readonly refusals: RefusedConnections;
}

/** The HTTP server: `/json`, reservations, and what probes ask for. */
export function httpServerOptions(
  { settings, statistics, log, onRejectedCall }: App,
  { decide, reservations, readiness, tracer, rejections }: ServerInputs,
): HttpServerOptions {
  const serviceErrors = statistics.counter(SERVICE_ERRORS);
  return {
    decide,
    reservations,
    readiness,
    onMalformed: (reason, caller) => {
      serviceErrors.add(1);
      if (log.isDebug) log.debug('malformed request rejected', { via: '/json', reason, peer: nameOfPeer(caller) });
      // The reason may contain values of the caller.
      const isShown = showsValues(settings, log);
      onRejectedCall(isShown ? reason : 'a body of /json is no valid RateLimitRequest', caller);
    },
    onRejected: rejections.of('HTTP'),
    log,
    tracer,
  };
}

/**
 * The gRPC server: the rate limit service, reservations, health checks and reflection.
 *
 * @param server the server of these options, once it is there
 */
export function grpcServerOptions(
  { settings, statistics, log, onRejectedCall }: App,
  { decide, reservations, readiness, tracer, refusals }: ServerInputs,
  server: () => GrpcServer | undefined,
): Omit<GrpcServerOptions, 'tls'> {
  const health = healthService(readiness.health$);
  function onInternalError(path: string, error: unknown): void {
    const message = 'internal error in the gRPC server; its call or connection was ended';
    log.error(message, { path, error: asError(error) });
  }
  function onMalformed(reason: string, peer: UnaryCall['peer'] = {}): void {
    if (log.isDebug) log.debug('malformed request rejected', { via: 'gRPC', reason, peer: nameOfPeer(peer) });
    onRejectedCall(reason, peer);
  }
  const now = turnClock();
  grpcGauges(statistics, server);
  return {
    limits: {
      maxConnections: settings.grpcMaxConnections,
      maxStreamingCallsPerConnection: settings.grpcMaxStreamingCallsPerConnection,
      maxStreamingCalls: settings.grpcMaxStreamingCalls,
      maxAgeMs: neverWhenZero(settings.grpcMaxConnectionAge),
      maxAgeGraceMs: neverWhenZero(settings.grpcMaxConnectionAgeGrace),
    },
    unary: new Map([
      [SHOULD_RATE_LIMIT, shouldRateLimit(decide, statistics, onMalformed)],
      ...reservationsService(reservations, onInternalError),
      ...health.unary,
    ]),
    observe: (path) => new MethodObserver(path, { statistics, now, tracer }),
    keepMetadata: tracer?.fields ?? (settings.decisionLog === 'off' ? undefined : PARENT_FIELDS),
    streaming: new Map([...health.streaming, ...reflectionService(SERVICES)]),
    onRejected: (kind, peer, reason) => {
      statistics.counter(`ratelimit_server.http2.${kind}`).add(1);
      if (kind === 'connections' || kind === 'file_descriptors') {
        refusals.grpcRefused(kind, server()?.connectionCount ?? 0, settings);
      }
      if (log.isDebug) log.debug('gRPC connection or stream rejected', { kind, reason, peer: nameOfPeer(peer) });
    },
    onInternalError,
    onUnknownMethod: onRejectedCall,
  };
}

/** They are 0 until the server is there. */
export function grpcGauges(statistics: Statistics, server: () => GrpcServer | undefined): void {
  statistics.gauge('ratelimit_server.grpc.connections', () => server()?.connectionCount ?? 0);
  statistics.gauge('ratelimit_server.grpc.open_calls', () => server()?.openStreams ?? 0);
  statistics.gauge('ratelimit_server.grpc.waiting_calls', () => server()?.waitingStreams ?? 0);
  statistics.gauge('ratelimit_server.grpc.held_bytes', () => server()?.heldBytes ?? 0);
}

/** The services that reflection lists, in addition to itself. */
const SERVICES = ['envoy.service.ratelimit.v3.RateLimitService', 'grpc.health.v1.Health', RESERVATIONS];

function neverWhenZero(milliseconds: number): number {
  return milliseconds === 0 ? Infinity : milliseconds;
}

/** Where gRPC is to be served. */
export function grpcAddress({ settings, manager }: App): ListenAddress {
  const { grpcUds, grpcHost: host, grpcPort: port } = settings;
  const inherited = manager.sockets.grpc;
  return grpcUds === undefined || inherited !== undefined ? { host, port, inherited } : { path: grpcUds };
}

/** Where HTTP is to be served. */
export function httpAddress({ settings: { host, port }, manager }: App): TcpAddress {
  return { host, port, inherited: manager.sockets.http };
}

/** Where the listeners for decisions are. */
export interface Addresses {
  /** The path of a Unix socket with `GRPC_UDS`. */
  readonly grpc: AddressInfo | string;
  readonly http: AddressInfo;
}

/** The listeners for decisions: gRPC and HTTP. They open when the service is ready and are closed one after the other. */
export class Listeners {
  readonly #app: App;
  readonly #inputs: ServerInputs;
  readonly #grpcOptions: Omit<GrpcServerOptions, 'tls'>;
  readonly #tls: GrpcTls | undefined;
  #grpc: GrpcServer | undefined;
  #http: HttpListener | undefined;

  constructor(app: App, inputs: ServerInputs) {
    this.#app = app;
    this.#inputs = inputs;
    this.#grpcOptions = grpcServerOptions(app, inputs, () => this.#grpc);
    this.#tls = app.settings.grpcServerUseTls ? new GrpcTls(app) : undefined;
  }

  /** @throws when a listener cannot open: a port that is in use, a certificate that cannot be used */
  async open(): Promise<Addresses> {
    const app = this.#app;
    const http = await serveHttp({ ...httpServerOptions(app, this.#inputs), ...httpAddress(app) });
    this.#http = http;
    app.listeners.add(() => http.abort());
    const tls: ServerTls | undefined = await this.#tls?.first();
    const grpc = await serveGrpc({ ...this.#grpcOptions, tls, listen: grpcAddress(app) });
    this.#grpc = grpc;
    app.listeners.add(() => void grpc.close());
    this.#tls?.follow(grpc);
    return { grpc: grpc.address, http: http.address };
  }

  get connections(): Connections {
    const servers = [this.#grpc, this.#http];
    return {
      open: servers.reduce((sum, server) => sum + (server?.connectionCount ?? 0), 0),
      accepted: servers.reduce((sum, server) => sum + (server?.acceptedConnections ?? 0), 0),
    };
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
}
