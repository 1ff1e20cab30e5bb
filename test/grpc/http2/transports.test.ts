import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ErrorCode, FrameType } from '../../../src/grpc/http2/frames/protocol';
import type { Rejection } from '../../../src/grpc/http2/limits/rejections';
import { type Authority, newAuthority } from '../../support/data/certificates';
import {
  data,
  endedOf,
  get,
  goawaysOf,
  headers,
  hello,
  ping,
  request,
  resetsOf,
  rstStream,
  windowUpdate,
} from './frames';
import { type RawClient, connectPlain, eventually, connectTls } from './raw-client';
import { REQUIREMENTS } from './requirements';
import { type TestServer, startServer } from './start-server';
import { TestApplication } from './test-application';

type Transport = 'cleartext' | 'TLS' | 'a Unix socket';

describe.each<Transport>(['cleartext', 'TLS', 'a Unix socket'])('an HTTP/2 server over %s', (transport) => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-http2-'));
  const rejections: Rejection[] = [];
  const internalErrors: unknown[] = [];
  let authority: Authority;
  let server: TestServer;
  let good: RawClient;
  const opened: RawClient[] = [];

  function connect(): RawClient {
    const client =
      transport === 'TLS' ? connectTls(server.address, { ca: authority.ca }) : connectPlain(server.address);
    opened.push(client);
    return client;
  }

  beforeAll(async () => {
    authority = newAuthority();
    server = await startServer({
      at: transport === 'a Unix socket' ? { path: join(folder, 'socket') } : { host: '127.0.0.1', port: 0 },
      tls: transport === 'TLS' ? authority.issue('localhost') : undefined,
      // The application of the test never ends the work of some calls, so that others would wait for it.
      limits: { lingerMs: 200, pacedStreams: Infinity },
      application: new TestApplication(),
      onRejected: (kind) => rejections.push(kind),
      onInternalError: (error) => internalErrors.push(error),
    });
    good = connect().send(hello());
  });

  afterAll(async () => {
    for (const client of opened) client.close();
    await server.close();
    rmSync(folder, { recursive: true });
    authority.dispose();
  });

  afterEach(() => {
    for (const client of opened.splice(1)) client.close();
  });

  let calls = 0;
  async function expectGoodClientServed(): Promise<void> {
    const id = 2 * calls + 1;
    calls += 1;
    good.send(get(id), windowUpdate(0, 4));
    await good.until(`an answer on stream ${id}`, () => endedOf(good.frames.slice(-3)).includes(id));
  }

  it.each(REQUIREMENTS)('$reference: $title', async ({ before, bytes, then }) => {
    const client = connect();
    if (before.length > 0) {
      client.send(before, ping('settled.'));
      await client.until('the beginning', () => client.isAcknowledged('settled.'));
    }
    client.send(bytes);
    if ('goaway' in then) {
      await client.until('the end', () => client.isEnded);
      // The GOAWAY arrived although the client had sent more than the server read.
      expect(goawaysOf(client.frames)).toEqual([expect.objectContaining({ code: then.goaway })]);
    } else {
      client.send(ping('alive...'));
      const answered = 'answers' in then ? then.answers : [];
      await client.until('the acknowledgement of the PING and all answers', () => {
        const ended = endedOf(client.frames);
        return client.isAcknowledged('alive...') && answered.every((stream) => ended.includes(stream));
      });
      expect(resetsOf(client.frames)).toEqual('resets' in then ? then.resets : []);
      if ('answers' in then) expect(endedOf(client.frames)).toEqual(then.answers);
      expect(goawaysOf(client.frames)).toEqual([]);
    }
    await expectGoodClientServed();
  });

  it('delivers GOAWAY to a client that continues to send', async () => {
    for (let round = 0; round < 5; round += 1) {
      const client = connect().send(hello(), data(2, 'x'), Buffer.alloc(300_000));
      await client.until('the end', () => client.isEnded);
      expect(goawaysOf(client.frames)).toEqual([expect.objectContaining({ code: ErrorCode.PROTOCOL_ERROR })]);
    }
    await expectGoodClientServed();
  });

  it('keeps no connection of a client that disconnects at any byte of its handshake or call', async () => {
    const bytes = Buffer.concat([hello(), headers(1, request('/hold')), data(1, 'x'.repeat(20), true)]);
    for (let length = 0; length < bytes.length; length += 3) {
      const client = connect().send(bytes.subarray(0, length));
      client.socket.once(transport === 'TLS' ? 'secureConnect' : 'connect', () => {
        if (client.socket.resetAndDestroy !== undefined && transport === 'cleartext') client.socket.resetAndDestroy();
        else client.socket.destroy();
      });
      await client.until('the close', () => client.isClosed);
    }
    await expectGoodClientServed();
    await eventually('the close of all other connections', () => server.connectionCount === 1);
  });

  it('uses no more memory for a client that does not read, and serves other clients', async () => {
    const client = connect().send(hello([4, 2 ** 31 - 1]), windowUpdate(0, 2 ** 31 - 1 - 65_535));
    await client.until('SETTINGS', () => client.frames.length > 1);
    client.socket.pause();
    const before = process.memoryUsage().rss;
    for (let at = 0; at < 1_000; at += 1) client.send(get(2 * at + 1, '/big/60000'));
    for (let at = 0; at < 20; at += 1) await expectGoodClientServed();

    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 2 ** 20);
    client.close();
  });

  it('ends the connection of a client that resets rapidly, and serves other clients', async () => {
    const client = connect().send(hello());
    const frames = Array.from({ length: 20_000 }, (_, at) =>
      Buffer.concat([get(2 * at + 1, '/hold'), rstStream(2 * at + 1)]),
    );
    client.send(...frames);
    await client.until('the end', () => client.isEnded);

    expect(goawaysOf(client.frames)).toEqual([expect.objectContaining({ code: ErrorCode.ENHANCE_YOUR_CALM })]);
    await expectGoodClientServed();
  });

  it('had no internal error in the tests above', () => {
    expect(internalErrors).toEqual([]);
  });

  it('delivers large responses completely through small windows', async () => {
    const client = connect().send(hello([4, 5_000]));
    client.send(get(1, '/big/100000'));
    let received = 0;
    await client.until('100,000 bytes', () => {
      const bodies = client.frames.filter(({ type }) => type === FrameType.DATA);
      const total = bodies.reduce((sum, { payload }) => sum + payload.length, 0);
      if (total > received) client.send(windowUpdate(1, total - received), windowUpdate(0, total - received));
      received = total;
      return endedOf(client.frames).includes(1);
    });

    expect(received).toBe(100_000);
  });
});

