import { type IncomingMessage, type RequestListener, type Server, createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type Koa from 'koa';
import { type TcpAddress, listen } from '../../net/listen';
import type { Log } from '../../streams/ports/log';
import { asError } from '../../text/thrown';
import { Connections, type ConnectionsOptions } from './connections';
import type { HttpTimeouts } from './limits';
import { type ParseError, answerAndClose, answerTo } from './parse-errors';
import { respondEarly } from './respond-early';
import type { RequestHandler } from './respond-json';
import { validateRequest, validateTarget } from './validate-request';

/** An HTTP server, wherever its connections are accepted. */
export interface HttpServer {
  /**
   * Stops listening, closes idle connections, finishes the requests in flight, and aborts those that take longer than the grace
   * period. Resolves when all connections are closed.
   */
  close(): Promise<void>;
  /** Serves a connection that was accepted elsewhere, before anything was read from it. */
  adopt(socket: Socket): void;
}

/** An HTTP server that accepts its connections itself. */
export interface ListeningHttpServer extends HttpServer {
  readonly address: AddressInfo;
}

export interface HttpServerOptions extends ConnectionsOptions {
  readonly timeouts: HttpTimeouts;
  /** The requests that the application need not see. */
  readonly direct?: DirectRoute | undefined;
}

/** The requests with a method and a target, literally, and what handles them. */
export interface DirectRoute {
  readonly method: string;
  readonly target: string;
  readonly handle: RequestHandler;
}

/** Starts an HTTP server for a Koa application. When it cannot accept a connection, that is logged, and it goes on. */
export async function startHttpServer(
  app: Koa,
  options: HttpServerOptions & { readonly at: TcpAddress; readonly log: Log },
): Promise<ListeningHttpServer> {
  const { server, ...rest } = createHttpServer(app, options);
  const address = await listen(server, options.at);
  server.on('error', (error) => options.log.error('a listener has failed', { error: asError(error) }));
  return { ...rest, address };
}

/** An HTTP server for connections that are accepted elsewhere. */
export function adoptingHttpServer(app: Koa, options: HttpServerOptions): HttpServer {
  const { server, ...rest } = createHttpServer(app, options);
  // Node checks the timeouts of requests from this event on.
  server.emit('listening');
  return rest;
}

function createHttpServer(app: Koa, options: HttpServerOptions): HttpServer & { readonly server: Server } {
  const { timeouts, limits, onRejected, direct } = options;
  const connections = new Connections(options);
  const server = newServer(options);
  let isClosing = false;
  const handle: RequestListener = app.callback();
  /** Koa reports the failures during its own responses. */
  function reportFailure(error: Error, socket: Socket): void {
    const due = connections.lastUnsent(socket);
    if (due !== undefined && direct !== undefined && isFor(direct, due.req)) app.emit('error', error);
  }
  const onRequest: RequestListener = (request, response) => {
    if (!connections.began(request, response)) return undefined;
    if (isClosing) response.setHeader('Connection', 'close');
    let invalid = validateRequest(request, limits);
    if (invalid === undefined && direct !== undefined && isFor(direct, request)) {
      return direct.handle(request, response);
    }
    invalid ??= validateTarget(request, () => app.createContext(request, response).path);
    if (invalid === undefined) return handle(request, response);
    onRejected(invalid.kind, request.socket, invalid.response.message);
    return respondEarly(request, response, invalid.response);
  };
  server.on('connection', (socket: Socket) => {
    connections.opened(socket);
    if (direct !== undefined) socket.on('error', (error) => reportFailure(error, socket));
  });
  server.on('request', onRequest);
  // 100 Continue is sent by the reader of the body, and only if it accepts the body.
  server.on('checkContinue', onRequest);
  server.on('checkExpectation', onRequest);
  server.on('clientError', (error: ParseError, socket: Socket) =>
    onParseError(error, socket, { connections, options }),
  );

  return {
    server,
    adopt: (socket) => {
      socket.allowHalfOpen = true;
      server.emit('connection', socket);
      // It may have been accepted without reading from it.
      socket.resume();
    },
    close: () => {
      isClosing = true;
      return close(server, connections, timeouts.grace);
    },
  };
}

function isFor({ method, target }: DirectRoute, request: IncomingMessage): boolean {
  return request.url === target && request.method === method;
}

/** Ends a connection on which something arrived that is not HTTP, or not in time. */
function onParseError(
  error: ParseError,
  socket: Socket,
  { connections, options }: { readonly connections: Connections; readonly options: HttpServerOptions },
): void {
  const answer = answerTo(error, options.limits);
  const due = connections.lastUnsent(socket);
  const isAnswered = due !== undefined && due.headersSent && !due.req.complete;
  if (isAnswered) {
    // The request was rejected before its body was found to be invalid.
    socket.destroySoon();
    return;
  }
  if (answer !== undefined) options.onRejected(answer.kind, socket, error.message);
  // An answer must not be taken for the response to an earlier request.
  if (answer !== undefined && socket.writable && due?.req.complete !== true) answerAndClose(socket, answer);
  else socket.destroy();
}

function newServer({ timeouts, limits }: HttpServerOptions): Server {
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

function close(server: Server, connections: Connections, grace: number): Promise<void> {
  return new Promise((resolve) => {
    const abort = setTimeout(() => server.closeAllConnections(), grace);
    // The server itself waits only for the connections that it has accepted.
    server.close(() => {
      connections.onceEmpty(() => {
        clearTimeout(abort);
        connections.close();
        resolve();
      });
    });
    for (const socket of connections.sockets) {
      const response = connections.lastUnsent(socket);
      if (response === undefined) socket.destroy();
      else {
        response.once('close', () => socket.destroySoon());
        if (!response.headersSent) response.setHeader('Connection', 'close');
      }
    }
  });
}
