import type { Socket } from 'node:net';
import { CommandServer, type Reply, encode } from './command-server';

const MASTER_NAME = 'counters';

/** Which master a sentinel names. */
export interface SentinelView {
  readonly master: { readonly port: number };
}

/** A sentinel that names the master that the test says, however old this information is. */
export class FakeSentinel implements AsyncDisposable {
  view: SentinelView;
  readonly #subscribers = new Set<Socket>();
  readonly #server = new CommandServer((name, args, client) => this.#answer(name, args, client));
  /** How often it was queried for the master. */
  queries = 0;
  /** Queries are answered, with the view at their arrival, when this has resolved. */
  held: Promise<unknown> = Promise.resolve();

  private constructor(view: SentinelView) {
    this.view = view;
  }

  static async start(view: SentinelView): Promise<FakeSentinel> {
    const sentinel = new FakeSentinel(view);
    await sentinel.#server.listen();
    return sentinel;
  }

  get address(): string {
    return this.#server.address;
  }

  get subscribers(): number {
    return this.#subscribers.size;
  }

  /** Names this master from now on, and sends `+switch-master`. */
  announce(view: SentinelView): void {
    const message = `${MASTER_NAME} 127.0.0.1 ${this.view.master.port} 127.0.0.1 ${view.master.port}`;
    this.view = view;
    for (const client of this.#subscribers) client.write(encode(['message', '+switch-master', message]));
  }

  /** Closes the connections of all clients; they may connect again. */
  cut(): void {
    this.#server.cut();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server[Symbol.asyncDispose]();
  }

  #answer(name: string, args: readonly string[], client: Socket): Reply | Promise<Reply> {
    if (name === 'subscribe') {
      this.#subscribers.add(client);
      client.once('close', () => this.#subscribers.delete(client));
      return ['subscribe', args[0] ?? '', 1];
    }
    if (name !== 'sentinel') return 'PONG';
    if (args[0]?.toLowerCase() !== 'get-master-addr-by-name') return [];
    this.queries += 1;
    const port = String(this.view.master.port);
    return this.held.then(() => ['127.0.0.1', port]);
  }
}
