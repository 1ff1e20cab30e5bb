import { gzipSync } from 'node:zlib';
import { type RawCall, type RawResponse, callRaw, prefixed } from './raw-call';
import { type TestServer, startReference, startServer } from './servers';

const MIB = 2 ** 20;
const OK = { http: '200', status: '0', messages: ['hello'] };
function failed(status: number, http = '200'): Partial<RawResponse> {
  return { http, status: String(status), messages: [] };
}

interface Behaviour {
  readonly title: string;
  readonly call: RawCall;
  readonly expected: Partial<RawResponse>;
  /** What grpc-js does instead; src/grpc/server/README.md gives the reason for each difference. */
  readonly reference?: Partial<RawResponse>;
}

/** The malformed timeouts that grpc-js accepts: its pattern is not anchored, and it allows nine digits. */
const TIMEOUTS_ACCEPTED_BY_GRPC_JS = new Map<string, Partial<RawResponse>>([
  ['-1m', OK],
  [' 1m', OK],
  ['1 m', OK],
  ['123456789m', OK],
  ['0x1m', OK],
  ['1mm', OK],
]);

/** nghttp2 resets the stream before grpc-js sees it. */
const RESET_BY_NGHTTP2 = { reset: 1 };

function path(name: string) {
  return { ':path': `/test.Service/${name}` };
}
/** Splits the bytes into DATA frames. */
function inFrames(bytes: Buffer): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / 16_000) }, (_, at) =>
    bytes.subarray(at * 16_000, (at + 1) * 16_000),
  );
}
const gzip = { 'grpc-encoding': 'gzip' };

