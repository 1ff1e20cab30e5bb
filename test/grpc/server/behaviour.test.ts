import { gzipSync } from 'node:zlib';
import { type TestServer, startDoor, startReference } from './servers';
import { type WireAnswer, type WireCall, callOnWire, prefixed } from './wire-call';

jest.setTimeout(30_000);

const MIB = 2 ** 20;
const OK = { http: '200', status: '0', messages: ['hello'] };
function failed(status: number, http = '200'): Partial<WireAnswer> {
  return { http, status: String(status), messages: [] };
}

interface Behaviour {
  readonly title: string;
  readonly call: WireCall;
  readonly expected: Partial<WireAnswer>;
  /** What grpc-js does instead; README.md of src/grpc/server says why ours differs. */
  readonly reference?: Partial<WireAnswer>;
}

/** Its pattern is not anchored, and it takes nine digits. */
const TIMEOUTS_OF_GRPC_JS = new Map<string, Partial<WireAnswer>>([
  ['-1m', OK],
  [' 1m', OK],
  ['1 m', OK],
  ['123456789m', OK],
  ['0x1m', OK],
  ['1mm', OK],
]);

/** nghttp2 resets the stream before grpc-js sees it. */
const REFUSED_BY_NODE = { reset: 1 };

function path(name: string) {
  return { ':path': `/test.Service/${name}` };
}
/** Bytes in DATA frames that the window at the beginning admits. */
function inFrames(bytes: Buffer): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / 16_000) }, (_, at) =>
    bytes.subarray(at * 16_000, (at + 1) * 16_000),
  );
}
const gzip = { 'grpc-encoding': 'gzip' };

