import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type Http2ServerRequest,
  type Http2ServerResponse,
  connect,
  constants,
  createServer,
} from 'node:http2';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { DecisionError, type DecisionErrorCode } from '../counting/decision-error';

/** Answers requests with JSON, by name; rejects with a `DecisionError`, or when it meets an internal error. */
export type Methods = Readonly<Record<string, (parameters: never) => Promise<unknown>>>;

/** What a worker answers to a call of a method. */
type Answer = { readonly result: unknown } | { readonly error: string; readonly code?: DecisionErrorCode };

const METHOD_PATH = '/methods/';

/**
 * What the primary asks of a worker while it runs, over a connection that only the two have. HTTP/2, because a request may take minutes, as
 * a profile does, and others must not wait for it.
 */
export class WorkerRequests {
  readonly #session: ClientHttp2Session;

  /** @param connection the other end of that of {@link serveRequests} */
  constructor(connection: Duplex) {
    this.#session = connect('http://worker', { createConnection: () => connection });
    // The requests fail; that the worker has ended is reported by its process.
    this.#session.on('error', () => undefined);
  }

  /** GET of a path with its query. When the worker ends, the stream closes with another code than 0, but not with an error. */
  get(path: string): ClientHttp2Stream {
    return this.#session.request({ ':path': path });
  }

  /**
   * Calls a method. What the worker has received it carries out, also when the result is no longer waited for.
   *
   * @param patience milliseconds after which a worker that has not begun to answer is considered to stand still; undefined: it is waited
   *   for as long as it runs. Work that takes long, such as waiting for a store, does not count: how long that may take is limited there.
   * @returns the result, or nothing if the worker ends before it has answered, or stands still
   * @throws DecisionError
   */
  async call(method: string, parameters: unknown, patience?: number): Promise<readonly unknown[]> {
    let answer: Answer;
    try {
      const stream = this.#session.request({ ':method': 'POST', ':path': METHOD_PATH + method });
      if (patience !== undefined) {
        const timer = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), patience);
        stream.once('response', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
      }
      stream.end(JSON.stringify(parameters));
      answer = JSON.parse(await text(stream)) as Answer;
    } catch {
      return [];
    }
    if ('result' in answer) return [answer.result];
    throw answer.code === undefined ? new Error(answer.error) : new DecisionError(answer.code, answer.error);
  }
}

/**
 * Answers the requests of the primary.
 *
 * @param handle answers GET of any path
 */
export function serveRequests(
  connection: Duplex,
  methods: Methods,
  handle: (request: Http2ServerRequest, response: Http2ServerResponse) => unknown,
): void {
  const server = createServer((request, response) => {
    if (!request.url.startsWith(METHOD_PATH)) handle(request, response);
    else void call(methods, request, response);
  });
  server.emit('connection', connection);
}

async function call(methods: Methods, request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
  response.on('error', () => undefined);
  try {
    const method = methods[request.url.slice(METHOD_PATH.length)] as (parameters: unknown) => Promise<unknown>;
    // The sign that this process runs, before the work begins.
    response.writeHead(200);
    const parameters: unknown = JSON.parse(await text(request));
    response.end(JSON.stringify(await answerOf(method, parameters)));
  } catch {
    // The request has been cancelled before all of it arrived.
    response.destroy();
  }
}

async function answerOf(method: (parameters: unknown) => Promise<unknown>, parameters: unknown): Promise<Answer> {
  try {
    return { result: await method(parameters) };
  } catch (error) {
    const { message } = error as Error;
    return error instanceof DecisionError ? { error: message, code: error.code } : { error: message };
  }
}
