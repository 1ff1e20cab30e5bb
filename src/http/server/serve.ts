import { type RequestListener, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type Koa from 'koa';
import { type ListenOptions, listen } from './listen';

/** A listener that serves. */
export interface Listening {
  readonly address: AddressInfo;
  /**
   * Takes no new connection, answers what is being asked, closes the rest at once, and is done; what takes longer than
   * the grace period is cut off.
   */
  close(): Promise<void>;
}

/** Times in milliseconds; what takes longer loses its connection. */
export interface HttpTimeouts {
  /** From a request's first byte to the end of its headers. */
  readonly headers: number;
  /** From a request's first byte to the end of its body. */
  readonly request: number;
  /** Between two requests of a connection. Longer than usual for proxies, so that they are the ones to let go. */
  readonly keepAlive: number;
  /** Without a byte in either direction, whatever the connection is doing. */
  readonly inactive: number;
  /** For what is being answered when the listener closes. */
  readonly grace: number;
}

/** Serves an application on a port of its own. */
export async function serve(app: Koa, at: ListenOptions, timeouts: HttpTimeouts): Promise<Listening> {
  const server = createServer({
    headersTimeout: timeouts.headers,
    requestTimeout: timeouts.request,
    keepAliveTimeout: timeouts.keepAlive,
    connectionsCheckingInterval: Math.ceil(Math.min(timeouts.headers, timeouts.request) / 4),
  });
  server.timeout = timeouts.inactive;

  /** Each connection's latest answer. Kept so, a request costs one entry and no listener. */
  const connections = new Map<Socket, ServerResponse | undefined>();
  let closing = false;
  server.on('connection', (socket: Socket) => {
    connections.set(socket, undefined);
    socket.once('close', () => connections.delete(socket));
  });

  const handle: RequestListener = app.callback();
  const onRequest: RequestListener = (request, response) => {
    connections.set(request.socket, response);
    if (closing) response.setHeader('Connection', 'close');
    return handle(request, response);
  };
  server.on('request', onRequest);
  // Whoever reads the body says when the caller may send it.
  server.on('checkContinue', onRequest);

  const address = await listen(server, at);
  return {
    address,
    close: () =>
      new Promise((resolve) => {
        closing = true;
        const cut = setTimeout(() => server.closeAllConnections(), timeouts.grace);
        server.close(() => {
          clearTimeout(cut);
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
