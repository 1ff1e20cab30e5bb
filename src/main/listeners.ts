import type { AddressInfo } from 'node:net';
import { observedMethods } from '../grpc/observed-methods';
import { SHOULD_RATE_LIMIT, shouldRateLimit } from '../grpc/rate-limit/rate-limit-service';
import { healthService } from '../grpc/server/health/health-service';
import { reflectionService } from '../grpc/server/reflection/reflection-service';
import { type GrpcServer, serveGrpc } from '../grpc/server/grpc-server';
import type { HttpServer } from '../http/server/http-server';
import { serveHttp } from '../http/serve-http';
import { openFilesLimit } from '../net/open-files';
import type { LoadedSettings } from '../settings/read-settings';
import type { Settings } from '../settings/settings';
import { turnClock } from '../sources/event-loop-turns';
import { SERVICE_ERRORS, type Statistics } from '../statistics/statistics';
import type { Log } from '../streams/ports/log';
import type { Tracer } from '../streams/ports/tracer';
import type { Service } from '../streams/service';
import { asError } from '../text/thrown';
import { nameOfPeer } from './address-text';
import { GrpcTls } from './grpc-certificates';
import type { HttpRejections } from './http-rejections';
import type { RefusedConnections } from './refused-connections';

/** Where the listeners for decisions are. */
export interface Addresses {
  /** The path of a Unix socket with `GRPC_UDS`. */
  readonly grpc: AddressInfo | string;
  readonly http: AddressInfo;
}

export interface ListenersOptions {
  /** Answers requests and health checks. */
  readonly streams: Pick<Service, 'decide' | 'health$'>;
  readonly statistics: Statistics;
  readonly log: Log;
  /** Is notified of each connection that is refused. */
  readonly refusals: RefusedConnections;
  /** Is notified of what the HTTP listener rejects. */
  readonly rejections: HttpRejections;
  /** Samples calls; undefined without tracing. */
  readonly tracer: Tracer | undefined;
}

/** The listeners for decisions: gRPC and HTTP. They open when the service is ready and are closed one after the other. */
export class Listeners {
  readonly #settings: Settings;
  readonly #options: ListenersOptions;
  #grpc: GrpcServer | undefined;
  #http: HttpServer | undefined;
  readonly #tls: GrpcTls | undefined;
  readonly #filesLimit = openFilesLimit();

  constructor(reading: LoadedSettings, options: ListenersOptions) {
    const { settings } = reading;
    this.#settings = settings;
    this.#options = options;
    this.#tls = settings.grpcServerUseTls ? new GrpcTls(reading, options.statistics, options.log) : undefined;
    const { statistics } = options;
    statistics.gauge('certs.expires_at', () => this.#tls?.expiresAt ?? 0);
    statistics.gauge('ratelimit_server.grpc.connections', () => this.#grpc?.connectionCount ?? 0);
    statistics.gauge('ratelimit_server.grpc.open_calls', () => this.#grpc?.openStreams ?? 0);
    statistics.gauge('ratelimit_server.grpc.held_bytes', () => this.#grpc?.heldBytes ?? 0);
  }

  /** @throws when a listener cannot open: a port that is in use, a certificate that cannot be used */
  async open(): Promise<Addresses> {
    this.#http = await this.#openHttp();
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

  #openHttp(): Promise<HttpServer> {
    const { streams, statistics, rejections, log, tracer } = this.#options;
    const { decide, health$ } = streams;
    const { host, port } = this.#settings;
    const serviceErrors = statistics.counter(SERVICE_ERRORS);
    return serveHttp({
      host,
      port,
      decide,
      health: () => health$.value,
      onMalformed: (reason, caller) => {
        serviceErrors.add(1);
        if (log.isDebug) log.debug('malformed request rejected', { via: '/json', reason, peer: nameOfPeer(caller) });
      },
      onRejected: rejections.of('HTTP'),
      log,
      tracer,
    });
  }

  async #openGrpc(): Promise<GrpcServer> {
    const { streams, statistics, log, tracer } = this.#options;
    const settings = this.#settings;
    const health = healthService(streams.health$);
    const methods = new Map([[SHOULD_RATE_LIMIT, shouldRateLimit(streams.decide, statistics, log)], ...health.unary]);
    const server = await serveGrpc({
      listen:
        settings.grpcUds === undefined
          ? { host: settings.grpcHost, port: settings.grpcPort }
          : { path: settings.grpcUds },
      tls: await this.#tls?.first(),
      limits: {
        maxConnections: settings.grpcMaxConnections,
        maxAgeMs: neverWhenZero(settings.grpcMaxConnectionAge),
        maxAgeGraceMs: neverWhenZero(settings.grpcMaxConnectionAgeGrace),
      },
      unary: observedMethods(methods, { statistics, now: turnClock(), tracer }),
      keepMetadata: tracer?.fields,
      streaming: new Map([...health.streaming, ...reflectionService(SERVICES)]),
      onRejected: (kind, peer, reason) => {
        statistics.counter(`ratelimit_server.http2.${kind}`).add(1);
        if (kind === 'connections' || kind === 'file_descriptors') this.#grpcRefused(kind);
        if (log.isDebug) log.debug('gRPC connection or stream rejected', { kind, reason, peer: nameOfPeer(peer) });
      },
      onInternalError: (path, error) =>
        log.error('internal error in the gRPC server; its call or connection was ended', {
          path,
          error: asError(error),
        }),
    });
    this.#tls?.follow(server);
    return server;
  }

  #grpcRefused(kind: 'connections' | 'file_descriptors'): void {
    const isFull = kind === 'connections';
    this.#options.refusals.refused({
      listener: 'gRPC',
      bound: isFull ? 'connections' : 'open files',
      setting: 'GRPC_MAX_CONNECTIONS',
      open: this.#grpc?.connectionCount ?? 0,
      limit: isFull ? this.#settings.grpcMaxConnections : this.#filesLimit,
    });
  }
}

/** The services that reflection lists, in addition to itself. */
const SERVICES = ['envoy.service.ratelimit.v3.RateLimitService', 'grpc.health.v1.Health'];

function neverWhenZero(milliseconds: number): number {
  return milliseconds === 0 ? Infinity : milliseconds;
}
