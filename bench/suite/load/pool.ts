import type { CallListener, Connection, Messages, Target } from './connection';
import { GrpcConnection } from './grpc-connection';
import { JsonConnection } from './json-connection';

/** Milliseconds until a connection that ended or could not be opened is opened again. */
const REOPEN_AFTER = 50;

export interface PoolOptions {
  readonly protocol: 'grpc' | 'json';
  readonly targets: readonly Target[];
  /** Connections to all targets together. */
  readonly connections: number;
  readonly messages: Messages;
}

/** Connections to the targets in equal numbers, which are opened again when they end. Calls go to them in turn. */
export class Pool {
  readonly #options: PoolOptions;
  readonly #listener: CallListener;
  #open: Connection[] = [];
  readonly #targets = new Map<Connection, Target>();
  /** Calls that no connection can take at present. */
  #parked: (readonly [number: number, due: number])[] = [];
  #turn = 0;
  #flushesSoon = false;
  #isClosed = false;

  constructor(options: PoolOptions, listener: Omit<CallListener, 'returned' | 'closed'>) {
    this.#options = options;
    this.#listener = {
      answered: (...call) => listener.answered(...call),
      failed: (number, due) => listener.failed(number, due),
      returned: (number, due) => {
        this.call(number, due);
        this.flushSoon();
      },
      closed: (connection) => this.#onClosed(connection),
      onResponse: listener.onResponse,
    };
  }

  /** Opens the connections; rejects when one cannot be opened. */
  async open(): Promise<void> {
    const { connections, targets } = this.#options;
    await Promise.all(
      Array.from({ length: connections }, (_, index) => this.#connect(targets[index % targets.length]!)),
    );
  }

  get connections(): readonly Connection[] {
    return this.#open;
  }

  get outstanding(): number {
    let sum = this.#parked.length;
    for (const connection of this.#targets.keys()) sum += connection.outstanding;
    return sum;
  }

  call(number: number, due: number): void {
    for (let tries = this.#open.length; tries > 0; tries -= 1) {
      this.#turn = (this.#turn + 1) % this.#open.length;
      const connection = this.#open[this.#turn]!;
      if (!connection.isUsable) continue;
      connection.call(number, due);
      return;
    }
    this.#parked.push([number, due]);
  }

  flush(): void {
    for (const connection of this.#open) connection.flush();
  }

  /** Writes what is added until the end of this turn. */
  flushSoon(): void {
    if (this.#flushesSoon) return;
    this.#flushesSoon = true;
    setImmediate(() => {
      this.#flushesSoon = false;
      this.flush();
    });
  }

  /** Ends the oldest connection after its calls, and opens another one. */
  async replaceOldest(): Promise<void> {
    const oldest = this.#open.shift();
    if (oldest === undefined) return;
    const target = this.#targets.get(oldest)!;
    await this.#connect(target).catch(() => undefined);
    oldest.end();
  }

  close(): void {
    this.#isClosed = true;
    for (const connection of this.#targets.keys()) connection.destroy();
  }

  async #connect(target: Target): Promise<void> {
    const { protocol, messages } = this.#options;
    const connection =
      protocol === 'json'
        ? new JsonConnection(target, messages, this.#listener)
        : new GrpcConnection(target, messages, this.#listener);
    this.#targets.set(connection, target);
    await connection.opened;
    this.#open.push(connection);
    for (const call of this.#parked.splice(0)) this.call(...call);
    this.flush();
  }

  #onClosed(connection: Connection): void {
    const target = this.#targets.get(connection);
    this.#targets.delete(connection);
    const wasOpen = this.#open.includes(connection);
    this.#open = this.#open.filter((each) => each !== connection);
    if (this.#isClosed || target === undefined || !wasOpen) return;
    void this.#reopen(target);
  }

  async #reopen(target: Target): Promise<void> {
    while (!this.#isClosed) {
      await new Promise((resolve) => setTimeout(resolve, REOPEN_AFTER));
      const isOpen = await this.#connect(target).then(
        () => true,
        () => false,
      );
      if (isOpen) return;
    }
  }
}
