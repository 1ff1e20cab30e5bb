import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import Koa, { type Context, type Middleware } from 'koa';
import { type TcpAddress, listen } from '../net/listen';
import type { Log } from '../streams/ports/log';
import { asError } from '../text/thrown';
import { Connections, type ConnectionsOptions } from './connections';
import { type ErrorResponse, HttpError, errorBoundary, methodNotAllowed, respondEarly } from './errors';
import type { HttpLimits, HttpTimeouts } from './limits';
import { type ParseError, answerAndClose, answerTo, validateRequest, validateTarget } from './validate-request';

/** The methods of a page. */
export const GET = 'GET, HEAD';

/** The requests for a path, literally, and what handles them. */
export interface Route {
  readonly path: string;
  /** For an index. */
  readonly description?: string;
  /** The methods, as in the Allow header; others are answered with 405. Undefined: the handler knows them. */
  readonly allow?: string;
  readonly handle: Middleware;
}

/** A page of text. @param text can also set the status */
export function textPage(path: string, description: string, text: (ctx: Context) => string | Promise<string>): Route {
  return {
    path,
    description,
    allow: GET,
    handle: async (ctx) => {
      ctx.type = 'text/plain';
      ctx.body = await text(ctx);
    },
  };
}

export interface ApplicationOptions {
  readonly routes: readonly Route[];
  /** The paths that are named to a caller who requests another one. */
  readonly available?: readonly string[];
  /** Called before the routes. */
  readonly before?: Middleware;
  /** What is answered for a path or a method that no route has, instead of 404 or 405. */
  readonly otherwise?: ErrorResponse;
  readonly log: Log;
}

/** A Koa application that serves routes, and answers everything else, and every error, as JSON. */
export function application({ routes, available = [], before, otherwise, log }: ApplicationOptions): Koa {
  const byPath = new Map(routes.map((route) => [route.path, route]));
  const message = `no such path; available: ${available.join(', ')}`;
  const notFound: ErrorResponse = otherwise ?? { status: 404, code: 'not_found', message };
  const app = new Koa();
  // The errors that Koa reports outside of a response.
  app.on('error', (error) => {
    log.debug('an HTTP connection failed while a response was being sent', { error: asError(error) });
  });
  app.use(errorBoundary(log));
  if (before !== undefined) app.use(before);
  return app.use((ctx, next) => {
    const { allow = ctx.method, handle } = byPath.get(ctx.path) ?? {};
    if (handle === undefined) throw new HttpError(notFound);
    if (allow.split(', ').includes(ctx.method)) return handle(ctx, next);
    throw otherwise === undefined ? methodNotAllowed(ctx.method, allow) : new HttpError(otherwise);
  });
}

/** The requests with a method and a target, literally, that the application need not see. */
export interface DirectRoute {
  readonly method: string;
  readonly target: string;
  /** Works without Koa. Never throws. */
  readonly handle: (req: IncomingMessage, res: ServerResponse) => void;
}

export interface HttpListenerOptions extends ApplicationOptions, ConnectionsOptions {
  readonly timeouts: HttpTimeouts;
  readonly direct?: DirectRoute;
}

/** An HTTP server. It accepts connections itself, or is given those that are accepted elsewhere. */
export class HttpListener {
  readonly #options: HttpListenerOptions;
  readonly #connections: Connections;
  readonly #server: Server;
  readonly #app: Koa;
  readonly #handle: ReturnType<Koa['callback']>;
  #isAdopting = false;
  #closed: Promise<void> | undefined;

  constructor(options: HttpListenerOptions) {
    this.#options = options;
    this.#connections = new Connections(options);
    this.#app = application(options);
    this.#handle = this.#app.callback();
    this.#server = newServer(options);
    this.#server.on('connection', (socket: Socket) => this.#onConnection(socket));
    // 100 Continue is sent by the reader of the body, and only if it accepts the body.
    for (const event of ['request', 'checkContinue', 'checkExpectation']) {
      this.#server.on(event, (req: IncomingMessage, res: ServerResponse) => this.#onRequest(req, res));
    }
    this.#server.on('clientError', (error: ParseError, socket: Socket) => this.#onParseError(error, socket));
  }

  /** Where it listens. */
  get address(): AddressInfo {
    return this.#server.address() as AddressInfo;
  }

