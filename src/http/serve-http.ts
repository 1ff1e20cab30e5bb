import type { Socket } from 'node:net';
import { Router } from '@koa/router';
import Koa from 'koa';
import type { Check, Health } from '../streams/readiness';
import type { Decide } from '../streams/ports/decide';
import type { Log } from '../streams/ports/log';
import type { Tracer } from '../streams/ports/tracer';
import { healthcheckRoute } from './healthcheck';
import { livez, readyzRoute } from './probes';
import { errorBoundary } from './server/error-boundary';
import { type JsonLimits, type OnMalformed, jsonHandler } from './json/json-handler';
import type { TcpAddress } from '../net/listen';
import { leavesFilesFree, openFilesLimit } from '../net/open-files';
import { logConnectionErrors, methodNotAllowed, notFound } from './server/fallbacks';
import {
  type HttpServer,
  type ListeningHttpServer,
  type HttpServerOptions as ServerOptions,
  adoptingHttpServer,
  startHttpServer,
} from './server/http-server';
import { type HttpLimits, type HttpTimeouts, PUBLIC_LIMITS } from './server/limits';
import type { OnHttpRejected } from './server/rejections';
import type { RequestHandler } from './server/respond-json';
import { traced } from './traced';

export interface HttpServerOptions {
  readonly decide: Decide;
  readonly health: () => Health;
  /** What `/readyz` lists. */
  readonly checks: () => readonly Check[];
  /** Called for each /json body that is not a RateLimitRequest, to be counted and logged. */
  readonly onMalformed: OnMalformed;
  readonly onRejected: OnHttpRejected;
  readonly log: Log;
  /** Chooses the requests of /json to trace. */
  readonly tracer?: Tracer | undefined;
  /** The timeouts that differ from {@link DEFAULT_TIMEOUTS}. */
  readonly timeouts?: Partial<HttpTimeouts>;
  /** The limits that differ from the defaults. */
  readonly limits?: Partial<HttpLimits & JsonLimits>;
  /** Whether an accepted socket leaves enough file descriptors free; by default those that the process needs for itself. */
  readonly leavesFilesFree?: (socket: Socket) => boolean;
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
 * Starts the HTTP server: `/json`, `/healthcheck`, `/livez` and `/readyz`.
 *
 * @throws when it cannot listen, with a human-readable message
 */
export function serveHttp(options: HttpServerOptions & TcpAddress): Promise<ListeningHttpServer> {
  const { host, port, inherited } = options;
  const json = jsonHandler(options);
  return startHttpServer(application(options, json), {
    at: { host, port, inherited },
    log: options.log,
    ...serverOptions(options, json),
  });
}

/** The same for connections that are accepted elsewhere. */
export function adoptingHttp(options: HttpServerOptions): HttpServer {
  const json = jsonHandler(options);
  return adoptingHttpServer(application(options, json), serverOptions(options, json));
}

function application({ health, checks, log, tracer }: HttpServerOptions, json: RequestHandler): Koa {
  const router = new Router({ sensitive: true, strict: true });
  router.all('/json', methodNotAllowed('POST'));
  const probes = { '/healthcheck': healthcheckRoute(health), '/livez': livez, '/readyz': readyzRoute(checks) };
  for (const [path, get] of Object.entries(probes)) router.get(path, get).all(path, methodNotAllowed('GET, HEAD'));

  const app = new Koa();
  app.on('error', logConnectionErrors(log));
  // Under other spellings of the target, such as one with a query; the usual one does not come here.
  app.use((ctx, next) => {
    if (ctx.path !== '/json' || ctx.method !== 'POST') return next();
    ctx.respond = false;
    return json(ctx.req, ctx.res);
  });
  if (tracer !== undefined) app.use(traced('/json', tracer));
  app
    .use(errorBoundary(log))
    .use(router.routes())
    .use(notFound(['POST /json', ...Object.keys(probes).map((path) => `GET ${path}`)]));
  return app;
}

function serverOptions(
  { timeouts, limits, onRejected, leavesFilesFree: leavesFree }: HttpServerOptions,
  json: RequestHandler,
): ServerOptions {
  const filesLimit = openFilesLimit();
  return {
    timeouts: { ...DEFAULT_TIMEOUTS, ...timeouts },
    limits: { ...PUBLIC_LIMITS, ...limits },
    onRejected,
    leavesFilesFree: leavesFree ?? ((socket) => leavesFilesFree(socket, filesLimit)),
    direct: { method: 'POST', target: '/json', handle: json },
  };
}
