import { type ClientHttp2Stream, type IncomingHttpHeaders, type IncomingHttpStatusHeader, constants } from 'node:http2';
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { WorkerInfo } from '../../operators/answers';
import { HttpError } from '../errors';
import { type Route, textPage } from '../listener';
import type { ProfileRoute } from './profiles';

/** The workers of an instance, seen from the primary. */
export interface DebugWorkers {
  readonly list: () => readonly WorkerInfo[];
  /**
   * Forwards GET of a path with its query to a worker; undefined if it does not run. To close the stream ends the request.
   */
  readonly forward: (worker: number, url: string) => ClientHttp2Stream | undefined;
}

type ResponseHeaders = IncomingHttpHeaders & IncomingHttpStatusHeader;

/** The response headers of profiles that reach the caller. */
const FORWARDED = ['content-type', 'content-disposition', 'retry-after'];

/** `/workers`: one line per worker process. */
export function workerList(workers: DebugWorkers): Route {
  return textPage('/workers', 'the worker processes, one per line', () => workers.list().map(lineOf).join(''));
}

function lineOf({ worker, pid, isServing, isResponsive, connections, uptimeSeconds, restarts }: WorkerInfo): string {
  const state = !isServing ? 'starting' : isResponsive ? 'serving' : 'not answering';
  const uptime = Math.floor(uptimeSeconds);
  return `worker ${worker}: pid=${pid ?? 'none'} state=${state} connections=${connections} uptime=${uptime}s restarts=${restarts}\n`;
}

/** The same profile, with `?worker=` of another process. */
export function ofWorkers(profile: ProfileRoute, workers: DebugWorkers): ProfileRoute {
  return {
    ...profile,
    description: `${profile.description}; of the primary process, or of ?worker=1, 2, …`,
    handle: (ctx, next) => {
      const { worker } = ctx.query;
      if (worker === undefined) return profile.handle(ctx, next);
      const stream = /^[1-9]\d{0,3}$/.test(String(worker)) ? workers.forward(Number(worker), ctx.url) : undefined;
      if (stream !== undefined) return respond(ctx, stream);
      const message = 'no such worker runs; /workers has all of them';
      throw new HttpError({ status: 404, code: 'not_found', message });
    },
  };
}

async function respond(ctx: Context, stream: ClientHttp2Stream): Promise<void> {
  // Without a code, the worker would wait for the end of a request that it does not read.
  ctx.res.once('close', () => stream.close(constants.NGHTTP2_CANCEL));
  const headers = await headersOf(stream);
  if (headers === undefined) {
    throw new HttpError({ status: 503, code: 'worker_ended', message: 'the worker has ended before it responded' });
  }
  ctx.status = headers[':status'] ?? 500;
  for (const name of FORWARDED) {
    const value = headers[name];
    if (value !== undefined) ctx.set(name, value);
  }
  ctx.body = Readable.from(completely(stream), { objectMode: false });
}

/** Undefined when the worker ends before it has responded. */
function headersOf(stream: ClientHttp2Stream): Promise<ResponseHeaders | undefined> {
  return new Promise((resolve) => {
    stream.once('response', resolve).once('close', () => resolve(undefined));
    stream.on('error', () => undefined);
  });
}

/** Fails when the worker ends before the end of the body: a stream of HTTP/2 closes without an error then. */
async function* completely(stream: ClientHttp2Stream): AsyncGenerator<Buffer, void, void> {
  yield* stream as AsyncIterable<Buffer>;
  if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) throw new Error('the worker has ended');
}
