import { Http2Server, type Http2ServerOptions } from '../../../src/grpc/http2/server';
import { type ListenAddress, listen } from '../../../src/net/listen';
import { TestApplication, type TestState } from './test-application';

export type TestServer = Http2Server<string, TestState>;

type Options = Partial<Http2ServerOptions<string, TestState>> & {
  /** A port of 127.0.0.1 that the system chooses, unless given. */
  readonly at?: ListenAddress;
};

/** An HTTP/2 server that listens and serves a {@link TestApplication}, unless given. */
export async function startServer({
  at = { host: '127.0.0.1', port: 0 },
  ...options
}: Options = {}): Promise<TestServer> {
  const server = new Http2Server({ application: new TestApplication(), ...options });
  await listen(server.listener, at);
  return server;
}
