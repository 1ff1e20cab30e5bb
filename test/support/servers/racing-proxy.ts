import { once } from 'node:events';
import { type AddressInfo, type Server, type Socket, connect, createServer } from 'node:net';

/** A TCP proxy in front of memcached that lets something happen between a reply NOT_FOUND and its arrival at the client. */
export class RacingProxy implements AsyncDisposable {
  /** Called before the reply is forwarded. */
  onMiss: () => Promise<unknown> = () => Promise.resolve();
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(target: string) {
    const [host, port] = target.split(':');
    this.#server = createServer((client) => {
      const server = connect(Number(port), host);
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket
          .on('error', () => undefined)
          .on('close', () => {
            client.destroy();
            server.destroy();
          });
      }
      client.pipe(server);
      let forwarded = Promise.resolve();
      server.on('data', (reply: Buffer) => {
        forwarded = forwarded.then(async () => {
          if (reply.includes('NOT_FOUND')) await this.onMiss();
          client.write(reply);
        });
      });
    });
  }

  /** @param target `host:port` of the server */
  static async start(target: string): Promise<RacingProxy> {
    const proxy = new RacingProxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
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