describe('an HTTP/2 server', () => {
  function start(limits = {}): Promise<TestServer> {
    return startServer({ at: { host: '127.0.0.1', port: 0 }, limits, application: new TestApplication() });
  }

  it('drain rejects new connections, lets open streams finish, and closes all connections', async () => {
    const application = new TestApplication();
    const server = await startServer({ at: { host: '127.0.0.1', port: 0 }, application });
    const client = connectPlain(server.address).send(hello(), get(1, '/hold'), ping('settled.'));
    await client.until('the request', () => client.isAcknowledged('settled.'));
    const drained = server.drain(10_000);
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

  it('drain resets the remaining streams when the grace is over', async () => {
    const server = await start({ lingerMs: 50 });
    const client = connectPlain(server.address).send(hello(), get(1, '/hold'), ping('settled.'));
    await client.until('the request', () => client.isAcknowledged('settled.'));
    const drained = server.drain(100);
    await client.until('the end', () => client.isEnded);

    expect(resetsOf(client.frames)).toEqual([[1, ErrorCode.CANCEL]]);
    await drained;
    client.close();
  });

  it('drain resolves immediately without connections, and when idle clients have closed theirs', async () => {
    await (await start()).drain(10_000);
    const server = await start();
    const client = connectPlain(server.address).send(hello());
    await client.until('SETTINGS', () => client.frames.length > 2);
    const drained = server.drain(10_000);
    await client.until('GOAWAY', () => goawaysOf(client.frames).length > 0);
    client.close();
    await drained;

    expect(goawaysOf(client.frames)).toHaveLength(1);
  });

  it('rejects connections over the limit until others are closed', async () => {
    const rejections: Rejection[] = [];
    const server = await startServer({
      at: { host: '127.0.0.1', port: 0 },
      limits: { maxConnections: 2 },
      application: new TestApplication(),
      onRejected: (kind) => rejections.push(kind),
    });
    const clients = [connectPlain(server.address), connectPlain(server.address)];
    for (const client of clients) await client.until('SETTINGS', () => client.frames.length > 0);
    const third = connectPlain(server.address);
    await third.until('the close of the third connection', () => third.isClosed);
    expect(rejections).toEqual(['connections']);
    clients[0]!.close();
    await eventually('a free slot', () => server.connectionCount === 1);
    const fourth = connectPlain(server.address);
    await fourth.until('SETTINGS', () => fourth.frames.length > 0);

    for (const client of [...clients, fourth]) client.close();
    await server.close();
  });
});
