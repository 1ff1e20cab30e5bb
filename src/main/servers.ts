import type { AddressInfo } from 'node:net';
import type { ServerTls } from '../grpc/http2/tls';
import type { UnaryCall } from '../grpc/method';
import { MethodObserver } from '../grpc/method-observer';
import { KUADRANT, rateLimitMethods } from '../grpc/rate-limit/rate-limit-service';
import { kuadrantReservations } from '../grpc/reservations/kuadrant-reservations';
import { RESERVATIONS, reservationsService } from '../grpc/reservations/reservations-service';
import { type GrpcServer, type GrpcServerOptions, adoptingGrpcServer, serveGrpc } from '../grpc/server/grpc-server';
import { healthService } from '../grpc/server/health-service';
import { reflectionService } from '../grpc/server/reflection-service';
import { PUBLIC_LIMITS } from '../http/limits';
import type { HttpListener } from '../http/listener';
import { type HttpServerOptions, adoptingHttp, serveHttp } from '../http/serve-http';
import type { ListenAddress, TcpAddress } from '../net/listen';
import { PARENT_FIELDS } from '../sinks/traces/parent';
import type { ListenerCertificates } from '../sources/certificates';
import { SERVICE_ERRORS, type Statistics } from '../statistics/statistics';
import type { Connections } from '../streams/drain';
import type { Readiness } from '../streams/readiness';
import { nameOfPeer } from '../text/host-port';
import { asError } from '../text/thrown';
import type { App } from './app';
import { type DecisionPath, showsValues } from './decision-path';
import { processCount } from './process';
import type { Serving } from './life';
import type { Rejections } from './rejections';
import { turnClock } from './turn-scheduler';

/** What the servers for decisions use of the process. */
export interface ServerInputs extends Pick<DecisionPath, 'decide' | 'reservations' | 'tracing'> {
  /** What health checks answer. */
  readonly readiness: Readiness;
  readonly rejections: Rejections;
}

/** The HTTP server: `/json`, checks and reports, reservations, and what probes ask for. */
function httpServerOptions(
  { settings, statistics, log, onRejectedCall }: App,
  { decide, reservations, readiness, tracing: { tracer }, rejections }: ServerInputs,
): HttpServerOptions {
  const serviceErrors = statistics.counter(SERVICE_ERRORS);
  return {
    decide,
    reservations,
    readiness,
    onMalformed: (reason, caller, via) => {
      serviceErrors.add(1);
      if (log.isDebug) log.debug('malformed request rejected', { via, reason, peer: nameOfPeer(caller) });
      // The reason may contain values of the caller.
      const isShown = showsValues(settings, log);
      onRejectedCall(isShown ? reason : `a body of ${via} is no valid RateLimitRequest`, caller);
    },
    onRejected: rejections.http('HTTP'),
    log,
    tracer,
  };
}

/**
 * The gRPC server: the rate limit service, reservations, health checks and reflection.
 *
 * @param server the server of these options, once it is there
 */
function grpcServerOptions(
  { settings, statistics, log, onRejectedCall }: App,
  { decide, reservations, readiness, tracing: { tracer }, rejections }: ServerInputs,
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
      ...rateLimitMethods(decide, statistics, onMalformed),
      ...kuadrantReservations({ decide, reservations }, onInternalError),
      ...reservationsService(reservations, onInternalError),
      ...health.unary,
    ]),
    observe: (path) => new MethodObserver(path, { statistics, now, tracer }),
    keepMetadata: tracer?.fields ?? (settings.decisionLog === 'off' ? undefined : PARENT_FIELDS),
    streaming: new Map([...health.streaming, ...reflectionService(SERVICES)]),
    onRejected: (kind, peer, reason) => {
      rejections.grpc({ kind, reason, peer, open: server()?.connectionCount ?? 0 });
    },
    onInternalError,
    onUnknownMethod: onRejectedCall,
  };
}

