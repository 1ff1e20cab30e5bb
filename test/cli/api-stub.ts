import { once } from 'node:events';
import { type RequestListener, type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A debug listener that answers as a test requires. */
export class ApiStub implements AsyncDisposable {
  readonly address: string;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(listener: RequestListener): Promise<ApiStub> {
    const server = createServer(listener).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new ApiStub(server);
  }

  /** Answers every request with JSON. */
  static answering(json: unknown, status = 200): Promise<ApiStub> {
    return ApiStub.start((_request, response) => {
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(json));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}
