import { newAuthority } from '../../support/data/certificates';
import { endedOf, get, hello, windowUpdate } from './frames';
import { type RawClient, connectPlain, connectTls } from './raw-client';
import { TestApplication, type TestServer, startServer } from './test-application';
import { TemporaryFolder } from '../../support/data/temporary-folder';

const AS_STREAM = 'cleartext, read as a stream';

/** A server on one transport, with one client that is served all the time. */
class TransportServer {
  readonly internalErrors: unknown[] = [];
  readonly application = new TestApplication();
  readonly #folder = new TemporaryFolder();
  readonly #authority = newAuthority();
  readonly #opened: RawClient[] = [];
  #server!: TestServer;
  #good!: RawClient;
  #calls = 0;

  constructor(readonly transport: string) {}

  async start(): Promise<void> {
    this.#server = await startServer({
      interpreter: this.application,
      at: this.transport === 'a Unix socket' ? { path: this.#folder.at('socket') } : undefined,
      tls: this.transport === 'TLS' ? this.#authority.issue('localhost') : undefined,
      // The application of the test never ends the work of some calls, so that others would wait for it.
      limits: { lingerMs: 200, pacedStreams: Infinity },
      onInternalError: (error) => this.internalErrors.push(error),
    });
    if (this.transport === AS_STREAM) {
      // As in a version of Node without this method.
      this.#server.listener.prependListener('connection', (socket) => {
        const { _handle: handle } = socket as unknown as { readonly _handle: object };
        Object.defineProperty(handle, 'useUserBuffer', { value: undefined });
      });
    }
    this.#good = this.connect().send(hello());
  }

  get connectionCount(): number {
    return this.#server.connectionCount;
  }

  connect(): RawClient {
    const { address } = this.#server;
    const client = this.transport === 'TLS' ? connectTls(address, { ca: this.#authority.ca }) : connectPlain(address);
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

  async close(): Promise<void> {
    this.#good.close();
    await this.#server.close();
    this.#folder[Symbol.dispose]();
    this.#authority.dispose();
  }
}

/** Describes a server on each transport. Another client is served after each test. */
export function describeTransports(tests: (server: () => TransportServer) => void): void {
  describe.each(['cleartext', AS_STREAM, 'TLS', 'a Unix socket'])('an HTTP/2 server over %s', (transport) => {
    let server: TransportServer;
    beforeAll(() => {
      server = new TransportServer(transport);
      return server.start();
    });
    afterAll(() => server.close());
    afterEach(async () => {
      await server.expectGoodClientServed();
      server.closeOthers();
      expect(server.internalErrors).toEqual([]);
    });
    tests(() => server);
  });
}
