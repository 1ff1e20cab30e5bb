import { once } from 'node:events';
import { type AddressInfo, type Server, type Socket, createServer } from 'node:net';
import { Arrivals } from '../waiting/arrivals';

/** A server that accepts connections and never responds. */
export class SilentPeer implements AsyncDisposable {
  readonly #sockets: Socket[] = [];
  /** Connections that the client has closed. */
  readonly closed = new Arrivals<void>('the end of a connection');
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((socket) => {
      this.#sockets.push(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => this.closed.add());
      socket.resume();
    });
  }

  static async start(): Promise<SilentPeer> {
    const peer = new SilentPeer();
    peer.#server.listen(0, '127.0.0.1');
    await once(peer.#server, 'listening');
    return peer;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
