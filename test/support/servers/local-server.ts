import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';

/** A server of the tests, usually on a free port of 127.0.0.1, that ends its connections when it is disposed. */
export class LocalServer implements AsyncDisposable {
  /** Its open connections. */
  readonly sockets = new Set<Socket>();
  /** How many connections it has accepted. */
  accepted = 0;
  readonly #server: Server;

  constructor(server: Server) {
    this.#server = server.on('connection', (socket: Socket) => {
      this.accepted += 1;
      this.sockets.add(socket.on('error', () => undefined));
      socket.once('close', () => this.sockets.delete(socket));
    });
  }

  /**
   * @param at a port, by default a free one, or the path of a Unix socket
   * @param host of the port; `0.0.0.0`: all addresses that begin with 127 are its own
   */
  async listen(at: number | string = 0, host = '127.0.0.1'): Promise<this> {
    this.#server.listen(typeof at === 'number' ? { port: at, host } : { path: at });
    await once(this.#server, 'listening');
    return this;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
