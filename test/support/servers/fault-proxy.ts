import { once } from 'node:events';
import { type AddressInfo, type Server, type Socket, connect, createServer } from 'node:net';

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
export class FaultProxy implements AsyncDisposable {
  readonly #target: () => { readonly port: number };
  fault: Fault = 'none';
  readonly #pairs = new Set<readonly [client: Socket, server: Socket]>();
  readonly #server: Server;
  #cutAfter = Infinity;
  accepted = 0;

  private constructor(target: () => { readonly port: number }) {
    this.#target = target;
    this.#server = createServer({ allowHalfOpen: false }, (client) => this.#accept(client));
  }

  /** @param target the address to connect to, evaluated for each connection */
  static async start(target: () => { readonly port: number }): Promise<FaultProxy> {
    const proxy = new FaultProxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
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
    for (const [client] of this.#pairs) client.write(bytes);
  }

  /** Forwards this many further bytes of replies over all connections, then closes the connection that exceeds them. */
  cutAfterReplyBytes(bytes: number): void {
    this.#cutAfter = bytes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.reset();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(client: Socket): void {
    this.accepted += 1;
    if (this.fault === 'refused') {
      client.resetAndDestroy();
      return;
    }
    const server = connect(this.#target().port, '127.0.0.1');
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    const drop = (): void => {
      this.#pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    for (const socket of pair) socket.on('error', drop).on('close', drop);
    client.on('data', (bytes) => {
      if (this.fault !== 'black hole') server.write(bytes);
    });
    server.on('data', (bytes) => {
      if (this.fault === 'black hole' || this.fault === 'lost replies') return;
      if (bytes.length < this.#cutAfter) {
        this.#cutAfter -= bytes.length;
        client.write(bytes);
        return;
      }
      const part = bytes.subarray(0, this.#cutAfter);
      this.#cutAfter = Infinity;
      client.end(part);
      server.destroy();
    });
  }
}