  /**
   * Accepts connections. When it cannot accept one, that is logged, and it continues to accept others.
   *
   * @throws when it cannot listen, with a human-readable message
   */
  async listen({ host, port, inherited }: TcpAddress): Promise<this> {
    await listen(this.#server, { host, port, inherited });
    this.#server.on('error', (error) => {
      this.#options.log.error('a listener has failed', { error: asError(error) });
    });
    return this;
  }

  /** Serves a connection that was accepted elsewhere, before anything was read from it. */
  adopt(socket: Socket): void {
    // Node checks the timeouts of requests from this event on.
    if (!this.#isAdopting) this.#isAdopting = this.#server.emit('listening');
    socket.allowHalfOpen = true;
    this.#server.emit('connection', socket);
    // It may have been accepted without reading from it.
    socket.resume();
  }

  /**
   * Stops listening, closes idle connections, finishes the requests in flight, and aborts those that take longer than the grace
   * period. Resolves when all connections are closed. Can be called again.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const abort = setTimeout(() => this.#server.closeAllConnections(), this.#options.timeouts.grace);
    // It waits only for the connections that it has accepted.
    const stopped = new Promise((resolve) => void this.#server.close(resolve));
    for (const socket of this.#connections.sockets) {
      const response = this.#connections.lastUnsent(socket);
      if (response === undefined) socket.destroy();
      else {
        response.once('close', () => socket.destroySoon());
        if (!response.headersSent) response.setHeader('Connection', 'close');
      }
    }
    await stopped;
    await this.#connections.ended();
    clearTimeout(abort);
  }

  #onConnection(socket: Socket): void {
    this.#connections.opened(socket);
    if (this.#options.direct === undefined) return;
    socket.on('error', (error) => {
      const due = this.#connections.lastUnsent(socket);
      // Koa reports the failures during its own responses.
      if (due !== undefined && this.#isDirect(due.req)) this.#app.emit('error', error);
    });
  }

  #onRequest(req: IncomingMessage, res: ServerResponse): void {
    const { limits, onRejected, direct } = this.#options;
    if (!this.#connections.began(req, res)) return;
    if (this.#closed !== undefined) res.setHeader('Connection', 'close');
    const invalid = validateRequest(req, limits);
    if (invalid === undefined && this.#isDirect(req)) {
      direct!.handle(req, res);
      return;
    }
    const rejection = invalid ?? validateTarget(req, () => this.#app.createContext(req, res).path);
    if (rejection === undefined) {
      void this.#handle(req, res);
      return;
    }
    onRejected(rejection.kind, req.socket, rejection.message);
    respondEarly({ req, res }, rejection);
  }

  #isDirect({ url, method }: IncomingMessage): boolean {
    const { direct } = this.#options;
    return url === direct?.target && method === direct?.method;
  }

  /** Ends a connection on which something arrived that is not HTTP, or not in time. */
  #onParseError(error: ParseError, socket: Socket): void {
    const { limits, onRejected } = this.#options;
    const answer = answerTo(error, limits);
    const due = this.#connections.lastUnsent(socket);
    if (due !== undefined && due.headersSent && !due.req.complete) {
      // The request was rejected before its body was found to be invalid.
      socket.destroySoon();
      return;
    }
    if (answer !== undefined) onRejected(answer.kind, socket, error.message);
    // An answer must not be taken for the response to an earlier request.
    if (answer !== undefined && socket.writable && due?.req.complete !== true) answerAndClose(socket, answer);
    else socket.destroy();
  }
}

function newServer({ timeouts, limits }: { readonly timeouts: HttpTimeouts; readonly limits: HttpLimits }): Server {
  const server = createServer({
    headersTimeout: timeouts.headers,
    requestTimeout: timeouts.request,
    keepAliveTimeout: timeouts.keepAlive,
    connectionsCheckingInterval: Math.ceil(Math.min(timeouts.headers, timeouts.request) / 4),
    maxHeaderSize: limits.maxHeaderBytes,
    // Checked by validateRequest, which answers with a reason.
    requireHostHeader: false,
  });
  server.timeout = timeouts.inactive;
  // Node ignores further headers, among them perhaps a second Host. One more, so that validateRequest sees that there are too many.
  server.maxHeadersCount = limits.maxHeaders + 1;
  return server;
}
