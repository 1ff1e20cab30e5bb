import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import Koa, { type Context, type Middleware } from 'koa';
import { type TcpAddress, listen } from '../net/listen';
import type { Log } from '../log/log';
import { asError } from '../text/thrown';
import { Connections, type ConnectionsOptions } from './connections';
import { type ErrorResponse, HttpError, errorBoundary, methodNotAllowed, respondEarly } from './errors';
import type { HttpLimits, HttpTimeouts } from './limits';
import { type HttpTls, TlsAcceptor } from './tls-acceptor';
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

/** Answers a request itself. Never throws. */
export type Handler = (req: IncomingMessage, res: ServerResponse) => void;

export interface ApplicationOptions {
  readonly routes: readonly Route[];
  /** The paths that are named to a caller who requests another one. */
  readonly available?: readonly string[];
  /** Called before the routes. */
  readonly before?: Middleware;
  /** Paths whose usual requests are not passed through Koa: what it makes for each takes longer than a decision. */
  readonly direct?: ReadonlyMap<string, Handler>;
  /** What is answered for a path or a method that no route has, instead of 404 or 405. */
  readonly otherwise?: ErrorResponse;
  readonly log: Log;
}

/** A Koa application that serves routes, and answers everything else, and every error, as JSON. */
export function application({ routes, available = [], before, direct, otherwise, log }: ApplicationOptions): Koa {
  const byPath = new Map(routes.map((route) => [route.path, route]));
  const message = `no such path; available: ${available.join(', ')}`;
  const notFound: ErrorResponse = otherwise ?? { status: 404, code: 'not_found', message };
  const app = new Koa();
  // The errors that Koa reports outside of a response.
  app.on('error', (error) => reportFailure(log, error));
  app.use(errorBoundary(log));
  if (before !== undefined) app.use(before);
  return app.use((ctx, next) => {
    const answer = direct?.get(ctx.path);
    if (answer !== undefined) {
      ctx.respond = false;
      return answer(ctx.req, ctx.res);
    }
    const { allow = ctx.method, handle } = byPath.get(ctx.path) ?? {};
    if (handle === undefined) throw new HttpError(notFound);
    if (allow.split(', ').includes(ctx.method)) return handle(ctx, next);
    throw otherwise === undefined ? methodNotAllowed(ctx.method, allow) : new HttpError(otherwise);
  });
}

function reportFailure(log: Log, error: unknown): void {
  log.debug('an HTTP connection failed while a response was being sent', { error: asError(error) });
}

export interface HttpListenerOptions extends ApplicationOptions, ConnectionsOptions {
  /** Undefined: without TLS. */
  readonly tls?: HttpTls | undefined;
}

/** An HTTP server. It accepts connections itself, or is given those that are accepted elsewhere. */
export class HttpListener {
  readonly #options: HttpListenerOptions;
  readonly #connections: Connections;
  readonly #tls: TlsAcceptor | undefined;
  readonly #acceptor: net.Server;
  /** Serves connections, but accepts none. */
  readonly #server: Server;
  readonly #app: Koa;
  readonly #handle: ReturnType<Koa['callback']>;
  /** How many connections were accepted, also those that were refused. */
  acceptedConnections = 0;
  #isServing = false;
  #closed: Promise<void> | undefined;

  constructor(options: HttpListenerOptions) {
    this.#options = options;
    this.#connections = new Connections(options);
    this.#app = application(options);
    this.#handle = this.#app.callback();
    const accept = this.adopt.bind(this);
    this.#tls = options.tls && new TlsAcceptor({ ...options, tls: options.tls, accept });
    this.#acceptor = this.#tls?.server ?? net.createServer({ allowHalfOpen: true, noDelay: true }, accept);
    this.#server = newServer(options);
    // 100 Continue is sent by the reader of the body, and only if it accepts the body.
    for (const event of ['request', 'checkContinue', 'checkExpectation']) {
      this.#server.on(event, (req: IncomingMessage, res: ServerResponse) => this.#onRequest(req, res));
    }
    this.#server.on('clientError', (error: ParseError, socket: Socket) => this.#onParseError(error, socket));
  }

