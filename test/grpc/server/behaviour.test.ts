import { gzipSync } from 'node:zlib';
import { prefixed } from '../../support/clients/http2-connection';
import { type RawCall, type RawResponse, callRaw } from './raw-call';
import { type TestServer, startServer } from './servers';

const OK = { http: '200', status: '0', messages: ['hello'] };
function failed(status: number, http = '200'): Partial<RawResponse> {
  return { http, status: String(status), messages: [] };
}
function withFields(fields: RawCall['fields'] & object): RawCall {
  return { fields };
}
function withBody(...body: Buffer[]): RawCall {
  return { body };
}
/** A call with these messages. */
function to(method: string, ...messages: string[]): RawCall {
  return { method, body: messages.map((message) => prefixed(message)) };
}
const splitByBytes = Array.from(prefixed('hello'), (byte) => Buffer.from([byte]));
const cutOff = splitByBytes.slice(0, 7);
const gzip = { fields: { 'grpc-encoding': 'gzip' } };
const snappy = { fields: { 'grpc-encoding': 'snappy' }, body: [prefixed('hello', 1)] };
/** A call with these messages, of which the second one is not compressed. */
function compressed(method: string, ...messages: string[]): RawCall {
  return { method, ...gzip, body: messages.map((message, at) => (at === 1 ? prefixed(message) : zipped(message))) };
}
function zipped(message: string | Buffer): Buffer {
  return prefixed(gzipSync(message), 1);
}
const damaged = { ...gzip, body: [prefixed(gzipSync('hello').fill(0, 12, 16), 1)] };
const cutGzip = { ...gzip, body: [prefixed(gzipSync('hello').subarray(0, -1), 1)] };
/** Their inflated sizes are 4 MiB, and one byte more. */
const largest = { ...gzip, body: [zipped(Buffer.alloc(4 * 1024 * 1024))] };
const bomb = { ...gzip, body: [zipped(Buffer.alloc(4 * 1024 * 1024 + 1))] };
const sentFields = { traceparent: '00-1-2-3', 'x-list': ['a', 'b'], 'x-other': 'c' };
/** Its length is one byte over 4 MiB. */
const tooLong = Buffer.from([0, 0, 0x40, 0, 1]);
const aThenBc = [prefixed('a'), Buffer.concat([prefixed('b'), prefixed('c')])];
const NOT_SUPPORTED = {
  ...failed(12),
  fields: expect.objectContaining({ 'grpc-accept-encoding': 'identity,gzip' }) as RawResponse['fields'],
};
const paths = ['/', 'test.Service/Echo', '/test.Service/Echo/', '/test.Service%2FEcho', '/test.Service/Echo?x=1', '*'];
const badTimeouts = ['1', '-1m', '123456789m', '1x', 'm', '0x1m', '1mm'];

