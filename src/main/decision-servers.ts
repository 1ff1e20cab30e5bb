import { observedMethods } from '../grpc/observed-methods';
import { SHOULD_RATE_LIMIT, shouldRateLimit } from '../grpc/rate-limit/rate-limit-service';
import type { ServerTls } from '../grpc/http2/tls/tls-options';
import type { GrpcServer, GrpcServerOptions } from '../grpc/server/grpc-server';
import { healthService } from '../grpc/server/health/health-service';
import { reflectionService } from '../grpc/server/reflection/reflection-service';
import type { HttpServerOptions } from '../http/serve-http';
import type { Settings } from '../settings/settings';
import { PARENT_FIELDS } from '../sinks/traces/parent';
import { turnClock } from '../sources/event-loop-turns';
import { SERVICE_ERRORS, type Statistics } from '../statistics/statistics';
import { checks } from '../streams/checks';
import type { Health } from '../streams/health';
import type { Latest } from '../streams/latest';
import type { Decide } from '../streams/ports/decide';
import type { Log } from '../streams/ports/log';
import type { Tracer } from '../streams/ports/tracer';
import { asError } from '../text/thrown';
import { nameOfPeer } from './address-text';
import type { HttpRejections } from './http-rejections';

/** What the servers for decisions use of the service. */
export interface DecisionServersOptions {
  readonly decide: Decide;
  /** What health checks answer. */
  readonly health$: Latest<Health>;
  /** Whether this is one of several workers. */
  readonly hasWorkers: boolean;
  readonly statistics: Statistics;
  readonly log: Log;
  /** Is notified of what the HTTP server rejects. */
  readonly rejections: HttpRejections;
  /** Samples calls; undefined without tracing. */
  readonly tracer: Tracer | undefined;
  /** Called when the gRPC server closes a connection as it begins. */
  readonly onGrpcRefused: (bound: 'connections' | 'file_descriptors') => void;
}

/** The HTTP server: `/json`, and what probes ask for. */
export function httpServerOptions({
  decide,
  health$,
  hasWorkers,
  statistics,
  log,
  rejections,
  tracer,
}: DecisionServersOptions): HttpServerOptions {
  const serviceErrors = statistics.counter(SERVICE_ERRORS);
  return {
    decide,
    health: () => health$.value,
    checks: () => checks(health$.value, { hasWorkers }),
    onMalformed: (reason, caller) => {
      serviceErrors.add(1);
      if (log.isDebug) log.debug('malformed request rejected', { via: '/json', reason, peer: nameOfPeer(caller) });
    },
    onRejected: rejections.of('HTTP'),
    log,
    tracer,
  };
}

/** The gRPC server: the rate limit service, health checks and reflection. */
export function grpcServerOptions(
  { decide, health$, statistics, log, tracer, onGrpcRefused }: DecisionServersOptions,
  settings: Settings,
  tls: ServerTls | undefined,
): GrpcServerOptions {
  const health = healthService(health$);
  const methods = new Map([[SHOULD_RATE_LIMIT, shouldRateLimit(decide, statistics, log)], ...health.unary]);
  return {
    tls,
    limits: {
      maxConnections: settings.grpcMaxConnections,
      maxAgeMs: neverWhenZero(settings.grpcMaxConnectionAge),
      maxAgeGraceMs: neverWhenZero(settings.grpcMaxConnectionAgeGrace),
    },
    unary: observedMethods(methods, { statistics, now: turnClock(), tracer }),
    keepMetadata: tracer?.fields ?? (settings.decisionLog === 'off' ? undefined : PARENT_FIELDS),
    streaming: new Map([...health.streaming, ...reflectionService(SERVICES)]),
    onRejected: (kind, peer, reason) => {
      statistics.counter(`ratelimit_server.http2.${kind}`).add(1);
      if (kind === 'connections' || kind === 'file_descriptors') onGrpcRefused(kind);
      if (log.isDebug) log.debug('gRPC connection or stream rejected', { kind, reason, peer: nameOfPeer(peer) });
    },
    onInternalError: (path, error) =>
      log.error('internal error in the gRPC server; its call or connection was ended', {
        path,
        error: asError(error),
      }),
  };
}

/** The gauges of the gRPC server, which are 0 until it is there. */
export function grpcGauges(statistics: Statistics, server: () => GrpcServer | undefined): void {
  statistics.gauge('ratelimit_server.grpc.connections', () => server()?.connectionCount ?? 0);
  statistics.gauge('ratelimit_server.grpc.open_calls', () => server()?.openStreams ?? 0);
  statistics.gauge('ratelimit_server.grpc.waiting_calls', () => server()?.waitingStreams ?? 0);
  statistics.gauge('ratelimit_server.grpc.held_bytes', () => server()?.heldBytes ?? 0);
}

/** The services that reflection lists, in addition to itself. */
const SERVICES = ['envoy.service.ratelimit.v3.RateLimitService', 'grpc.health.v1.Health'];

function neverWhenZero(milliseconds: number): number {
  return milliseconds === 0 ? Infinity : milliseconds;
}
