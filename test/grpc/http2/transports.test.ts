import { ErrorCode, FrameType } from '../../../src/grpc/http2/protocol';
import { until } from '../../support/waiting/until';
import { data, endedOf, get, goawaysOf, headers, hello, ping, request, times, windowUpdate } from './frames';
import { type RawClient, connectPlain } from './raw-client';
import { TestApplication, type TestServer, startServer } from './test-application';
import { describeTransports } from './transports';

describeTransports((server) => {
  it('delivers GOAWAY to a client that continues to send', async () => {
    for (let round = 0; round < 5; round += 1) {
      const client = server().connect().send(hello(), data(2, 'x'), Buffer.alloc(300_000));
      await client.until('the end', () => client.isEnded);
      expect(goawaysOf(client.frames)).toEqual([expect.objectContaining({ code: ErrorCode.PROTOCOL_ERROR })]);
    }
  });

  it('keeps no connection of a client that disconnects at any byte of its handshake or call', async () => {
    const bytes = Buffer.concat([hello(), headers(1, request('/hold')), data(1, 'x'.repeat(20), true)]);
    for (let length = 0; length < bytes.length; length += 3) {
      const client = server().connect().send(bytes.subarray(0, length));
      client.socket.once(server().transport === 'TLS' ? 'secureConnect' : 'connect', () => {
        if (server().transport === 'cleartext') client.socket.resetAndDestroy();
        else client.socket.destroy();
      });
      await client.until('the close', () => client.isClosed);
    }
    await until('all other connections are closed', () => server().connectionCount <= 1);
    expect(server().connectionCount).toBe(1);
  });

  it('uses no more memory for a client that does not read, and serves other clients', async () => {
    const client = server()
      .connect()
      .send(hello([4, 2 ** 31 - 1]), windowUpdate(0, 2 ** 31 - 1 - 65_535));
    await client.until('SETTINGS', () => client.frames.length > 1);
    client.socket.pause();
    const before = process.memoryUsage().rss;
    client.send(times(1_000, (at) => get(2 * at + 1, '/big/60000')));
    for (let at = 0; at < 20; at += 1) await server().expectGoodClientServed();

    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 2 ** 20);
  });
});

describe('an HTTP/2 server', () => {
  let server: TestServer | undefined;
  afterEach(async () => {
    await server?.close();
    server = undefined;
  });

  /** A client whose request is being worked on. */
  async function clientWithHeldRequest({ address }: TestServer): Promise<RawClient> {
    const client = connectPlain(address).send(hello(), get(1, '/hold'), ping('settled.'));
    return client.until('the request', () => client.isAcknowledged('settled.'));
  }

  it('drain rejects new connections, lets open streams finish, and closes all connections', async () => {
    const application = new TestApplication();
    server = await startServer({ interpreter: application });
    const client = await clientWithHeldRequest(server);
    const drained = server.drain(600_000);
    await client.until('GOAWAY', () => goawaysOf(client.frames).length === 1);
    const late = connectPlain(server.address);
    await late.until('the close of the late connection', () => late.isClosed);
    const { payload } = client.frames.findLast(({ type, flags }) => type === FrameType.PING && flags === 0)!;
    client.send(ping(payload.toString('latin1'), 1));
    await client.until('the second GOAWAY', () => goawaysOf(client.frames).length === 2);
    application.finish(application.held[0]!, 'last');
    await client.until('the end', () => client.isEnded);
    expect(endedOf(client.frames)).toEqual([1]);
    client.close();
    await drained;
  });

  it('drain waits only for clients that have sent something, until they close their connections', async () => {
    server = await startServer();
    const silent = connectPlain(server.address);
    const client = connectPlain(server.address).send(hello());
    await silent.until('SETTINGS', () => silent.frames.length > 0);
    await client.until('SETTINGS', () => client.frames.length > 2);
    const drained = server.drain(600_000);
    await client.until('GOAWAY', () => goawaysOf(client.frames).length > 0);
    await silent.until('the close', () => silent.isClosed);
    client.close();
    await drained;
    expect(server.connectionCount).toBe(0);
  });
});
