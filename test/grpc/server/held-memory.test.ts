import { Client, Metadata, credentials } from '@grpc/grpc-js';
import { ErrorCode, FrameType } from '../../../src/grpc/http2/frames/protocol';
import { data, fieldsOf, headers, hello, ping, request, resetsOf } from '../http2/frames';
import { type RawClient, connectPlain } from '../http2/raw-client';
import { until } from '../../support/waiting/until';
import { prefixed } from './raw-call';
import { type TestServer, startServer } from './servers';

const MIB = 1_024 * 1_024;
const FRAME_BYTES = 16_384;
const GRPC = [
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
] as const;

const disposables: (() => unknown)[] = [];
afterEach(async () => {
  for (const dispose of disposables.splice(0).toReversed()) await dispose();
});

async function start(options: Parameters<typeof startServer>[0]): Promise<TestServer> {
  const server = await startServer(options);
  disposables.push(() => server.close());
  return server;
}

/** A client that has sent the beginning of a message of 2 MiB, and sends nothing more. */
async function incomplete({ address }: TestServer, method: string, bytes: number): Promise<RawClient> {
  const client = connectPlain(address);
  disposables.push(() => client.close());
  const message = prefixed(Buffer.alloc(2 * MIB)).subarray(0, bytes);
  client.send(hello([4, 0]), headers(1, request(`/test.Service/${method}`, ...GRPC)));
  if (method === 'Talk') client.send(data(1, prefixed('a')));
  for (let at = 0; at < bytes; at += FRAME_BYTES) client.send(data(1, message.subarray(at, at + FRAME_BYTES)));
  client.send(ping('received'));
  return client.until('the answer to PING', () => client.isAcknowledged('received'));
}

/** The length of the response to a message. */
function echoed({ address }: TestServer, message: Buffer): Promise<number> {
  const client = new Client(`127.0.0.1:${address.port}`, credentials.createInsecure());
  disposables.push(() => client.close());
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      '/test.Service/Echo',
      (bytes: Buffer) => bytes,
      (bytes: Buffer) => bytes,
      message,
      new Metadata(),
      (error, response) => (error === null ? resolve(response!.length) : reject(error)),
    );
  });
}

describe('the memory for incomplete requests', () => {
  const limits = { maxHeldBytes: 8 * MIB, maxHeldBytesPerConnection: 2 * MIB, heldStallMs: 200 };

  it.each([18, 100, 1_000])(
    'leaves room for a message of 1 MiB while %i clients complete theirs never',
    async (count) => {
      const server = await start({ limits });
      const bytes = Math.ceil((1.2 * limits.maxHeldBytes) / count);
      for (let begun = 0; begun < count; begun += 50) {
        const some = Array.from({ length: Math.min(50, count - begun) }, () => incomplete(server, 'Echo', bytes));
        await Promise.all(some);
      }
      await new Promise((resolve) => setTimeout(resolve, 2 * limits.heldStallMs));

      expect(await echoed(server, Buffer.alloc(MIB))).toBe(MIB);
      expect(new Set(server.seen.rejected)).toEqual(new Set(['request_memory']));
    },
  );

  it('is taken from the client that holds the most, whose call fails with RESOURCE_EXHAUSTED', async () => {
    const server = await start({ limits: { ...limits, heldStallMs: 3_600_000 } });
    const attackers = await Promise.all(Array.from({ length: 18 }, () => incomplete(server, 'Echo', MIB)));
    function statuses() {
      return attackers.flatMap(({ frames }) =>
        frames.filter(({ type }) => type === FrameType.HEADERS).map(({ payload }) => fieldsOf(payload)),
      );
    }

    expect(await echoed(server, Buffer.alloc(MIB / 2))).toBe(MIB / 2);
    await until('the statuses have arrived', () => statuses().length >= 10);
    expect(statuses()[0]).toMatchObject({
      'grpc-status': '8',
      'grpc-message': 'messages that wait to be handled use too much memory',
    });
  });

  it('is taken from a stream whose status must wait for its window by resetting it', async () => {
    const server = await start({ limits: { ...limits, maxHeldBytes: 100_000 } });
    const talking = await incomplete(server, 'Talk', 60_000);
    await incomplete(server, 'Echo', 50_000);
    await talking.until('a reset', () => resetsOf(talking.frames).length > 0);

    expect(resetsOf(talking.frames)).toEqual([[1, ErrorCode.ENHANCE_YOUR_CALM]]);
    expect(server.seen.rejected).toEqual(['request_memory']);
  });
});
