import { once } from 'node:events';
import { type AddressInfo, type Server, type Socket, createServer } from 'node:net';
import { Arrivals } from '../waiting/arrivals';

/** A server that accepts connections and never responds. */
export class SilentPeer implements AsyncDisposable {
  readonly #sockets: Socket[] = [];
  /** Connections that the client has closed. */
  readonly closed = new Arrivals<void>('the end of a connection');
  readonly #server: Server;

  private constructor(reads: boolean) {
    this.#server = createServer({ pauseOnConnect: !reads }, (socket) => {
      this.#sockets.push(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => this.closed.add());
      if (reads) socket.resume();
    });
  }

  /** @param reads whether it reads what it receives */
  static async start({ reads = true } = {}): Promise<SilentPeer> {
    const peer = new SilentPeer(reads);
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
