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

jest.setTimeout(30_000);

describe.each<Transport>(['cleartext', 'TLS', 'a Unix socket'])('over %s', (transport) => {
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
      limits: { lingerMs: 200 },
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

  it.each(REQUIREMENTS)('$section: $title', async ({ before, bytes, then }) => {
    const client = connect();
    if (before.length > 0) {
      client.send(before, ping('settled.'));
      await client.until('the beginning', () => client.heard('settled.'));
    }
    client.send(bytes);
    if ('goaway' in then) {
      await client.until('the end', () => client.isEnded);
      // Our last words arrived, although the peer had sent more than was read.
      expect(goawaysOf(client.frames)).toEqual([expect.objectContaining({ code: then.goaway })]);
    } else {
      client.send(ping('alive...'));
      const answered = 'answers' in then ? then.answers : [];
      await client.until('a sign of life and all answers', () => {
        const ended = endedOf(client.frames);
        return client.heard('alive...') && answered.every((stream) => ended.includes(stream));
      });
      expect(resetsOf(client.frames)).toEqual('resets' in then ? then.resets : []);
      if ('answers' in then) expect(endedOf(client.frames)).toEqual(then.answers);
      expect(goawaysOf(client.frames)).toEqual([]);
    }
    await expectGoodClientServed();
  });

  it('a GOAWAY arrives also when the peer goes on sending', async () => {
    for (let round = 0; round < 5; round += 1) {
      const client = connect().send(hello(), data(2, 'x'), Buffer.alloc(300_000));
      await client.until('the end', () => client.isEnded);
      expect(goawaysOf(client.frames)).toEqual([expect.objectContaining({ code: ErrorCode.PROTOCOL_ERROR })]);
    }
    await expectGoodClientServed();
  });

  it('a peer that vanishes at any byte of its handshake and its call leaves no connection behind', async () => {
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
    await eventually('all others gone', () => server.connectionCount === 1);
  });

  it('a peer that never reads does not grow the server, and others are served', async () => {
    const client = connect().send(hello([4, 2 ** 31 - 1]), windowUpdate(0, 2 ** 31 - 1 - 65_535));
    await client.until('SETTINGS', () => client.frames.length > 1);
    client.socket.pause();
    const before = process.memoryUsage().rss;
    for (let at = 0; at < 1_000; at += 1) client.send(get(2 * at + 1, '/big/60000'));
    for (let at = 0; at < 20; at += 1) await expectGoodClientServed();

    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 2 ** 20);
    client.close();
  });

  it('rapid reset is told to calm down, and others are served', async () => {
    const client = connect().send(hello());
    const frames = Array.from({ length: 20_000 }, (_, at) =>
      Buffer.concat([get(2 * at + 1, '/hold'), rstStream(2 * at + 1)]),
    );
    client.send(...frames);
    await client.until('the end', () => client.isEnded);

    expect(goawaysOf(client.frames)).toEqual([expect.objectContaining({ code: ErrorCode.ENHANCE_YOUR_CALM })]);
    await expectGoodClientServed();
  });

  it('nothing of this was a defect', () => {
    expect(internalErrors).toEqual([]);
  });

  it('large answers arrive whole through small windows', async () => {
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

describe('closing', () => {
  function start(limits = {}): Promise<TestServer> {
    return startServer({ at: { host: '127.0.0.1', port: 0 }, limits, application: new TestApplication() });
  }

  it('drains: new connections are refused, open streams finish, all is closed', async () => {
    const application = new TestApplication();
    const server = await startServer({ at: { host: '127.0.0.1', port: 0 }, application });
    const client = connectPlain(server.address).send(hello(), get(1, '/hold'), ping('settled.'));
    await client.until('the request', () => client.heard('settled.'));
    const drained = server.drain(10_000);
    await client.until('GOAWAY', () => goawaysOf(client.frames).length === 1);
    const late = connectPlain(server.address);
    await late.until('refusal', () => late.isClosed);
    const { payload } = client.frames.findLast(({ type, flags }) => type === FrameType.PING && flags === 0)!;
    client.send(ping(payload.toString('latin1'), 1));
    await client.until('the second GOAWAY', () => goawaysOf(client.frames).length === 2);
    application.finish(application.held[0]!, 'last words');
    await client.until('the end', () => client.isEnded);

    expect(endedOf(client.frames)).toEqual([1]);
    client.close();
    await drained;
  });

  it('cuts what is left when the grace of a drain is over', async () => {
    const server = await start({ lingerMs: 50 });
    const client = connectPlain(server.address).send(hello(), get(1, '/hold'), ping('settled.'));
    await client.until('the request', () => client.heard('settled.'));
    const drained = server.drain(100);
    await client.until('the end', () => client.isEnded);

    expect(resetsOf(client.frames)).toEqual([[1, ErrorCode.CANCEL]]);
    await drained;
    client.close();
  });

  it('resolves at once without connections, and closes idle ones that take part', async () => {
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

  it('refuses connections over the limit', async () => {
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
    await third.until('refusal', () => third.isClosed);
    expect(rejections).toEqual(['connections']);
    clients[0]!.close();
    await eventually('room', () => server.connectionCount === 1);
    const fourth = connectPlain(server.address);
    await fourth.until('SETTINGS', () => fourth.frames.length > 0);

    for (const client of [...clients, fourth]) client.close();
    await server.close();
  });
});
