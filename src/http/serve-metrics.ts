import { Readable, pipeline } from 'node:stream';
import { createGzip } from 'node:zlib';
import Koa from 'koa';
import type { Log } from '../streams/ports/log';
import { errorBoundary } from './server/error-boundary';
import type { ListenOptions } from './server/listen';
import { logUnforeseen, methodNotAllowed, notFound } from './server/fallbacks';
import { type HttpTimeouts, type Listening, serve } from './server/serve';

export interface MetricsOptions extends ListenOptions {
  /** Where the page is: PULLMETRICS_PATH. */
  readonly path: string;
  /** The page in the text format of Prometheus, 0.0.4, made anew for each scrape and in pieces. */
  readonly page: () => AsyncIterable<string>;
  readonly log: Log;
}

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const TIMEOUTS: HttpTimeouts = { headers: 10_000, request: 10_000, keepAlive: 75_000, inactive: 60_000, grace: 500 };

/**
 * Opens the listener that is scraped (document 1, section 4).
 *
 * @throws when it cannot listen, with a sentence for the operator.
 */
export function serveMetrics({ path, page, log, ...at }: MetricsOptions): Promise<Listening> {
  const refuse = methodNotAllowed('GET, HEAD');
  const app = new Koa();
  app.on('error', logUnforeseen(log));
  app
    .use(errorBoundary(log))
    .use((ctx, next) => {
      // Compared as it stands: a setting is no pattern.
      if (ctx.path !== path) return next();
      if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return refuse(ctx, next);
      ctx.set('Content-Type', CONTENT_TYPE);
      ctx.vary('Accept-Encoding');
      ctx.status = 200;
      if (ctx.method === 'HEAD') return undefined;
      const text = Readable.from(page(), { objectMode: false });
      if (ctx.acceptsEncodings('gzip', 'identity') !== 'gzip') {
        ctx.body = text;
        return undefined;
      }
      ctx.set('Content-Encoding', 'gzip');
      // A page is numbers and repeated names: the fastest level makes it about fifteen times smaller.
      ctx.body = pipeline(text, createGzip({ level: 1 }), (error) => {
        // A scraper that leaves in the middle is its own business; everything else reaches the application's listener.
        if (error && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') ctx.app.emit('error', error, ctx);
      });
      return undefined;
    })
    .use(notFound([path]));
  return serve(app, at, TIMEOUTS);
}