const BEHAVIOURS: readonly Behaviour[] = [
  { title: 'replies to a message', call: {}, expected: OK },
  { title: 'accepts an empty message', call: { body: [prefixed('')] }, expected: { ...OK, messages: [''] } },
  {
    title: 'accepts a message split into many DATA frames',
    call: { body: Array.from(prefixed('hello'), (byte) => Buffer.from([byte])) },
    expected: OK,
  },
  {
    title: 'accepts a request that ends with an empty DATA frame',
    call: { body: [prefixed('hello'), Buffer.alloc(0)] },
    expected: OK,
  },
  {
    title: 'accepts a content type with a format',
    call: { fields: { 'content-type': 'application/grpc+proto' } },
    expected: OK,
  },
  {
    title: 'accepts a content type with a parameter',
    call: { fields: { 'content-type': 'application/grpc;charset=utf-8' } },
    expected: OK,
  },
  { title: 'accepts a request without a te field', call: { fields: { te: undefined } }, expected: OK },
  {
    title: 'rejects another content type with 415',
    call: { fields: { 'content-type': 'text/plain' } },
    expected: failed(3, '415'),
    reference: { http: '415', messages: [] },
  },
  {
    title: 'rejects a request without a content type with 415',
    call: { fields: { 'content-type': undefined } },
    expected: failed(3, '415'),
    reference: { http: '415', messages: [] },
  },
  {
    title: 'rejects gRPC-Web with 415',
    call: { fields: { 'content-type': 'application/grpc-web' } },
    expected: failed(3, '415'),
    reference: OK,
  },
  { title: 'rejects GET with 405', call: { fields: { ':method': 'GET' } }, expected: failed(13, '405'), reference: OK },
  {
    title: 'rejects a request without an authority with 400',
    call: { fields: { ':authority': undefined } },
    expected: failed(13, '400'),
    reference: RESET_BY_NGHTTP2,
  },
  {
    title: 'answers an unknown method with UNIMPLEMENTED',
    call: { fields: path('Nothing') },
    expected: { ...failed(12), isTrailersOnly: true },
  },
  ...[
    '/',
    'test.Service/Echo',
    '//test.Service/Echo',
    '/test.Service/Echo/',
    '/test.Service%2FEcho',
    '/test.Service/Echo?x=1',
    '/TEST.Service/Echo',
    '*',
  ].map((it) => ({
    title: `answers the path ${it} with UNIMPLEMENTED`,
    call: { fields: { ':path': it } },
    expected: failed(12),
    ...(!it.startsWith('/') && { reference: RESET_BY_NGHTTP2 }),
  })),
  {
    title: 'sends the message of a failed call',
    call: { fields: path('Fail'), body: [prefixed('5 not here')] },
    expected: { ...failed(5), message: 'not here' },
    reference: { ...failed(5), message: 'not%20here' },
  },
  {
    title: 'percent-encodes the status message',
    call: { fields: path('Fail'), body: [prefixed('3 ünïcode 100% ~')] },
    expected: { ...failed(3), message: '%C3%BCn%C3%AFcode 100%25 ~' },
    reference: { ...failed(3), message: '%C3%BCn%C3%AFcode%20100%25%20~' },
  },
  {
    title: 'percent-encodes a line feed in the status message',
    call: { fields: path('Fail'), body: [prefixed('3 two\nlines')] },
    expected: { ...failed(3), message: 'two%0Alines' },
  },
  {
    title: 'percent-encodes leading and trailing spaces of the status message',
    call: { fields: path('Fail'), body: [prefixed('3  padded ')] },
    expected: { ...failed(3), message: '%20padded%20' },
    reference: { ...failed(3), message: '%20padded%20' },
  },
  {
    title: 'answers with INTERNAL and without details when a handler throws',
    call: { fields: path('Throw') },
    expected: { ...failed(13), message: 'internal error' },
    reference: { status: '2' },
  },
  {
    title: 'answers a unary request without a message with INTERNAL',
    call: { body: [] },
    expected: failed(13),
    reference: failed(12),
  },
  {
    title: 'answers a unary request with an empty body with INTERNAL',
    call: { body: [Buffer.alloc(0)] },
    expected: failed(13),
    reference: failed(12),
  },
  {
    title: 'answers a unary request with two messages with INTERNAL',
    call: { body: [prefixed('one'), prefixed('two')] },
    expected: failed(13),
    reference: failed(12),
  },
  {
    title: 'answers a request that ends inside a message with INTERNAL',
    call: { body: [prefixed('hello').subarray(0, 7)] },
    expected: failed(13),
    reference: failed(12),
  },
  {
    title: 'answers a request that ends inside a prefix with INTERNAL',
    call: { body: [Buffer.alloc(3)] },
    expected: failed(13),
    reference: failed(12),
  },
  {
    title: 'answers a compressed flag other than 0 and 1 with INTERNAL',
    call: { body: [prefixed('hello', 2)] },
    expected: failed(13),
    reference: OK,
  },
  {
    title: 'rejects a length over 4 MiB with RESOURCE_EXHAUSTED as soon as the prefix is complete',
    call: { body: [Buffer.from([0, 0, 0x40, 0, 1])], isOpen: true },
    expected: failed(8),
  },
  {
    title: 'decompresses a gzip message',
    call: { fields: gzip, body: [prefixed(gzipSync('hello'), 1)] },
    expected: OK,
  },
  { title: 'accepts an uncompressed message with a grpc-encoding', call: { fields: gzip }, expected: OK },
  {
    title: 'ignores an unknown grpc-encoding when no message is compressed',
    call: { fields: { 'grpc-encoding': 'snappy' } },
    expected: OK,
  },
  {
    title: 'answers a message compressed with an unknown encoding with UNIMPLEMENTED',
    call: { fields: { 'grpc-encoding': 'snappy' }, body: [prefixed('hello', 1)] },
    expected: {
      ...failed(12),
      fields: expect.objectContaining({ 'grpc-accept-encoding': 'gzip,identity' }) as RawResponse['fields'],
    },
    reference: failed(12),
  },
  {
    title: 'answers a compressed message without a grpc-encoding with INTERNAL',
    call: { body: [prefixed(gzipSync('hello'), 1)] },
    expected: failed(13),
    reference: { http: '200', status: '0' },
  },
  {
    title: 'answers a message that is not valid gzip with INTERNAL',
    call: { fields: gzip, body: [prefixed('hello', 1)] },
    expected: failed(13),
  },
  {
    title: 'answers truncated gzip with INTERNAL',
    call: { fields: gzip, body: [prefixed(gzipSync('hello').subarray(0, 15), 1)] },
    expected: failed(13),
  },
  {
    title: 'answers gzip with trailing garbage with INTERNAL',
    call: { fields: gzip, body: [prefixed(Buffer.concat([gzipSync('hello'), Buffer.from('garbage')]), 1)] },
    expected: failed(13),
  },
  {
    title: 'decompresses gzip of two members to one message',
    call: { fields: gzip, body: [prefixed(Buffer.concat([gzipSync('hel'), gzipSync('lo')]), 1)] },
    expected: OK,
  },
  {
    title: 'rejects a message that decompresses to more than 4 MiB with RESOURCE_EXHAUSTED',
    call: { fields: gzip, body: [prefixed(gzipSync(Buffer.alloc(4 * MIB + 1)), 1)] },
    expected: failed(8),
  },
  {
    title: 'accepts a message that decompresses to exactly 4 MiB',
    call: { fields: gzip, body: [prefixed(gzipSync(Buffer.alloc(4 * MIB)), 1)] },
    expected: { http: '200', status: '0' },
  },
  {
    title: 'answers a call whose deadline has passed on arrival with DEADLINE_EXCEEDED',
    call: { fields: { 'grpc-timeout': '0m' } },
    expected: failed(4),
    reference: OK,
  },
  {
    title: 'answers with DEADLINE_EXCEEDED when the deadline passes',
    call: { fields: { ...path('Hold'), 'grpc-timeout': '50m' } },
    expected: { ...failed(4), isTrailersOnly: true },
  },
  { title: 'accepts the longest timeout', call: { fields: { 'grpc-timeout': '99999999H' } }, expected: OK },
  ...['1', '-1m', ' 1m', '1 m', '123456789m', '1x', 'm', '0x1m', '1mm'].map((it) => ({
    title: `rejects the malformed timeout ${JSON.stringify(it)}`,
    call: { fields: { 'grpc-timeout': it } },
    // A field value with a leading space makes the request malformed.
    expected: it.startsWith(' ') ? { reset: 1 } : failed(13, '400'),
    reference: TIMEOUTS_ACCEPTED_BY_GRPC_JS.get(it) ?? failed(13),
  })),
  {
    title: 'sends the messages of a server stream in order',
    call: { fields: path('Count'), body: [prefixed('3')] },
    expected: { http: '200', status: '0', messages: ['0', '1', '2'] },
  },
  {
    title: 'ends a server stream without messages with OK',
    call: { fields: path('Count'), body: [prefixed('0')] },
    expected: { http: '200', status: '0', messages: [] },
  },
  {
    title: 'replies to each message of a bidirectional stream',
    call: { fields: path('Talk'), body: [prefixed('a'), Buffer.concat([prefixed('b'), prefixed('c')])] },
    expected: { http: '200', status: '0', messages: ['A', 'B', 'C'] },
  },
  {
    title: 'ends a bidirectional stream without messages with OK',
    call: { fields: path('Talk'), body: [] },
    expected: { http: '200', status: '0', messages: [] },
  },
  {
    title: 'keeps the order of compressed messages of a bidirectional stream',
    call: {
      fields: { ...path('Talk'), ...gzip },
      body: [...inFrames(prefixed(gzipSync('x'.repeat(100_000)), 1)), prefixed('b'), prefixed(gzipSync('c'), 1)],
    },
    expected: { http: '200', status: '0', messages: ['X'.repeat(100_000), 'B', 'C'] },
  },
];

describe.each([
  ['the gRPC server of weir', startServer],
  ['grpc-js, the reference', startReference],
] as const)('%s', (name, start) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await start();
  });
  afterAll(() => server.close());

  const isReference = name !== 'the gRPC server of weir';
  const behaviours = BEHAVIOURS.map(({ title, call, expected, reference }) =>
    isReference && reference !== undefined
      ? { title: `differs from weir, which ${title}`, call, expected: reference }
      : { title, call, expected },
  );
  it.each(behaviours)('$title', async ({ call, expected }) => {
    expect(await callRaw(server.address, call)).toMatchObject(expected);
  });
});
