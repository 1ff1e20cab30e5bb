import { gzipSync } from 'node:zlib';
import { FrameType } from '../../../src/grpc/http2/frames/protocol';
import type { StreamingMethod, UnaryHandler } from '../../../src/grpc/method';
import { data, endedOf, fieldsOf, headers, hello, ping, request, resetsOf, rstStream } from '../http2/frames';
import { type RawClient, connectPlain } from '../http2/raw-client';
import { callRaw, prefixed } from './raw-call';
import { type TestServer, startServer } from './servers';

const MIB = 1_024 * 1_024;

const disposables: (() => unknown)[] = [];
afterEach(async () => {
  for (const dispose of disposables.splice(0).toReversed()) await dispose();
});

const replyWithLength: UnaryHandler = (message, call) => call.reply(Buffer.from(String(message.length)));

async function start(options: Parameters<typeof startServer>[0] = {}): Promise<TestServer> {
  const server = await startServer({ unary: new Map([['/test.Service/Length', replyWithLength]]), ...options });
  disposables.push(() => server.close());
  return server;
}

function connect({ address }: TestServer): RawClient {
  const client = connectPlain(address).send(hello());
  disposables.push(() => client.close());
  return client;
}

function callHeaders(stream: number, method: string): Buffer {
  return headers(
    stream,
    request(
      `/test.Service/${method}`,
      ['content-type', 'application/grpc'],
      ['te', 'trailers'],
      ['grpc-encoding', 'gzip'],
    ),
  );
}

/** A call with a compressed message, as its only frame. */
function compressedCall(stream: number, message: Buffer | string, method = 'Length'): Buffer {
  return Buffer.concat([callHeaders(stream, method), data(stream, prefixed(gzipSync(message), 1), true)]);
}

/** The streams of calls, in order. */
function streams(count: number, first = 1): number[] {
  return Array.from({ length: count }, (_, index) => first + 2 * index);
}

/** The statuses of these calls, once all have one. */
async function statusesOf(client: RawClient, calls: readonly number[]): Promise<string[]> {
  await client.until('all statuses', () => {
    const ended = new Set(endedOf(client.frames));
    return calls.every((stream) => ended.has(stream));
  });
  return calls.map((stream) => {
    const trailers = client.frames.findLast((it) => it.type === FrameType.HEADERS && it.stream === stream)!;
    return fieldsOf(trailers.payload)['grpc-status']!;
  });
}

describe('calls with compressed messages', () => {
  it('fail when the messages of their connection grow too much, and no other calls do', async () => {
    const server = await start();
    const client = connect(server);
    const large = streams(32);
    for (const stream of large) client.send(compressedCall(stream, Buffer.alloc(4 * MIB)));
    const statuses = await statusesOf(client, large);
    const failed = statuses.filter((it) => it !== '0');

    expect(statuses.slice(0, 4)).toEqual(['0', '0', '0', '0']);
    expect(failed.length).toBeGreaterThan(0);
    expect(new Set(failed)).toEqual(new Set(['8']));
    expect(server.seen.rejected).toEqual(failed.map(() => 'inflation'));

    const small = streams(50, 101);
    for (const stream of small) client.send(compressedCall(stream, 'a message '.repeat(100)));
    expect(new Set(await statusesOf(client, small))).toEqual(new Set(['0']));
    const other = connect(server).send(compressedCall(1, Buffer.alloc(4 * MIB)));
    expect(await statusesOf(other, [1])).toEqual(['0']);
  });

  it('count their decompressed messages towards the memory of their connection', async () => {
    const server = await start({ limits: { maxHeldBytesPerConnection: MIB } });
    const client = connect(server).send(
      compressedCall(1, Buffer.alloc(MIB + 1)),
      compressedCall(3, Buffer.alloc(MIB / 2)),
      compressedCall(5, Buffer.alloc(MIB / 2)),
      compressedCall(7, Buffer.alloc(MIB / 2)),
    );

    expect(await statusesOf(client, [1, 3, 5, 7])).toEqual(['8', '0', '0', '0']);
    expect(server.seen.rejected).toEqual(['request_memory']);
  });

  it('do not keep their slots when they are reset while they wait for a thread', async () => {
    const server = await start({ limits: { maxConcurrentStreams: 40 } });
    const client = connect(server);
    const waiting = streams(40);
    client.send(...waiting.map((stream) => compressedCall(stream, Buffer.alloc(4 * MIB))), ping('begun...'));
    await client.until('the answer to PING', () => client.isAcknowledged('begun...'));
    const next = streams(40, 101);
    client.send(
      ...waiting.map((stream) => rstStream(stream)),
      ...next.map((stream) => compressedCall(stream, 'small')),
    );

    expect(new Set(await statusesOf(client, next))).toEqual(new Set(['0']));
    expect(resetsOf(client.frames)).toEqual([]);
    // Otherwise none was waiting.
    expect(endedOf(client.frames).length).toBeLessThan(80);
  });

  it('of a stream are handled in their order, however large they are', async () => {
    const server = await startServer();
    disposables.push(() => server.close());
    const large = 'b'.repeat(200_000);
    const messages = ['a', large, 'c', 'd', large, 'e'];
    const { status, messages: replies } = await callRaw(server.address, {
      fields: { ':path': '/test.Service/Talk', 'grpc-encoding': 'gzip' },
      body: messages.map((it) => (it === 'c' ? prefixed(it) : prefixed(gzipSync(it), 1))),
    });

    expect(status).toBe('0');
    expect(replies.map((it) => it.length)).toEqual(messages.map((it) => it.length));
    expect(replies.map((it) => it[0])).toEqual(['A', 'B', 'C', 'D', 'B', 'E']);
  });
});

describe('the messages of a stream', () => {
  it('are handled in turn with other calls of their connection', async () => {
    const order: string[] = [];
    const listen: StreamingMethod = {
      kind: 'bidirectional',
      handle: (call) => ({ message: (message) => order.push(message.toString()), ended: () => call.end() }),
    };
    const server = await start({
      unary: new Map<string, UnaryHandler>([
        [
          '/test.Service/Length',
          (message, call) => {
            order.push('call');
            replyWithLength(message, call);
          },
        ],
      ]),
      streaming: new Map([['/test.Service/Listen', listen]]),
    });
    const messages = ['a', 'b', 'c'].map((it) => data(1, prefixed(gzipSync(it), 1), it === 'c'));
    const client = connect(server).send(callHeaders(1, 'Listen'), ...messages, compressedCall(3, 'x'));

    expect(await statusesOf(client, [1, 3])).toEqual(['0', '0']);
    expect(order).toEqual(['a', 'call', 'b', 'c']);
  });
});
