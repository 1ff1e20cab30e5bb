import type { TcpAddress } from '../net/listen';
import type { OpenFiles } from '../net/open-files';
import { type BodyLimits, BodyMemory } from './body';
import { type JsonHandlerOptions, jsonHandlers } from './json/json-handler';
import { type ReservationsHandlerOptions, reservationsHandler } from './json/reservations-handler';
import { type HttpLimits, type HttpTimeouts, OPERATOR_LIMITS, type OnHttpRejected, PUBLIC_LIMITS } from './limits';
import { HttpListener } from './listener';
import { type ProbedReadiness, probes } from './probes';

export interface HttpServerOptions extends JsonHandlerOptions, ReservationsHandlerOptions {
  readonly readiness: ProbedReadiness;
  readonly onRejected: OnHttpRejected;
  /** The timeouts that differ from {@link DEFAULT_TIMEOUTS}. */
  readonly timeouts?: Partial<HttpTimeouts>;
  /** The limits that differ from the defaults. */
  readonly limits?: Partial<HttpLimits & BodyLimits>;
  /** Default: the file descriptors of the process. */
  readonly files?: OpenFiles;
}

const DEFAULT_TIMEOUTS: HttpTimeouts = {
  headers: 10_000,
  request: 30_000,
  response: 30_000,
  keepAlive: 75_000,
  inactive: 120_000,
  grace: 5_000,
};

/**
 * Starts the HTTP server: `/json`, `/v1/check`, `/v1/report`, `/v1/reservations`, `/healthcheck`, `/livez` and
 * `/readyz`.
 *
 * @throws when it cannot listen, with a human-readable message
 */
export function serveHttp(options: HttpServerOptions & TcpAddress): Promise<HttpListener> {
  return adoptingHttp(options).listen(options);
}

/** As {@link serveHttp}, for connections that are accepted elsewhere. */
export function adoptingHttp(options: HttpServerOptions): HttpListener {
  const { timeouts, limits, onRejected, log } = options;
  const memory = new BodyMemory(limits ?? {}, onRejected);
  const direct = jsonHandlers(options, memory);
  const answered = probes(options.readiness);
  const posts = [...direct.keys(), '/v1/reservations'];
  return new HttpListener({
    direct,
    before: reservationsHandler(options, memory),
    routes: answered,
    available: [...posts.map((path) => `POST ${path}`), ...answered.map(({ path }) => `GET ${path}`)],
    timeouts: { ...DEFAULT_TIMEOUTS, ...timeouts },
    limits: { ...PUBLIC_LIMITS, ...limits },
    kind: 'http',
    files: options.files,
    onRejected,
    log,
  });
}

const UNAVAILABLE_TIMEOUTS: HttpTimeouts = {
  headers: 5_000,
  request: 5_000,
  response: 5_000,
  keepAlive: 1_000,
  inactive: 5_000,
  grace: 500,
};

/**
 * Answers every request with status 503 in place of a process that could decide it, `/healthcheck` with what is
 * unhealthy, and `/livez` with 200. Each connection ends after its first response, so that the next one can reach that
 * process.
 */
export function unavailableHttp(options: Pick<HttpServerOptions, 'readiness' | 'onRejected' | 'log'>): HttpListener {
  const message = 'no worker of this instance is ready; try again later';
  return new HttpListener({
    ...options,
    routes: probes(options.readiness, false),
    before: (ctx, next) => {
      ctx.set('Connection', 'close');
      return next();
    },
    otherwise: { status: 503, code: 'unavailable', message },
    timeouts: UNAVAILABLE_TIMEOUTS,
    limits: OPERATOR_LIMITS,
    kind: 'http',
  });
}
