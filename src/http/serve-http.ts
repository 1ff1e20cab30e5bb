import { Router } from '@koa/router';
import Koa from 'koa';
import type { Decide } from '../streams/decide';
import type { Health } from '../streams/health';
import type { Log } from '../streams/log';
import type { Tracer } from '../streams/tracer';
import { errorBoundary } from './error-boundary';
import { healthcheckRoute } from './healthcheck-route';
import { jsonRoute } from './json-route';
import type { ListenOptions } from './listen';
import { logUnforeseen } from './log-unforeseen';
import { methodNotAllowed } from './method-not-allowed';
import { notFound } from './not-found';
import { serve } from './serve';
import type { HttpTimeouts, Listening } from './serve';
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
