import { type IncomingMessage, get } from 'node:http';
import { Duplex, type Readable } from 'node:stream';
import type { Context } from 'koa';
import { HttpError } from '../server/errors';
import type { DebugEndpoint } from './endpoint';

/** A worker process, for the list. */
export interface WorkerInfo {
  /** Its number, from 1. A worker that replaces another one has the same. */
  readonly worker: number;
  readonly pid: number | undefined;
  /** Whether it takes connections. */
  readonly isServing: boolean;
  /** Whether it answers the primary. */
  readonly isResponsive: boolean;
  readonly connections: number;
  /** Since it was started. */
  readonly uptimeSeconds: number;
  /** How often the worker of this number has been replaced. */
  readonly restarts: number;
}

/** The workers of an instance, seen from the primary. */
export interface DebugWorkers {
  readonly list: () => readonly WorkerInfo[];
  /**
   * The response of a worker to GET of a path with its query, as the bytes of HTTP; undefined if it does not run. It fails when the worker
   * ends; to destroy it ends the request.
   */
  readonly respond: (worker: number, url: string) => Readable | undefined;
}

/** The response headers of profiles that reach the caller. */
const FORWARDED = ['content-type', 'content-disposition', 'retry-after'];

/** `/workers`: one line per worker process. */
export function workerList(workers: DebugWorkers): DebugEndpoint {
  return {
    path: '/workers',
    description: 'the worker processes, one per line',
    get: (ctx) => {
      ctx.type = 'text/plain';
      ctx.body = workers
        .list()
        .map((worker) => `${lineOf(worker)}\n`)
        .join('');
    },
  };
}

function lineOf({ worker, pid, isServing, isResponsive, connections, uptimeSeconds, restarts }: WorkerInfo): string {
  const state = !isServing ? 'starting' : isResponsive ? 'serving' : 'not answering';
  const uptime = Math.floor(uptimeSeconds);
  return `worker ${worker}: pid=${pid ?? 'none'} state=${state} connections=${connections} uptime=${uptime}s restarts=${restarts}`;
}

/** The same endpoint, with `?worker=` of another process. */
export function ofWorkers(endpoint: DebugEndpoint, workers: DebugWorkers): DebugEndpoint {
  return {
    ...endpoint,
    description: `${endpoint.description}; of the primary process, or of ?worker=1, 2, …`,
    get: async (ctx, next) => {
      const { worker } = ctx.query;
      if (worker === undefined) return endpoint.get(ctx, next);
      const response = /^[1-9]\d{0,3}$/.test(String(worker)) ? workers.respond(Number(worker), ctx.url) : undefined;
      if (response === undefined) {
        throw new HttpError({
          status: 404,
          code: 'not_found',
          message: 'no such worker runs; /workers has all of them',
        });
      }
      return forward(ctx, response);
    },
  };
}

async function forward(ctx: Context, bytes: Readable): Promise<void> {
  ctx.res.once('close', () => bytes.destroy());
  let response: IncomingMessage;
  try {
    response = await responseIn(bytes);
  } catch (cause) {
    throw new HttpError({
      status: 503,
      code: 'worker_ended',
      message: `the worker has not responded: ${(cause as Error).message}`,
    });
  }
  ctx.status = response.statusCode ?? 500;
  for (const name of FORWARDED) {
    const value = response.headers[name];
    if (value !== undefined) ctx.set(name, value);
  }
  ctx.body = response;
}

/** Reads the head of a response; its body is read as fast as the caller does. */
function responseIn(bytes: Readable): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get({ createConnection: () => new Received(bytes) }, resolve).on('error', reject);
  });
}

/** A connection on which a response arrives. What is written to it is dropped: the request has been made where the response comes from. */
class Received extends Duplex {
  readonly #bytes: Readable;

  constructor(bytes: Readable) {
    super();
    this.#bytes = bytes;
    bytes.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) bytes.pause();
    });
    bytes.once('end', () => this.push(null));
    bytes.on('error', (error) => this.destroy(error));
  }

  override _read(): void {
    this.#bytes.resume();
  }

  override _write(_bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#bytes.destroy();
    done(error);
  }
}
