import { once } from 'node:events';
import { type AddressInfo, type Server, connect, createServer } from 'node:net';
import { pipeline } from 'node:stream';

/**
 * A TCP proxy in front of memcached that lets something happen between a reply NOT_FOUND and its arrival at the client. It ends
 * after its clients.
 */
export class RacingProxy implements AsyncDisposable {
  /** Called before the reply is forwarded. */
  onMiss: () => Promise<unknown> = () => Promise.resolve();
  readonly #server: Server;

  /** @param target `host:port` of the server */
  private constructor(target: string) {
    const [host, port] = target.split(':');
    this.#server = createServer((client) => {
      const server = connect(Number(port), host);
      pipeline(
        client,
        server,
        (replies) => this.#forwarded(replies),
        client,
        () => undefined,
      );
    }).listen(0, '127.0.0.1');
  }

  static async start(target: string): Promise<RacingProxy> {
    const proxy = new RacingProxy(target);
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async *#forwarded(replies: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
    for await (const reply of replies) {
      if (reply.includes('NOT_FOUND')) await this.onMiss();
      yield reply;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    await once(this.#server, 'close');
  }
}
