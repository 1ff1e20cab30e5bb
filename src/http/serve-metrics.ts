import { Readable, pipeline } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { Context } from 'koa';
import type { TcpAddress } from '../net/listen';
import type { Log } from '../log/log';
import { OPERATOR_LIMITS, OPERATOR_TIMEOUTS, type OnHttpRejected } from './limits';
import { GET, HttpListener } from './listener';

export interface MetricsServerOptions extends TcpAddress {
  /** The path of the page (PULLMETRICS_PATH). */
  readonly path: string;
  /** The page in the Prometheus text format 0.0.4, generated in pieces for each scrape. */
  readonly page: () => AsyncIterable<string>;
  readonly onRejected: OnHttpRejected;
  readonly log: Log;
}

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/**
 * Starts the HTTP server that Prometheus scrapes.
 *
 * @throws when it cannot listen, with a human-readable message
 */
export function serveMetrics(options: MetricsServerOptions): Promise<HttpListener> {
  const { path, page, onRejected, log } = options;
  return new HttpListener({
    routes: [{ path, allow: GET, handle: (ctx) => respond(ctx, page) }],
    available: [path],
    timeouts: OPERATOR_TIMEOUTS,
    limits: OPERATOR_LIMITS,
    onRejected,
    log,
  }).listen(options);
}

function respond(ctx: Context, page: () => AsyncIterable<string>): void {
  ctx.set('Content-Type', CONTENT_TYPE);
  ctx.vary('Accept-Encoding');
  ctx.status = 200;
  if (ctx.method === 'HEAD') return;
  const text = Readable.from(page(), { objectMode: false });
  if (ctx.acceptsEncodings('gzip', 'identity') !== 'gzip') {
    ctx.body = text;
    return;
  }
  ctx.set('Content-Encoding', 'gzip');
  // A page consists of numbers and repeated names: even the fastest level makes it about fifteen times smaller.
  ctx.body = pipeline(text, createGzip({ level: 1 }), (error) => {
    // A premature close only means that the scraper disconnected; other errors are logged.
    if (error && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') ctx.app.emit('error', error, ctx);
  });
}
