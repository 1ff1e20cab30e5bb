import { once } from 'node:events';
import { type RequestListener, type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';

/** The name of the interface with the address ::1; undefined on a machine without IPv6. */
export const LOOPBACK_IPV6 = Object.entries(networkInterfaces()).find(([, addresses]) =>
  addresses?.some(({ address }) => address === '::1'),
)?.[0];

export const withIpv6 = LOOPBACK_IPV6 === undefined ? it.skip : it;

/** Where to listen; by default on a free port of 127.0.0.1. */
interface At {
  readonly host: string;
  readonly port: number;
}

/** A debug listener that answers as a test requires. */
export class ApiStub implements AsyncDisposable {
  readonly address: string;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    const { address, family, port } = server.address() as AddressInfo;
    this.address = `${family === 'IPv6' ? `[${address}]` : address}:${port}`;
  }

  static async start(listener: RequestListener, at: Partial<At> = {}): Promise<ApiStub> {
    const server = createServer(listener).listen({ host: '127.0.0.1', port: 0, ...at });
    await once(server, 'listening');
    return new ApiStub(server);
  }

  /** Answers every request with JSON. */
  static answering(json: unknown, status = 200, at: Partial<At> = {}): Promise<ApiStub> {
    return ApiStub.start((_request, response) => {
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(json));
    }, at);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}