  /** Where it listens. */
  get address(): AddressInfo {
    return this.#acceptor.address() as AddressInfo;
  }

  get connectionCount(): number {
    return this.#connections.count;
  }

  /** Replaces the certificate of new connections. */
  replaceTls(next: HttpTls): void {
    this.#tls?.replace(next);
  }

  /**
   * Accepts connections. When it cannot accept one, that is logged, and it continues to accept others.
   *
   * @throws when it cannot listen, with a human-readable message
   */
  async listen({ host, port, inherited, settings }: TcpAddress): Promise<this> {
    await listen(this.#acceptor, { host, port, inherited, ...(settings !== undefined && { settings }) });
    this.#acceptor.on('error', (error) => {
      this.#options.log.error('a listener has failed', { error: asError(error) });
    });
    return this;
  }

  /** Serves a connection before anything was read from it. It may have been accepted elsewhere. */
  adopt(socket: Socket): void {
    this.acceptedConnections += 1;
    socket.allowHalfOpen = true;
    if (!this.#connections.opened(socket)) return;
    // Node checks the timeouts of requests from this event on.
    if (!this.#isServing) this.#isServing = this.#server.emit('listening');
    this.#server.emit('connection', socket);
    socket.resume();
  }

  /**
   * Stops listening, closes idle connections, finishes the requests in flight, and aborts those that take longer than
   * the grace period. Resolves when all connections are closed. Can be called again.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Stops listening and aborts every connection. */
  abort(): void {
    void this.close();
    for (const socket of this.#connections.sockets) socket.destroy();
  }

  async #close(): Promise<void> {
    const abort = setTimeout(() => {
      for (const socket of this.#connections.sockets) socket.destroy();
    }, this.#options.timeouts.grace);
    const stopped = new Promise((resolve) => void this.#acceptor.close(resolve));
    this.#tls?.endHandshakes();
    this.#server.close();
    for (const socket of this.#connections.sockets) {
      const response = this.#connections.unsent(socket).at(-1);
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

  #onRequest(req: IncomingMessage, res: ServerResponse): void {
    const { limits, direct, onRejected } = this.#options;
    if (!this.#connections.began(req, res)) return;
    if (this.#closed !== undefined) res.setHeader('Connection', 'close');
    const rejection = validateRequest(req, limits) ?? validateTarget(req, () => this.#app.createContext(req, res).path);
    if (rejection === undefined) {
      const answer = direct?.get(req.url!);
      if (answer === undefined) void this.#handle(req, res);
      else answer(req, res);
      return;
    }
    onRejected(rejection.kind, req.socket, rejection.message);
    respondEarly({ req, res }, rejection);
  }

  /**
   * Ends a connection on which something arrived that is not HTTP, or not in time: after the responses to the requests
   * before it, and with one to it, which must not be taken for one of theirs.
   */
  #onParseError(error: ParseError, socket: Socket): void {
    const { limits, onRejected } = this.#options;
    if (!this.#connections.failed(socket)) return;
    socket.pause();
    const unsent = this.#connections.unsent(socket);
    const last = unsent.at(-1);
    if (last?.headersSent === true && !last.req.complete) {
      // A request was rejected before its body was found to be invalid: its response ends the connection.
      last.end();
      return;
    }
    const answer = answerTo(error, limits);
    if (answer !== undefined) onRejected(answer.kind, socket, error.message);
    const before = unsent.findLast(({ req }) => req.complete);
    if (before === undefined || !socket.writable) end();
    else before.once('close', end);

    function end(): void {
      if (answer !== undefined && socket.writable) answerAndClose(socket, answer);
      else socket.destroySoon();
    }
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
  // Node ignores further headers, among them perhaps a second Host. One more, so that validateRequest sees that there
  // are too many.
  server.maxHeadersCount = limits.maxHeaders + 1;
  // Not in Node's documentation: otherwise it ends the connection of a caller that ends its own half before it is
  // answered.
  return Object.assign(server, { httpAllowHalfOpen: true });
}
