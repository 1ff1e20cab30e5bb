import { once } from 'node:events';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { FrameType } from '../../src/grpc/http2/frames/protocol';
import { decodeRequest } from '../../src/grpc/rate-limit/decode-request';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/rate-limit/rate-limit-service';
import { data, endedOf, fieldsOf, headers, hello, request } from '../grpc/http2/frames';
import { RawClient } from '../grpc/http2/raw-client';
import { seededRandom } from '../grpc/http2/seeded-random';
import { mutatedMessage } from '../grpc/rate-limit/mutated-messages';
import { prefixed } from '../grpc/server/raw-call';
import { RateLimitClient, requestMessage } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]\n',
};
const MAX_MESSAGE_BYTES = 4 * 1_024 * 1_024;
const INTERNAL = '13';

let rules: RuleFolder;
let weir: WeirProcess;
let regularClient: RateLimitClient;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
  // Less than the objects of a few of these messages would take.
  weir = await WeirProcess.start({ env: { ...rules.env, NODE_OPTIONS: '--max-old-space-size=96' } });
  regularClient = new RateLimitClient(weir.grpcAddress);
});
afterAll(async () => {
  regularClient[Symbol.dispose]();
  await weir[Symbol.asyncDispose]();
  await rules[Symbol.asyncDispose]();
});

async function connectRaw(): Promise<RawClient> {
  const socket = connect(weir.ports.grpc, '127.0.0.1');
  await once(socket, 'connect');
  return new RawClient(socket).send(hello());
}

function call(stream: number, message: Buffer, isCompressed: boolean): Buffer {
  const encoding: [string, string][] = isCompressed ? [['grpc-encoding', 'gzip']] : [];
  return Buffer.concat([
    headers(stream, request(SHOULD_RATE_LIMIT, ['content-type', 'application/grpc'], ['te', 'trailers'], ...encoding)),
    data(stream, prefixed(message, isCompressed ? 1 : 0), true),
  ]);
}

/** The statuses of calls with these messages, all made at once on a connection of their own. */
async function statusesOf(messages: readonly Buffer[], isCompressed = false): Promise<string[]> {
  const client = await connectRaw();
  client.send(...messages.map((message, at) => call(2 * at + 1, message, isCompressed)));
  await client.until('all statuses', () => endedOf(client.frames).length >= messages.length);
  client.close();
  const statuses: string[] = [];
  for (const { type, flags, stream, payload } of client.frames) {
    if (type === FrameType.HEADERS && (flags & 1) === 1) statuses[(stream - 1) / 2] = fieldsOf(payload)['grpc-status']!;
  }
  return statuses;
}

/** As many of a field as fit into this many bytes. */
function repeated(field: string, length: number): Buffer {
  const bytes = Buffer.from(field, 'hex');
  return Buffer.alloc(length - (length % bytes.length), bytes);
}

/** A length-delimited field with more than 2 MiB of content. */
function delimited(tag: number, content: Buffer): Buffer {
  const length = [0, 7, 14, 21].map((shift) => ((content.length >> shift) & 0x7f) | (shift < 21 ? 0x80 : 0));
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

const DOMAIN = Buffer.from('0a0473686f70', 'hex');
const REST = MAX_MESSAGE_BYTES - 16;

describe('60 compressed calls of 4 MiB on one connection', () => {
  it.each([
    ['empty descriptors', '3', repeated('1200', REST)],
    ['empty entries', '8', delimited(0x12, repeated('0a00', REST))],
    ['entries with a key and a value', '8', delimited(0x12, repeated('0a060a016b120176', REST))],
    ['limits', '8', delimited(0x12, repeated('12020801', REST))],
    ['unknown fields', '8', repeated('7800', REST)],
    ['domains', '8', repeated('0a0161', REST)],
    ['bytes that are not UTF-8', INTERNAL, repeated('0a01ff', REST)],
    ['a long domain', '8', delimited(0x0a, Buffer.alloc(REST, 'é'))],
  ])('with %s fail, and another client gets its answers', async (_what, expected, rest) => {
    const compressed = gzipSync(Buffer.concat([DOMAIN, rest]));
    const attack = statusesOf(
      Array.from({ length: 60 }, () => compressed),
      true,
    );
    let isOver = false;
    void attack.finally(() => {
      isOver = true;
    });
    do {
      // oxlint-disable-next-line no-await-in-loop -- the client waits for each answer
      expect((await regularClient.shouldRateLimit('shop', ['user=regular'])).overallCode).toBe(1);
    } while (!isOver);

    const statuses = await attack;
    expect(statuses.slice(0, 3)).toEqual([expected, expected, expected]);
    // From some call on, the messages of the connection have grown too much.
    for (const status of statuses) expect([expected, '8']).toContain(status);
    expect(statuses).toHaveLength(60);
  });
});

describe('damaged messages', () => {
  it('are answered as the decoder decides, and leave the service alive', async () => {
    const random = seededRandom('live server');
    for (let round = 0; round < 20; round += 1) {
      const messages = Array.from({ length: 1_000 }, () => mutatedMessage(random));
      // oxlint-disable-next-line no-await-in-loop -- a connection has at most 1,024 calls
      const statuses = await statusesOf(messages);
      expect(statuses.map((status) => status === INTERNAL)).toEqual(messages.map((message) => !isDecoded(message)));
    }
    expect((await regularClient.send(requestMessage('shop', ['user=regular']))).overallCode).toBe(1);
  });
});

function isDecoded(message: Buffer): boolean {
  try {
    decodeRequest(message);
    return true;
  } catch {
    return false;
  }
}
