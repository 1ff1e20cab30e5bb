import type { Socket } from 'node:net';
import { CommandServer, type Reply, encode } from './command-server';

const MASTER_NAME = 'counters';

/** Which master a sentinel names, and the version of this configuration. */
export interface SentinelView {
  readonly master: { readonly port: number };
  /** Undefined: the user has no permission for SENTINEL MASTER. */
  readonly epoch?: number | undefined;
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
    const before = this.view.master.port;
    this.view = view;
    this.sendSwitch(before, view.master.port);
  }

  /** Sends `+switch-master` for these ports, whatever the sentinel names. */
  sendSwitch(from: number, to: number): void {
    const message = `${MASTER_NAME} 127.0.0.1 ${from} 127.0.0.1 ${to}`;
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
    const { master, epoch } = this.view;
    const port = String(master.port);
    switch (args[0]?.toLowerCase()) {
      case 'get-master-addr-by-name':
        this.queries += 1;
        return this.held.then(() => ['127.0.0.1', port]);
      case 'master':
        if (epoch === undefined) return new Error('NOPERM this user has no permissions');
        return ['name', MASTER_NAME, 'ip', '127.0.0.1', 'port', port, 'config-epoch', String(epoch)];
      default:
        return [];
    }
  }
}
