import { type ClientHttp2Stream, type IncomingHttpHeaders, type IncomingHttpStatusHeader, constants } from 'node:http2';
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { WorkerInfo } from '../../operators/live-answers';
import { BodyMemory, receiveText } from '../body';
import { endWithCaller } from '../connections';
import { HttpError, methodNotAllowed } from '../errors';
import type { Authorization } from '../operators/authorization';
import type { ProfileRoute } from './profiles';

/** The workers of an instance, seen from the primary. */
export interface DebugWorkers {
  readonly list: () => readonly WorkerInfo[];
  /**
   * Forwards GET of a path with its query to a worker; undefined if it does not run. To close the stream ends the
   * request.
   */
  readonly forward: (worker: number, url: string) => ClientHttp2Stream | undefined;
}

/** Bytes of unfinished forms of all connections. */
const MAX_UNFINISHED_BYTES = 1024 * 1024;

/** What the form of a profile can send, in addition to the token. */
const PARAMETERS = ['seconds', 'worker'] as const;

/**
 * Profiles that need the operator token if there is one: names of functions and scripts show what the
 * process does, and its memory has what callers have sent. Those that stop the process, or show all of its memory, need
 * POST, so that no link begins one. The others stay GET, as `go tool pprof` requests them.
 *
 * @param workers whose profiles `?worker=` requests
 */
export function protectProfiles(
  profiles: readonly ProfileRoute[],
  authorization: Authorization,
  workers: DebugWorkers | undefined,
): readonly ProfileRoute[] {
  const memory = new BodyMemory({ maxUnfinishedBytes: MAX_UNFINISHED_BYTES });
  const ofWorkers = workers === undefined ? '' : '; of the primary process, or of ?worker=1, 2, …';
  return profiles.map((profile) => ({
    ...profile,
    description: profile.description + ofWorkers,
    handle: async (ctx, next) => {
      const method = profile.needsPost(ctx) ? 'POST' : 'GET';
      if (ctx.method !== method) throw methodNotAllowed(ctx.method, method);
      const token = method === 'POST' ? await readForm(ctx, memory) : undefined;
      authorization.check(ctx, 'profile', token);
      const { worker } = ctx.query;
      if (workers === undefined || worker === undefined) return profile.handle(ctx, next);
      const stream = /^[1-9]\d{0,3}$/.test(String(worker)) ? workers.forward(Number(worker), ctx.url) : undefined;
      if (stream !== undefined) return passOn(ctx, stream);
      const message = 'no such worker runs; /workers has all of them';
      throw new HttpError({ status: 404, code: 'not_found', message });
    },
  }));
}

/**
 * Adds the parameters of a form to those of the query, which a worker receives.
 *
 * @returns the token, if there is one in the form
 */
async function readForm(ctx: Context, memory: BodyMemory): Promise<string | undefined> {
  const form = new URLSearchParams(ctx.is('urlencoded') ? await receiveText(ctx, memory) : '');
  for (const name of PARAMETERS) {
    const value = form.get(name);
    if (value) ctx.query = { ...ctx.query, [name]: value };
  }
  return form.get('token') || undefined;
}

/** The response headers of a worker that reach the caller. */
const FORWARDED = ['content-type', 'content-disposition', 'retry-after'];

async function passOn(ctx: Context, stream: ClientHttp2Stream): Promise<void> {
  // Without a code, the worker would wait for the end of a request that it does not read.
  ctx.res.once('close', () => stream.close(constants.NGHTTP2_CANCEL));
  endWithCaller(ctx);
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
function headersOf(stream: ClientHttp2Stream): Promise<(IncomingHttpHeaders & IncomingHttpStatusHeader) | undefined> {
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
