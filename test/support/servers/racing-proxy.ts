import { connect, createServer } from 'node:net';
import { LocalServer } from './local-server';

/** A TCP proxy in front of memcached that lets something happen between a reply NOT_FOUND and its arrival at the client. */
export class RacingProxy extends LocalServer {
  /** Called before the reply is forwarded. */
  onMiss: () => Promise<unknown> = () => Promise.resolve();

  private constructor(target: string) {
    const [host, port] = target.split(':');
    super(
      createServer((client) => {
        const server = connect(Number(port), host).on('error', () => undefined);
        client.on('close', () => server.destroy()).pipe(server.on('close', () => client.destroy()));
        let forwarded = Promise.resolve();
        server.on('data', (reply: Buffer) => {
          forwarded = forwarded.then(async () => {
            if (reply.includes('NOT_FOUND')) await this.onMiss();
            client.write(reply);
          });
        });
      }),
    );
  }

  /** @param target `host:port` of the server */
  static start(target: string): Promise<RacingProxy> {
    return new RacingProxy(target).listen();
  }
}