type Row = [title: string, call: RawCall, expected: Partial<RawResponse>];
const BEHAVIOURS: readonly Row[] = [
  ['replies to a message', {}, OK],
  ['accepts an empty message', withBody(prefixed('')), { ...OK, messages: [''] }],
  ['accepts a message split into many DATA frames', { body: splitByBytes }, OK],
  ['accepts a request that ends with an empty DATA frame', withBody(prefixed('hello'), Buffer.alloc(0)), OK],
  ['accepts a content type with a format', withFields({ 'content-type': 'application/grpc+proto' }), OK],
  ['accepts a content type with a parameter', withFields({ 'content-type': 'application/grpc;charset=utf-8' }), OK],
  ['accepts a request without a te field', withFields({ te: undefined }), OK],
  ['rejects another content type with 415', withFields({ 'content-type': 'text/plain' }), failed(3, '415')],
  ['rejects a request without a content type with 415', withFields({ 'content-type': undefined }), failed(3, '415')],
  ['rejects gRPC-Web with 415', withFields({ 'content-type': 'application/grpc-web' }), failed(3, '415')],
  ['accepts 100 fields', withFields({ x: Array<string>(94).fill('y') }), OK],
  ['rejects 101 fields with 431', withFields({ x: Array<string>(95).fill('y') }), failed(8, '431')],
  ['rejects GET with 405', withFields({ ':method': 'GET' }), failed(13, '405')],
  ['rejects a request without an authority with 400', withFields({ ':authority': undefined }), failed(13, '400')],
  [
    'answers an unknown method with UNIMPLEMENTED, and names it',
    { method: 'Nothing' },
    { ...failed(12), isTrailersOnly: true, message: 'unknown method Nothing for service test.Service' },
  ],
  [
    'answers an unknown service with UNIMPLEMENTED, and names it',
    withFields({ ':path': '/pb.lyft.ratelimit.RateLimitService/ShouldRateLimit' }),
    { ...failed(12), message: 'unknown service pb.lyft.ratelimit.RateLimitService' },
  ],
  [
    'shortens the name of an unknown service',
    withFields({ ':path': `/${'s'.repeat(4000)}/m` }),
    { ...failed(12), message: `unknown service ${'s'.repeat(128)}%E2%80%A6` },
  ],
  [
    'answers a path without a service with UNIMPLEMENTED',
    withFields({ ':path': '/Echo' }),
    { ...failed(12), message: 'malformed method name: "/Echo"' },
  ],
  ...paths.map((path): Row => [
    `answers the path ${path} with UNIMPLEMENTED`,
    withFields({ ':path': path }),
    failed(12),
  ]),

  ['sends the message of a failed call', to('Fail', '5 not here'), { ...failed(5), message: 'not here' }],
  ['encodes other characters', to('Fail', '3 ünï 100% ~'), { ...failed(3), message: '%C3%BCn%C3%AF 100%25 ~' }],
  ['sends a long message', to('Fail', `5 ${'long '.repeat(90)}.`), { ...failed(5), message: `${'long '.repeat(90)}.` }],
  ['encodes line feeds and outer spaces', to('Fail', '3  two\nlines '), { ...failed(3), message: '%20two%0Alines%20' }],
  ['hides what a handler has thrown', { method: 'Throw' }, { ...failed(13), message: 'internal error' }],

  ['answers a unary request without a message with INTERNAL', withBody(), failed(13)],
  ['answers a unary request with an empty body with INTERNAL', withBody(Buffer.alloc(0)), failed(13)],
  ['answers a unary request with two messages with INTERNAL', withBody(prefixed('1'), prefixed('2')), failed(13)],
  ['answers a request that ends inside a message with INTERNAL', { body: cutOff }, failed(13)],
  ['answers a request that ends inside a prefix with INTERNAL', withBody(Buffer.alloc(3)), failed(13)],
  ['answers a compressed flag other than 0 and 1 with INTERNAL', withBody(prefixed('hello', 2)), failed(13)],
  ['rejects a length over 4 MiB as soon as the prefix is complete', { body: [tooLong], isOpen: true }, failed(8)],

  ['accepts an uncompressed message with a grpc-encoding', gzip, OK],
  ['accepts a message compressed with gzip', compressed('Echo', 'hello'), OK],
  [
    'accepts such messages of a stream, in order with others',
    compressed('Talk', 'a', 'b', 'c', 'd'),
    { ...OK, messages: ['A', 'B', 'C', 'D'] },
  ],
  ['accepts such a message for a server stream', compressed('Count', '2'), { ...OK, messages: ['0', '1'] }],
  ['accepts 4 MiB after decompression', largest, { ...OK, messages: ['\0'.repeat(4 * 1024 * 1024)] }],
  ['answers more than 4 MiB after decompression with RESOURCE_EXHAUSTED', bomb, failed(8)],
  ['answers it in a stream with RESOURCE_EXHAUSTED', { ...bomb, method: 'Talk' }, failed(8)],
  ['answers damaged gzip with INTERNAL', damaged, failed(13)],
  ['answers damaged gzip in a stream with INTERNAL', { ...damaged, method: 'Talk' }, failed(13)],
  ['answers gzip that is cut off with INTERNAL', cutGzip, failed(13)],
  ['answers another compression with UNIMPLEMENTED, and what it knows', snappy, NOT_SUPPORTED],
  ['answers another compression of a stream with UNIMPLEMENTED', { method: 'Talk', ...snappy }, NOT_SUPPORTED],
  ['answers a compressed message without a grpc-encoding with INTERNAL', withBody(prefixed('hello', 1)), failed(13)],

  ['accepts the longest timeout', withFields({ 'grpc-timeout': '99999999H' }), OK],
  ...badTimeouts.map((it): Row => [`rejects the timeout ${it}`, withFields({ 'grpc-timeout': it }), failed(13, '400')]),

  ['sends the messages of a server stream in order', to('Count', '3'), { ...OK, messages: ['0', '1', '2'] }],
  ['ends a server stream without messages with OK', to('Count', '0'), { ...OK, messages: [] }],
  ['replies to each message of a stream', { method: 'Talk', body: aThenBc }, { ...OK, messages: ['A', 'B', 'C'] }],
  ['answers a stream that ends inside a message with INTERNAL', { method: 'Talk', body: cutOff }, failed(13)],
  [
    'answers a stream whose deadline has passed on arrival with DEADLINE_EXCEEDED',
    { method: 'Talk', fields: { 'grpc-timeout': '0m' } },
    failed(4),
  ],
  ['ends a stream without messages with OK', to('Talk'), { ...OK, messages: [] }],
  [
    'ignores the messages of a stream after it has failed',
    to('Talk', 'a', 'fail', 'b'),
    { http: '200', status: '5', message: 'failed on request', messages: ['A'] },
  ],
  [
    'fails a stream with INTERNAL when its handler throws',
    to('Talk', 'a', 'throw', 'b'),
    { http: '200', status: '13', message: 'internal error', messages: ['A'] },
  ],
  [
    'passes the metadata that it keeps to the handler',
    { method: 'Metadata', fields: sentFields },
    { ...OK, messages: ['["00-1-2-3","a,b","none"]'] },
  ],
];

describe('the gRPC server', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(() => server.close());

  it.each(BEHAVIOURS)('%s', async (_title, call, expected) => {
    expect(await callRaw(server.address, call)).toMatchObject(expected);
  });

  it('reports what a handler has thrown, once', async () => {
    const { internalErrors } = server.seen;
    for (const call of [{ method: 'Throw' }, to('Talk', 'throw')]) {
      internalErrors.length = 0;
      await callRaw(server.address, call);
      expect(internalErrors).toEqual([new Error('the password is swordfish')]);
    }
  });
});
