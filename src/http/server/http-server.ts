import { type RequestListener, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type Koa from 'koa';
import { type TcpAddress, listen } from '../../net/listen';

/** An HTTP server that is listening. */
export interface HttpServer {
  readonly address: AddressInfo;
  /**
   * Stops listening, closes idle connections, finishes the requests in flight, and aborts those that take longer than the grace
   * period. Resolves when all connections are closed.
   */
  close(): Promise<void>;
}

/** Timeouts in milliseconds. A connection that exceeds one is closed. */
export interface HttpTimeouts {
  /** From the first byte of a request to the end of its headers. */
  readonly headers: number;
  /** From the first byte of a request to the end of its body. */
  readonly request: number;
  /** Between two requests on a connection. Longer than the usual idle timeout of proxies, so that they close first. */
  readonly keepAlive: number;
  /** Without a byte in either direction, in any state of the connection. */
  readonly inactive: number;
  /** For the requests in flight when the server is closed. */
  readonly grace: number;
}

/** Starts an HTTP server for a Koa application. */
export async function startHttpServer(app: Koa, at: TcpAddress, timeouts: HttpTimeouts): Promise<HttpServer> {
  const server = createServer({
    headersTimeout: timeouts.headers,
    requestTimeout: timeouts.request,
    keepAliveTimeout: timeouts.keepAlive,
    connectionsCheckingInterval: Math.ceil(Math.min(timeouts.headers, timeouts.request) / 4),
  });
  server.timeout = timeouts.inactive;

  /** The latest response of each connection. A map entry per request is cheaper than a listener per request. */
  const connections = new Map<Socket, ServerResponse | undefined>();
  let isClosing = false;
  server.on('connection', (socket: Socket) => {
    connections.set(socket, undefined);
    socket.once('close', () => connections.delete(socket));
  });

  const handle: RequestListener = app.callback();
  const onRequest: RequestListener = (request, response) => {
    connections.set(request.socket, response);
    if (isClosing) response.setHeader('Connection', 'close');
    return handle(request, response);
  };
  server.on('request', onRequest);
  // 100 Continue is sent by the reader of the body, and only if it accepts the body.
  server.on('checkContinue', onRequest);

  const address = await listen(server, at);
  return {
    address,
    close: () =>
      new Promise((resolve) => {
        isClosing = true;
        const abort = setTimeout(() => server.closeAllConnections(), timeouts.grace);
        server.close(() => {
          clearTimeout(abort);
          resolve();
        });
        for (const [socket, response] of connections) {
          if (response === undefined || response.writableFinished) socket.destroy();
          else {
            response.once('close', () => socket.destroySoon());
            if (!response.headersSent) response.setHeader('Connection', 'close');
          }
        }
      }),
  };
}
