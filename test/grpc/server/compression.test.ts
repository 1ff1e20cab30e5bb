import { Client, compressionAlgorithms, credentials, status } from '@grpc/grpc-js';
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { GrpcStatus } from '../../../src/grpc/method';
import { Inflater, Inflation } from '../../../src/grpc/server/inflater';
import { MAX_MESSAGE_BYTES } from '../../../src/grpc/server/responses';
import { prefixed } from '../../support/clients/http2-connection';
import { until } from '../../support/waiting/until';
import { data, endedOf, hello, rstStream, streamOf } from '../http2/frames';
import { connectPlain } from '../http2/raw-client';
import { callHeaders, callRaw } from './raw-call';
import { type TestServer, startServer, unaryCall } from './servers';

const MIB = 2 ** 20;

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.close());

it('a grpc-js client that compresses with gzip is answered, each of many calls with its own message', async () => {
  const client = new Client(`127.0.0.1:${server.address.port}`, credentials.createInsecure(), {
    'grpc.default_compression_algorithm': compressionAlgorithms.gzip,
    'grpc.max_send_message_length': -1,
  });
  const messages = Array.from({ length: 100 }, (_, at) => randomBytes(at * 1_000).toString('hex'));
  try {
    const echoed = messages.map((message) => unaryCall(client, '/test.Service/Echo', Buffer.from(message), {}));
    expect((await Promise.all(echoed)).map(String)).toEqual(messages);
    const tooLarge = unaryCall(client, '/test.Service/Echo', Buffer.alloc(4 * MIB + 1), {});
    await expect(tooLarge).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
  } finally {
    client.close();
  }
});

it('calls that are cancelled before their messages are decompressed free their memory and their slots', async () => {
  const client = connectPlain(server.address).send(hello());
  const begun = jest.spyOn(Inflation.prototype, 'start');
  try {
    const bomb = prefixed(gzipSync(Buffer.alloc(4 * MIB)), 1);
    for (let call = 1; call <= 100; call += 1) {
      const id = streamOf(call);
      client.send(callHeaders(id, 'Busy', ['grpc-encoding', 'gzip']), data(id, bomb, true));
    }
    await until('they are held', () => server.grpcServer.heldBytes > 0);
    for (let call = 1; call <= 100; call += 1) client.send(rstStream(streamOf(call)));
    await until('no memory is held', () => server.grpcServer.heldBytes === 0);
    const after = streamOf(101);
    client.send(
      callHeaders(after, 'Echo', ['grpc-encoding', 'gzip']),
      data(after, prefixed(gzipSync('after'), 1), true),
    );
    await client.until('the next one is answered', () => endedOf(client.frames).includes(after));
    expect(begun.mock.calls.length).toBeLessThan(50);
    // Those that were decompressed before, have their slots until they are answered.
    await until('all slots are free', () => {
      for (const call of server.seen.held.splice(0)) call.reply(Buffer.alloc(0));
      return server.grpcServer.openStreams === 0;
    });
  } finally {
    begun.mockRestore();
    client.close();
  }
});

it('an expired call does not keep its compressed message', async () => {
  const body = [prefixed(gzipSync(Buffer.alloc(MIB)), 1)];
  const fields = { 'grpc-encoding': 'gzip', 'grpc-timeout': '0m' };
  expect(await callRaw(server.address, { fields, body })).toMatchObject({
    status: String(GrpcStatus.DEADLINE_EXCEEDED),
  });
  await until('no memory is held', () => server.grpcServer.heldBytes === 0);
});

describe('the messages of connections', () => {
  /** Decompresses messages of connections, and records what happens in the order in which it does. */
  function recording() {
    const inflater = new Inflater();
    const events: string[] = [];
    let running = 0;
    let most = 0;
    function inflate(
      name: string,
      connection: object,
      message: Buffer,
      grows: (bytes: number) => boolean = () => true,
    ) {
      let isFirst = true;
      return inflater.inflate(connection, gzipSync(message), {
        grows: (bytes) => {
          if (isFirst) running += 1;
          isFirst = false;
          most = Math.max(most, running);
          return grows(bytes);
        },
        inflated: ({ length }) => {
          running -= 1;
          events.push(`${name}: ${length}`);
        },
        failed: ({ status: code }) => events.push(`${name}: status ${code}`),
      });
    }
    return { events, inflate, most: () => most };
  }
  const large = Buffer.alloc(MIB);

  it('are decompressed one after the other on each of them, and a few at a time on all', async () => {
    const { events, inflate, most } = recording();
    const one = {};
    for (const name of ['a', 'b', 'c']) inflate(name, one, large);
    await until('all are done', () => events.length === 3);
    expect([events, most()]).toEqual([['a', 'b', 'c'].map((name) => `${name}: ${MIB}`), 1]);
    for (let connection = 0; connection < 20; connection += 1) inflate('x', {}, large);
    await until('all are done', () => events.length === 23);
    expect(most()).toBeLessThanOrEqual(4);
  });

  it('are left out when they are cancelled, and do not keep others waiting', async () => {
    const { events, inflate } = recording();
    const connections = Array.from({ length: 8 }, () => ({}));
    const begun = connections.map((connection) => inflate('first', connection, large));
    for (const connection of connections) inflate('second', connection, large);
    for (const inflation of begun) inflation.cancel();
    await until('all others are done', () => events.length === 8);
    expect(events).toEqual(Array<string>(8).fill(`second: ${MIB}`));
  });

  it('end at the limit, or where there is no memory for more, and others follow', async () => {
    const { events, inflate } = recording();
    const connection = {};
    let read = 0;
    inflate('bomb', connection, Buffer.alloc(100 * MIB), (bytes) => ((read += bytes), true));
    inflate('no memory', connection, large, () => false);
    inflate('other', connection, large);
    await until('all are done', () => events.length === 3);
    const { RESOURCE_EXHAUSTED } = GrpcStatus;
    expect(events).toEqual([
      `bomb: status ${RESOURCE_EXHAUSTED}`,
      `no memory: status ${RESOURCE_EXHAUSTED}`,
      `other: ${MIB}`,
    ]);
    expect(read).toBeLessThanOrEqual(MAX_MESSAGE_BYTES);
  });
});
