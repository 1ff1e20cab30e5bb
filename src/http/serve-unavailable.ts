import { Router } from '@koa/router';
import Koa from 'koa';
import type { Check, Health } from '../streams/readiness';
import type { Log } from '../streams/ports/log';
import { livez, readyzRoute } from './probes';
import { errorBoundary } from './server/error-boundary';
import { HttpError } from './server/errors';
import { logConnectionErrors } from './server/fallbacks';
import { type HttpServer, adoptingHttpServer } from './server/http-server';
import { type HttpTimeouts, OPERATOR_LIMITS } from './server/limits';
import type { OnHttpRejected } from './server/rejections';

export interface UnavailableOptions {
  readonly health: () => Health;
  /** What `/readyz` lists. */
  readonly checks: () => readonly Check[];
  readonly onRejected: OnHttpRejected;
  readonly log: Log;
}

const TIMEOUTS: HttpTimeouts = {
  headers: 5_000,
  request: 5_000,
  response: 5_000,
  keepAlive: 1_000,
  inactive: 5_000,
  grace: 500,
};

/**
 * Answers every request with status 503 in place of a process that could decide it, `/healthcheck` with what is unhealthy, and
 * `/livez` with 200. Each connection ends after its first response, so that the next one can reach that process.
 */
export function unavailableHttp({ health, checks, onRejected, log }: UnavailableOptions): HttpServer {
  const router = new Router({ sensitive: true, strict: true });
  router.get('/healthcheck', (ctx) => {
    ctx.status = 503;
    ctx.type = 'text/plain';
    ctx.body = `unhealthy: ${health().unhealthy.join(', ')}`;
  });
  router.get('/livez', livez).get('/readyz', readyzRoute(checks));
  const app = new Koa();
  app.on('error', logConnectionErrors(log));
  app
    .use(errorBoundary(log))
    .use((ctx, next) => {
      ctx.set('Connection', 'close');
      return next();
    })
    .use(router.routes())
    .use(() => {
      const message = 'no worker of this instance is ready; try again later';
      throw new HttpError({ status: 503, code: 'unavailable', message, headers: { Connection: 'close' } });
    });
  return adoptingHttpServer(app, { timeouts: TIMEOUTS, limits: OPERATOR_LIMITS, onRejected });
}
