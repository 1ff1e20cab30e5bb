import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Authority, newAuthority } from '../../support/data/certificates';
import { endedOf, get, hello, windowUpdate } from './frames';
import { type RawClient, connectPlain, connectTls } from './raw-client';
import { TestApplication, type TestServer, startServer } from './test-application';

export const TRANSPORTS = ['cleartext', 'TLS', 'a Unix socket'] as const;
export type Transport = (typeof TRANSPORTS)[number];

/** A server on one transport, with one client that is served all the time. */
export class TransportServer implements AsyncDisposable {
  readonly internalErrors: unknown[] = [];
  readonly #folder = mkdtempSync(join(tmpdir(), 'weir-http2-'));
  readonly #authority: Authority = newAuthority();
  readonly #opened: RawClient[] = [];
  readonly #transport: Transport;
  #server!: TestServer;
  #good!: RawClient;
  #calls = 0;

  private constructor(transport: Transport) {
    this.#transport = transport;
  }

  static async start(transport: Transport): Promise<TransportServer> {
    const started = new TransportServer(transport);
    started.#server = await startServer({
      at: transport === 'a Unix socket' ? { path: join(started.#folder, 'socket') } : { host: '127.0.0.1', port: 0 },
      tls: transport === 'TLS' ? started.#authority.issue('localhost') : undefined,
      // The application of the test never ends the work of some calls, so that others would wait for it.
      limits: { lingerMs: 200, pacedStreams: Infinity },
      application: new TestApplication(),
      onInternalError: (error) => started.internalErrors.push(error),
    });
    started.#good = started.connect().send(hello());
    return started;
  }

  get connectionCount(): number {
    return this.#server.connectionCount;
  }

  connect(): RawClient {
    const { address } = this.#server;
    const client = this.#transport === 'TLS' ? connectTls(address, { ca: this.#authority.ca }) : connectPlain(address);
    this.#opened.push(client);
    return client;
  }

  async expectGoodClientServed(): Promise<void> {
    const id = 2 * this.#calls + 1;
    this.#calls += 1;
    this.#good.send(get(id), windowUpdate(0, 4));
    await this.#good.until(`an answer on stream ${id}`, () => endedOf(this.#good.frames.slice(-3)).includes(id));
  }

  /** Closes the connections of all other clients. */
  closeOthers(): void {
    for (const client of this.#opened.splice(1)) client.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#opened) client.close();
    await this.#server.close();
    rmSync(this.#folder, { recursive: true });
    this.#authority.dispose();
  }
}