/** Gauges of the gRPC server, which are 0 until there is one. */
export function grpcGauges(statistics: Statistics, server: () => GrpcServer | undefined): void {
  statistics.gauge('ratelimit_server.grpc.connections', () => server()?.connectionCount ?? 0);
  statistics.gauge('ratelimit_server.grpc.open_calls', () => server()?.openStreams ?? 0);
  statistics.gauge('ratelimit_server.grpc.waiting_calls', () => server()?.waitingStreams ?? 0);
  statistics.gauge('ratelimit_server.grpc.held_bytes', () => server()?.heldBytes ?? 0);
}

/** The services that reflection lists, in addition to itself. */
const SERVICES = ['envoy.service.ratelimit.v3.RateLimitService', 'grpc.health.v1.Health', KUADRANT, RESERVATIONS];

function neverWhenZero(milliseconds: number): number {
  return milliseconds === 0 ? Infinity : milliseconds;
}

/** Where gRPC is to be served. */
export function grpcAddress({ settings, nameOf, manager }: App): ListenAddress {
  const { grpcUds, grpcHost: host, grpcPort: port } = settings;
  const inherited = manager.sockets.grpc;
  if (grpcUds !== undefined && inherited === undefined) return { path: grpcUds, settings: nameOf('grpcUds') };
  return { host, port, inherited, settings: `${nameOf('grpcHost')}, ${nameOf('grpcPort')}` };
}

/** Where HTTP is to be served. */
export function httpAddress({ settings: { host, port }, nameOf, manager }: App): TcpAddress {
  return { host, port, inherited: manager.sockets.http, settings: `${nameOf('host')}, ${nameOf('port')}` };
}

/** The servers for decisions: gRPC and HTTP. They open when the service is ready and are closed one after the other. */
export class Servers {
  readonly #app: App;
  readonly #inputs: ServerInputs;
  readonly #grpcOptions: Omit<GrpcServerOptions, 'tls'>;
  readonly #tls: ListenerCertificates | undefined;
  #grpc: GrpcServer | undefined;
  #http: HttpListener | undefined;

  /** @param tls the certificates of the gRPC server, if it listens itself; undefined: it speaks cleartext */
  constructor(app: App, inputs: ServerInputs, tls?: ListenerCertificates) {
    this.#app = app;
    this.#inputs = inputs;
    this.#grpcOptions = grpcServerOptions(app, inputs, () => this.#grpc);
    this.#tls = tls;
  }

  /** @throws when a listener cannot open: a port that is in use, a certificate that cannot be used */
  async listen(): Promise<Pick<Serving, 'grpc'> & { readonly http: AddressInfo }> {
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

  /**
   * Serves connections that the primary accepts.
   *
   * @throws when the certificate cannot be used
   */
  adopting(tls: ServerTls | undefined): { readonly grpc: GrpcServer; readonly http: HttpListener } {
    // The workers share the HTTP connections.
    const maxConnections = Math.ceil(PUBLIC_LIMITS.maxConnections / processCount(this.#app.settings.workers));
    this.#http = adoptingHttp({ ...httpServerOptions(this.#app, this.#inputs), limits: { maxConnections } });
    this.#grpc = adoptingGrpcServer({ ...this.#grpcOptions, tls });
    return { grpc: this.#grpc, http: this.#http };
  }

  /** New connections are served with these certificates. */
  replaceTls(tls: ServerTls): void {
    this.#grpc?.replaceTls(tls);
  }

  get connections(): Connections {
    const servers = [this.#grpc, this.#http];
    return {
      open: servers.reduce((sum, server) => sum + (server?.connectionCount ?? 0), 0),
      accepted: servers.reduce((sum, server) => sum + (server?.acceptedConnections ?? 0), 0),
    };
  }

  /**
   * Accepts no new gRPC calls and ends streams; resolves when the calls in flight are answered, or after `grace`
   * milliseconds.
   */
  async drainGrpc(grace: number): Promise<void> {
    this.#tls?.close();
    await this.#grpc?.drain(grace);
  }

  /** Accepts no new HTTP requests; resolves when those in flight are answered. */
  async closeHttp(): Promise<void> {
    await this.#http?.close();
  }
}