const BEHAVIOURS: readonly Behaviour[] = [
  { title: 'a message is answered', call: {}, expected: OK },
  { title: 'an empty message is a message', call: { body: [prefixed('')] }, expected: { ...OK, messages: [''] } },
  {
    title: 'a message in many DATA frames is one',
    call: { body: Array.from(prefixed('hello'), (byte) => Buffer.from([byte])) },
    expected: OK,
  },
  {
    title: 'a request that ends with an empty DATA frame is whole',
    call: { body: [prefixed('hello'), Buffer.alloc(0)] },
    expected: OK,
  },
  {
    title: 'a content type with a format is gRPC',
    call: { fields: { 'content-type': 'application/grpc+proto' } },
    expected: OK,
  },
  {
    title: 'a content type with a parameter is gRPC',
    call: { fields: { 'content-type': 'application/grpc;charset=utf-8' } },
    expected: OK,
  },
  { title: 'no te field is no error', call: { fields: { te: undefined } }, expected: OK },
  {
    title: 'another content type is 415',
    call: { fields: { 'content-type': 'text/plain' } },
    expected: failed(3, '415'),
    reference: { http: '415', messages: [] },
  },
  {
    title: 'no content type is 415',
    call: { fields: { 'content-type': undefined } },
    expected: failed(3, '415'),
    reference: { http: '415', messages: [] },
  },
  {
    title: 'gRPC-Web is another protocol',
    call: { fields: { 'content-type': 'application/grpc-web' } },
    expected: failed(3, '415'),
    reference: OK,
  },
  { title: 'GET is 405', call: { fields: { ':method': 'GET' } }, expected: failed(13, '405'), reference: OK },
  {
    title: 'no authority is 400',
    call: { fields: { ':authority': undefined } },
    expected: failed(13, '400'),
    reference: REFUSED_BY_NODE,
  },
  {
    title: 'an unknown method is UNIMPLEMENTED',
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
    title: `the path ${it} is not that of a method`,
    call: { fields: { ':path': it } },
    expected: failed(12),
    ...(!it.startsWith('/') && { reference: REFUSED_BY_NODE }),
  })),
  {
    title: 'a failure carries its text',
    call: { fields: path('Fail'), body: [prefixed('5 not here')] },
    expected: { ...failed(5), message: 'not here' },
    reference: { ...failed(5), message: 'not%20here' },
  },
  {
    title: 'the text is percent-encoded',
    call: { fields: path('Fail'), body: [prefixed('3 ünïcode 100% ~')] },
    expected: { ...failed(3), message: '%C3%BCn%C3%AFcode 100%25 ~' },
    reference: { ...failed(3), message: '%C3%BCn%C3%AFcode%20100%25%20~' },
  },
  {
    title: 'a line feed in the text is encoded',
    call: { fields: path('Fail'), body: [prefixed('3 two\nlines')] },
    expected: { ...failed(3), message: 'two%0Alines' },
  },
  {
    title: 'outer spaces of the text are encoded',
    call: { fields: path('Fail'), body: [prefixed('3  padded ')] },
    expected: { ...failed(3), message: '%20padded%20' },
    reference: { ...failed(3), message: '%20padded%20' },
  },
  {
    title: 'a handler that throws is INTERNAL, and keeps its secrets',
    call: { fields: path('Throw') },
    expected: { ...failed(13), message: 'internal error' },
    reference: { status: '2' },
  },
  { title: 'no message is INTERNAL', call: { body: [] }, expected: failed(13), reference: failed(12) },
  {
    title: 'an empty body is INTERNAL',
    call: { body: [Buffer.alloc(0)] },
    expected: failed(13),
    reference: failed(12),
  },
  {
    title: 'two messages are INTERNAL',
    call: { body: [prefixed('one'), prefixed('two')] },
    expected: failed(13),
    reference: failed(12),
  },
  {
    title: 'a request that ends inside a message is INTERNAL',
    call: { body: [prefixed('hello').subarray(0, 7)] },
    expected: failed(13),
    reference: failed(12),
  },
  {
    title: 'a request that ends inside the prefix is INTERNAL',
    call: { body: [Buffer.alloc(3)] },
    expected: failed(13),
    reference: failed(12),
  },
  {
    title: 'a flag other than 0 and 1 is INTERNAL',
    call: { body: [prefixed('hello', 2)] },
    expected: failed(13),
    reference: OK,
  },
  {
    title: 'a length over 4 MiB is RESOURCE_EXHAUSTED at its fifth byte',
    call: { body: [Buffer.from([0, 0, 0x40, 0, 1])], isOpen: true },
    expected: failed(8),
  },
  {
    title: 'a compressed message is inflated',
    call: { fields: gzip, body: [prefixed(gzipSync('hello'), 1)] },
    expected: OK,
  },
  { title: 'an uncompressed message may stand under an encoding', call: { fields: gzip }, expected: OK },
  {
    title: 'an unknown encoding of no message is no matter',
    call: { fields: { 'grpc-encoding': 'snappy' } },
    expected: OK,
  },
  {
    title: 'a message of an unknown encoding is UNIMPLEMENTED',
    call: { fields: { 'grpc-encoding': 'snappy' }, body: [prefixed('hello', 1)] },
    expected: failed(12),
  },
  {
    title: 'a compressed message without an encoding is INTERNAL',
    call: { body: [prefixed(gzipSync('hello'), 1)] },
    expected: failed(13),
    reference: { http: '200', status: '0' },
  },
  { title: 'what is not gzip is INTERNAL', call: { fields: gzip, body: [prefixed('hello', 1)] }, expected: failed(13) },
  {
    title: 'gzip cut short is INTERNAL',
    call: { fields: gzip, body: [prefixed(gzipSync('hello').subarray(0, 15), 1)] },
    expected: failed(13),
  },
  {
    title: 'gzip with garbage behind it is INTERNAL',
    call: { fields: gzip, body: [prefixed(Buffer.concat([gzipSync('hello'), Buffer.from('garbage')]), 1)] },
    expected: failed(13),
  },
  {
    title: 'gzip of two members is one message',
    call: { fields: gzip, body: [prefixed(Buffer.concat([gzipSync('hel'), gzipSync('lo')]), 1)] },
    expected: OK,
  },
  {
    title: 'gzip that becomes more than 4 MiB is RESOURCE_EXHAUSTED',
    call: { fields: gzip, body: [prefixed(gzipSync(Buffer.alloc(4 * MIB + 1)), 1)] },
    expected: failed(8),
  },
  {
    title: 'gzip that becomes exactly 4 MiB is a message',
    call: { fields: gzip, body: [prefixed(gzipSync(Buffer.alloc(4 * MIB)), 1)] },
    expected: { http: '200', status: '0' },
  },
  {
    title: 'a deadline that has passed is DEADLINE_EXCEEDED',
    call: { fields: { 'grpc-timeout': '0m' } },
    expected: failed(4),
    reference: OK,
  },
  {
    title: 'a deadline that passes is DEADLINE_EXCEEDED',
    call: { fields: { ...path('Hold'), 'grpc-timeout': '50m' } },
    expected: { ...failed(4), isTrailersOnly: true },
  },
  { title: 'a deadline far away is none', call: { fields: { 'grpc-timeout': '99999999H' } }, expected: OK },
  ...['1', '-1m', ' 1m', '1 m', '123456789m', '1x', 'm', '0x1m', '1mm'].map((it) => ({
    title: `the deadline ${JSON.stringify(it)} is none`,
    call: { fields: { 'grpc-timeout': it } },
    // A value that begins with a space is malformed before it is a deadline.
    expected: it.startsWith(' ') ? { reset: 1 } : failed(13, '400'),
    reference: TIMEOUTS_OF_GRPC_JS.get(it) ?? failed(13),
  })),
  {
    title: 'a stream of messages is answered in order',
    call: { fields: path('Count'), body: [prefixed('3')] },
    expected: { http: '200', status: '0', messages: ['0', '1', '2'] },
  },
  {
    title: 'a stream may hold no message',
    call: { fields: path('Count'), body: [prefixed('0')] },
    expected: { http: '200', status: '0', messages: [] },
  },
  {
    title: 'messages in both directions',
    call: { fields: path('Talk'), body: [prefixed('a'), Buffer.concat([prefixed('b'), prefixed('c')])] },
    expected: { http: '200', status: '0', messages: ['A', 'B', 'C'] },
  },
  {
    title: 'a conversation without a word',
    call: { fields: path('Talk'), body: [] },
    expected: { http: '200', status: '0', messages: [] },
  },
  {
    title: 'a conversation of compressed messages keeps their order',
    call: {
      fields: { ...path('Talk'), ...gzip },
      body: [...inFrames(prefixed(gzipSync('x'.repeat(100_000)), 1)), prefixed('b'), prefixed(gzipSync('c'), 1)],
    },
    expected: { http: '200', status: '0', messages: ['X'.repeat(100_000), 'B', 'C'] },
  },
];

describe.each([
  ['our door', startDoor],
  ['grpc-js, the reference', startReference],
] as const)('%s', (name, start) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await start();
  });
  afterAll(() => server.close());

  const isReference = name !== 'our door';
  it.each(BEHAVIOURS)('$title', async ({ call, expected, reference }) => {
    const answer = await callOnWire(server.address, call);

    expect(answer).toMatchObject(isReference ? (reference ?? expected) : expected);
  });
});
