import { type Socket, connect, createServer } from 'node:net';
import { LocalServer } from './local-server';

/** What the proxy does with the bytes that it receives. */
export type Fault =
  /** Forwards them. */
  | 'none'
  /** Accepts connections, but forwards nothing, on existing connections either. */
  | 'black hole'
  /** Forwards requests, but drops replies. */
  | 'lost replies'
  /** Resets new connections immediately. */
  | 'refused';

/** A TCP proxy on a free port of 127.0.0.1 that simulates network faults. */
export class FaultProxy extends LocalServer {
  readonly #target: () => { readonly port: number };
  fault: Fault = 'none';
  /** Milliseconds by which replies are late. */
  delay = 0;
  /** The replies that are late and not yet forwarded. */
  lateReplies = 0;
  /** All that have been late. */
  delayed = 0;
  /** The connections to the target, by those of the clients. */
  readonly #pairs = new Map<Socket, Socket>();
  #cutAfter = Infinity;

  private constructor(target: () => { readonly port: number }) {
    // Without delay: the second part of a reply would wait for the acknowledgement of the first, 40 ms.
    super(createServer({ noDelay: true }, (client) => this.#accept(client)));
    this.#target = target;
  }

  /** @param target the address to connect to, evaluated for each connection */
  static start(target: () => { readonly port: number }): Promise<FaultProxy> {
    return new FaultProxy(target).listen();
  }

  get connections(): number {
    return this.#pairs.size;
  }

  /** Closes every connection gracefully. */
  cut(): void {
    for (const [client, server] of this.#pairs) {
      client.end();
      server.destroy();
    }
  }

  /** Resets every connection. */
  reset(): void {
    for (const [client, server] of this.#pairs) {
      client.resetAndDestroy();
      server.destroy();
    }
  }

  /** Sends these bytes to every client, as if its server had. */
  sendToClients(bytes: string): void {
    for (const client of this.#pairs.keys()) client.write(bytes);
  }

  /** Forwards this many further bytes of replies over all connections, then closes the connection that exceeds them. */
  cutAfterReplyBytes(bytes: number): void {
    this.#cutAfter = bytes;
  }

  #accept(client: Socket): void {
    if (this.fault === 'refused') {
      client.resetAndDestroy();
      return;
    }
    const server = connect({ port: this.#target().port, host: '127.0.0.1', noDelay: true });
    /** Replies that are late: what follows them must not overtake them when the delay ends. */
    const late: Buffer[] = [];
    this.#pairs.set(client, server);
    const drop = (): void => {
      this.#pairs.delete(client);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) socket.on('error', drop).on('close', drop);
    client.on('data', (bytes) => {
      if (this.fault !== 'black hole') server.write(bytes);
    });
    server.on('data', (bytes) => {
      if (this.fault === 'black hole' || this.fault === 'lost replies') return;
      if (this.delay > 0 || late.length > 0) {
        late.push(bytes);
        this.lateReplies += 1;
        this.delayed += 1;
        setTimeout(() => {
          this.lateReplies -= 1;
          client.write(late.shift()!);
        }, this.delay);
        return;
      }
      if (bytes.length < this.#cutAfter) {
        this.#cutAfter -= bytes.length;
        client.write(bytes);
        return;
      }
      client.end(bytes.subarray(0, this.#cutAfter));
      this.#cutAfter = Infinity;
      server.destroy();
    });
  }
}
