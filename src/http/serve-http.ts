import type { Middleware } from 'koa';
import type { Health } from '../streams/health';
import { Router } from '@koa/router';
import Koa from 'koa';
import type { Decide } from '../streams/ports/decide';
import type { Log } from '../streams/ports/log';
import type { Tracer } from '../streams/ports/tracer';
import { errorBoundary } from './server/error-boundary';
import { jsonRoute } from './json/json-route';
import type { ListenOptions } from './server/listen';
import { logUnforeseen, methodNotAllowed, notFound } from './server/fallbacks';
import { type HttpTimeouts, type Listening, serve } from './server/serve';
import { traced } from './traced';

export interface HttpOptions extends ListenOptions {
  readonly decide: Decide;
  readonly health: () => Health;
  /** Told of each /json body that is no request, so that it can be counted. */
  readonly onMalformed: () => void;
  readonly log: Log;
  /** Chooses requests of /json to be traced. */
  readonly tracer?: Tracer | undefined;
  /** Other than {@link DEFAULT_TIMEOUTS}. */
  readonly timeouts?: Partial<HttpTimeouts>;
}

const DEFAULT_TIMEOUTS: HttpTimeouts = {
  headers: 10_000,
  request: 30_000,
  keepAlive: 75_000,
  inactive: 120_000,
  grace: 5_000,
};

/**
 * Opens the HTTP door: `/healthcheck` and `/json` (document 1, section 4).
 *
 * @throws when it cannot listen, with a sentence for the operator.
 */
export function serveHttp(options: HttpOptions): Promise<Listening> {
  const { decide, health, onMalformed, log, tracer, timeouts, ...at } = options;
  const router = new Router({ sensitive: true, strict: true });
  router.post('/json', jsonRoute(decide, onMalformed)).all('/json', methodNotAllowed('POST'));
  router.get('/healthcheck', healthcheckRoute(health)).all('/healthcheck', methodNotAllowed('GET, HEAD'));

  const app = new Koa();
  app.on('error', logUnforeseen(log));
  if (tracer !== undefined) app.use(traced('/json', tracer));
  app
    .use(errorBoundary(log))
    .use(router.routes())
    .use(notFound(['POST /json', 'GET /healthcheck']));
  return serve(app, at, { ...DEFAULT_TIMEOUTS, ...timeouts });
}

/** `GET /healthcheck`: 200 `OK`, or 500 and the components that are not healthy. */
export function healthcheckRoute(health: () => Health): Middleware {
  return (ctx) => {
    const { healthy, unhealthy } = health();
    ctx.status = healthy ? 200 : 500;
    ctx.type = 'text/plain';
    ctx.body = healthy ? 'OK' : `unhealthy: ${unhealthy.join(', ')}`;
  };
}
