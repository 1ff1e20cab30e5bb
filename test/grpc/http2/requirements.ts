import { ErrorCode, Flag, FrameType, PREFACE, Setting } from '../../../src/grpc/http2/frames/protocol';
import type { Rejection } from '../../../src/grpc/http2/limits/rejections';
import {
  REQUEST,
  type SentField,
  block,
  bytesOf,
  continuation,
  data,
  frame,
  get,
  goaway,
  headers,
  hello,
  huffmanBits,
  indexed,
  inserted,
  integer,
  literal,
  packBits,
  ping,
  priority,
  request,
  rstStream,
  settings,
  settingsAck,
  sizeUpdate,
  string,
  uint32,
  windowUpdate,
} from './frames';

const {
  PROTOCOL_ERROR,
  FLOW_CONTROL_ERROR,
  STREAM_CLOSED,
  FRAME_SIZE_ERROR,
  REFUSED_STREAM,
  COMPRESSION_ERROR,
  ENHANCE_YOUR_CALM,
  NO_ERROR,
} = ErrorCode;

/** The required effect of some bytes. */
export type Verdict =
  /** The connection is ended with GOAWAY and this code. */
  | { readonly goaway: ErrorCode; readonly as: Rejection; readonly lastStream?: number }
  /** Exactly these streams are reset; the connection stays open. */
  | { readonly resets: readonly (readonly [stream: number, code: ErrorCode])[]; readonly as: Rejection | undefined }
  /** No error occurs; these streams are answered. */
  | { readonly answers: readonly number[] };

export interface Requirement {
  /** The RFC and its section. */
  readonly reference: string;
  /** The case and its required effect, as one statement. */
  readonly title: string;
  /** Sent, and handled by the server, before {@link bytes}. */
  readonly before: Buffer;
  /** The case. */
  readonly bytes: Buffer;
  readonly then: Verdict;
}

/** `section`: of RFC 9113, unless it begins with the number of another RFC. */
function referenceOf(section: string): string {
  const [, rfc = '9113', number] = /^(?:(\d{4}) )?([\d.]+)$/.exec(section) ?? [];
  return number === undefined ? section : `RFC ${rfc}, section ${number}`;
}
function nameOf(code: ErrorCode): string {
  return Object.entries(ErrorCode).find(([, value]) => value === code)![0];
}
function effectOf(then: Verdict): string {
  if ('goaway' in then) return `ends the connection with ${nameOf(then.goaway)}`;
  if ('answers' in then) return 'is accepted';
  if (then.resets.length === 0) return 'causes no reset';
  return then.resets.map(([stream, code]) => `resets stream ${stream} with ${nameOf(code)}`).join(' and ');
}

const list: Requirement[] = [];
function from(before: Buffer) {
  return (section: string, subject: string, then: Verdict, ...frames: Buffer[]): void => {
    const title = `${subject} ${effectOf(then)}`;
    list.push({ reference: referenceOf(section), title, before, bytes: Buffer.concat(frames), then });
  };
}
/** Sent from the first byte of the connection. */
const raw = from(Buffer.alloc(0));
/** Sent after the preface. */
const after = from(hello());
/** Sent after a request on stream 1 that has been answered. */
const answered = from(Buffer.concat([hello(), get(1)]));

function ends(code: ErrorCode, as: Rejection = 'protocol_error'): Verdict {
  return { goaway: code, as };
}
function resets(stream: number, code: ErrorCode, as: Rejection = 'stream_error'): Verdict {
  return {
    resets: [[stream, code]],
    as,
  };
}
const malformed = resets(1, PROTOCOL_ERROR, 'malformed');
function answers(...streams: number[]): Verdict {
  return { answers: streams };
}

// ---------------------------------------------------------------- preface
raw(
  '3.4',
  'a connection that is not HTTP/2',
  ends(PROTOCOL_ERROR),
  Buffer.from('GET / HTTP/1.1\r\nHost: weir\r\n\r\n'),
);
raw('3.4', 'a preface with a wrong last byte', ends(PROTOCOL_ERROR), PREFACE.subarray(0, 23), Buffer.from('x'));
raw('3.4', 'a first frame that is not SETTINGS', ends(PROTOCOL_ERROR), PREFACE, ping());
raw('3.4', 'a first frame of an unknown type', ends(PROTOCOL_ERROR), PREFACE, frame(0xfa, 0, 0));
raw('3.4', 'a first SETTINGS that is an acknowledgement', ends(PROTOCOL_ERROR), PREFACE, settingsAck);
raw('3.4', 'an empty first SETTINGS', answers(1), PREFACE, settings(), get(1));
raw(
  '3.4',
  'a request sent together with the preface, before any acknowledgement,',
  answers(1),
  PREFACE,
  settings(),
  get(1),
);

// ---------------------------------------------------------------- lengths
const long = Buffer.alloc(16_385);
for (const type of [
  FrameType.DATA,
  FrameType.HEADERS,
  FrameType.CONTINUATION,
  FrameType.PUSH_PROMISE,
  FrameType.SETTINGS,
]) {
  const interrupted = type === FrameType.CONTINUATION ? [headers(1, request(), { endHeaders: false })] : [];
  const stream = type === FrameType.SETTINGS ? 0 : 1;
  after(
    '4.2',
    `a frame of type ${type} over MAX_FRAME_SIZE`,
    ends(FRAME_SIZE_ERROR),
    ...interrupted,
    frame(type, 0, stream, long),
  );
}
after('4.2', 'a frame of an unknown type over MAX_FRAME_SIZE', ends(FRAME_SIZE_ERROR), frame(0xfa, 0, 1, long));
after('4.2', 'DATA of exactly MAX_FRAME_SIZE', answers(1), headers(1), data(1, long.subarray(1), true));
after(
  '6.1',
  'padded DATA without room for the pad length',
  ends(FRAME_SIZE_ERROR),
  headers(1),
  frame(FrameType.DATA, Flag.PADDED, 1),
);
after(
  '6.2',
  'padded HEADERS without room for the pad length',
  ends(FRAME_SIZE_ERROR),
  frame(FrameType.HEADERS, 0xc, 1),
);
after(
  '6.2',
  'HEADERS without room for its priority',
  ends(FRAME_SIZE_ERROR),
  frame(FrameType.HEADERS, 0x24, 1, Buffer.alloc(4)),
);
after(
  '6.2',
  'padded HEADERS without room for its priority',
  ends(FRAME_SIZE_ERROR),
  frame(FrameType.HEADERS, 0x2c, 1, Buffer.alloc(5)),
);
after('6.5', 'SETTINGS of 5 bytes', ends(FRAME_SIZE_ERROR), frame(FrameType.SETTINGS, 0, 0, Buffer.alloc(5)));
after(
  '6.5',
  'an acknowledgement of SETTINGS with a payload',
  ends(FRAME_SIZE_ERROR),
  frame(FrameType.SETTINGS, 1, 0, Buffer.alloc(6)),
);
after('6.7', 'PING of 7 bytes', ends(FRAME_SIZE_ERROR), frame(FrameType.PING, 0, 0, Buffer.alloc(7)));
after('6.9', 'WINDOW_UPDATE of 3 bytes', ends(FRAME_SIZE_ERROR), frame(FrameType.WINDOW_UPDATE, 0, 0, Buffer.alloc(3)));
after(
  '6.4',
  'RST_STREAM of 5 bytes',
  ends(FRAME_SIZE_ERROR),
  headers(1),
  frame(FrameType.RST_STREAM, 0, 1, Buffer.alloc(5)),
);
after('6.8', 'GOAWAY of 7 bytes', ends(FRAME_SIZE_ERROR), frame(FrameType.GOAWAY, 0, 0, Buffer.alloc(7)));
after(
  '6.3',
  'PRIORITY of 4 bytes',
  resets(1, FRAME_SIZE_ERROR),
  headers(1),
  frame(FrameType.PRIORITY, 0, 1, Buffer.alloc(4)),
);
after(
  '6.3',
  'PRIORITY of 4 bytes on an idle stream, which cannot be reset,',
  ends(FRAME_SIZE_ERROR),
  frame(FrameType.PRIORITY, 0, 1, Buffer.alloc(4)),
);

// ---------------------------------------------------------------- stream identifiers
for (const [name, bytes] of [
  ['DATA', data(0, 'x')],
  ['HEADERS', headers(0)],
  ['PRIORITY', priority(0, 1)],
  ['RST_STREAM', rstStream(0)],
  ['SETTINGS', frame(FrameType.SETTINGS, 0, 1)],
  ['PING', frame(FrameType.PING, 0, 1, Buffer.alloc(8))],
  ['GOAWAY', frame(FrameType.GOAWAY, 0, 1, Buffer.alloc(8))],
] as const) {
  after('6', `${name} on the wrong kind of stream`, ends(PROTOCOL_ERROR), bytes);
}
after('6.10', 'CONTINUATION on stream 0', ends(PROTOCOL_ERROR), continuation(0, block()));
after(
  '4.1',
  'a reserved bit before the stream number',
  answers(1),
  frame(FrameType.HEADERS, 5, 0x8000_0001, request()),
);
after('4.1', 'a reserved bit before a window increment', answers(1), windowUpdate(0, 0x8000_0001), get(1));
after(
  '4.1',
  'a frame with undefined flags',
  answers(1),
  frame(FrameType.HEADERS, 5 | 0x92, 1, request()),
  ping('flagflag', 0xfe),
);
after('4.1', 'a frame of an unknown type', answers(1), frame(0xfa, 0xff, 0, Buffer.alloc(30)), get(1));
after(
  '5.5',
  'a frame of an unknown type inside a header block',
  ends(PROTOCOL_ERROR),
  headers(1, request(), { endHeaders: false }),
  frame(0xfa, 0, 1),
);

// ---------------------------------------------------------------- padding
after(
  '6.1',
  'padding that leaves no payload',
  answers(1),
  headers(1),
  frame(FrameType.DATA, Flag.PADDED | Flag.END_STREAM, 1, bytesOf(4, 0, 0, 0, 0)),
);
after(
  '6.1',
  'padding longer than the payload',
  ends(PROTOCOL_ERROR),
  headers(1),
  frame(FrameType.DATA, Flag.PADDED, 1, bytesOf(5, 0, 0, 0, 0)),
);
after(
  '6.2',
  'padded HEADERS with priority',
  answers(1),
  headers(1, request(), { endStream: true, padding: 255, dependency: 3 }),
);
after(
  '6.2',
  'padding longer than the payload after the priority fields',
  ends(PROTOCOL_ERROR),
  frame(FrameType.HEADERS, 0x2d, 1, Buffer.concat([bytesOf(5), uint32(3), bytesOf(15), bytesOf(1, 2, 3, 4)])),
);
after(
  '6.2',
  'a pad length of 255 in a short frame',
  ends(PROTOCOL_ERROR),
  frame(FrameType.HEADERS, 0x2d, 1, Buffer.concat([bytesOf(255), uint32(3), bytesOf(15), block()])),
);

// ---------------------------------------------------------------- header blocks and frames between them
const half = request().subarray(0, 10);
const rest = request().subarray(10);
after(
  '6.10',
  'a header block that is completed by CONTINUATION',
  answers(1),
  headers(1, half, { endStream: true, endHeaders: false }),
  continuation(1, rest, true),
);
after(
  '6.2',
  'DATA after a CONTINUATION with flag 1, which is undefined there and does not end the stream,',
  answers(1),
  headers(1, half, { endHeaders: false }),
  frame(FrameType.CONTINUATION, 5, 1, rest),
  data(1, '', true),
);
after(
  '6.10',
  'another stream inside a header block',
  ends(PROTOCOL_ERROR),
  headers(1, half, { endHeaders: false }),
  headers(3),
);
after(
  '6.10',
  'CONTINUATION of another stream',
  ends(PROTOCOL_ERROR),
  headers(1, half, { endHeaders: false }),
  continuation(3, rest, true),
);
after('6.10', 'PING inside a header block', ends(PROTOCOL_ERROR), headers(1, half, { endHeaders: false }), ping());
after('6.10', 'CONTINUATION without a header block', ends(PROTOCOL_ERROR), continuation(1, rest, true));
after('6.10', 'CONTINUATION after END_HEADERS', ends(PROTOCOL_ERROR), headers(1), continuation(1, rest, true));

// ---------------------------------------------------------------- stream states
after('5.1.1', 'a request on an even stream', ends(PROTOCOL_ERROR), headers(2));
after('5.1.1', 'a request on a stream lower than the last', ends(PROTOCOL_ERROR), headers(5), headers(3));
answered(
  '5.1',
  'HEADERS on a stream that both sides ended',
  ends(STREAM_CLOSED),
  headers(1, request(), { endStream: true }),
);
answered('5.1', 'DATA on a stream that both sides ended', resets(1, STREAM_CLOSED), data(1, 'x'));
after('5.1', 'DATA on an idle stream', ends(PROTOCOL_ERROR), data(1, 'x'));
after('5.1', 'DATA on an idle stream with an even identifier', ends(PROTOCOL_ERROR), data(2, 'x'));
after(
  '6.1',
  'DATA on a stream that a request on a higher stream has closed',
  { resets: [[1, STREAM_CLOSED]], as: undefined },
  get(3),
  data(1, 'x'),
);
after('5.1', 'WINDOW_UPDATE on an idle stream', ends(PROTOCOL_ERROR), windowUpdate(1, 1));
after('5.1', 'RST_STREAM on an idle stream', ends(PROTOCOL_ERROR), rstStream(1));
after('5.1', 'a request after PRIORITY on its stream, which stays idle,', answers(1), priority(1, 3), get(1));
after('5.1', 'DATA on a half-closed stream', resets(1, STREAM_CLOSED), get(1, '/hold'), data(1, 'x'));
after(
  '5.1',
  'HEADERS on a half-closed stream',
  resets(1, STREAM_CLOSED),
  get(1, '/hold'),
  headers(1, request(), { endStream: true }),
);
after(
  '5.1',
  'a malformed request whose later frames are ignored',
  { resets: [[1, PROTOCOL_ERROR]], as: 'malformed' },
  headers(1, request('')),
  data(1, 'x'),
  headers(1, block([['x', 'y']]), { endStream: true }),
  windowUpdate(1, 0),
  rstStream(1),
);
after('5.1', 'DATA after the peer reset the stream', resets(1, STREAM_CLOSED), headers(1), rstStream(1), data(1, 'x'));
after(
  '5.1',
  'HEADERS after the peer reset the stream',
  resets(1, STREAM_CLOSED),
  headers(1),
  rstStream(1),
  headers(1, request(), { endStream: true }),
);
after(
  '5.1',
  'only the first of several DATA frames after the peer reset the stream',
  resets(1, STREAM_CLOSED),
  headers(1),
  rstStream(1),
  data(1, 'x'),
  data(1, 'x'),
  data(1, 'x'),
);
answered(
  '5.1',
  'WINDOW_UPDATE followed by RST_STREAM on a closed stream',
  answers(1),
  windowUpdate(1, 1),
  rstStream(1, NO_ERROR),
);
after(
  '5.4.2',
  'RST_STREAM on a stream that the peer has reset',
  { resets: [], as: undefined },
  headers(1),
  rstStream(1),
  rstStream(1),
  rstStream(1),
);
after('7', 'RST_STREAM with an unknown code', { resets: [], as: undefined }, headers(1), rstStream(1, 0xffff_ffff));
after(
  '8.1',
  'a response before the end of the request',
  { resets: [[1, NO_ERROR]], as: undefined },
  headers(1, request('/early')),
  data(1, 'late'),
);

// ---------------------------------------------------------------- frames that only servers send
after(
  '8.4',
  'PUSH_PROMISE from a client',
  ends(PROTOCOL_ERROR),
  headers(1),
  frame(FrameType.PUSH_PROMISE, 4, 1, Buffer.concat([uint32(2), block()])),
);

// ---------------------------------------------------------------- settings
after('6.5.2', 'ENABLE_PUSH of 2', ends(PROTOCOL_ERROR), settings([Setting.ENABLE_PUSH, 2]));
after('6.5.2', 'MAX_FRAME_SIZE of 0', ends(PROTOCOL_ERROR), settings([Setting.MAX_FRAME_SIZE, 0]));
after('6.5.2', 'MAX_FRAME_SIZE below 2^14', ends(PROTOCOL_ERROR), settings([Setting.MAX_FRAME_SIZE, 16_383]));
after('6.5.2', 'MAX_FRAME_SIZE above 2^24-1', ends(PROTOCOL_ERROR), settings([Setting.MAX_FRAME_SIZE, 2 ** 24]));
after(
  '6.5.2',
  'an invalid value that a later one overrides',
  ends(PROTOCOL_ERROR),
  settings([Setting.MAX_FRAME_SIZE, 1], [Setting.MAX_FRAME_SIZE, 16_384]),
);
after(
  '6.5.2',
  'INITIAL_WINDOW_SIZE above 2^31-1',
  ends(FLOW_CONTROL_ERROR, 'flow_control_error'),
  settings([Setting.INITIAL_WINDOW_SIZE, 2 ** 31]),
);
after('RFC 9218', 'NO_RFC7540_PRIORITIES of 2', ends(PROTOCOL_ERROR), settings([Setting.NO_RFC7540_PRIORITIES, 2]));
after('6.5.2', 'an unknown setting', answers(1), settings([0x00fa, 0xffff_ffff]), get(1));
after(
  '6.5.2',
  'the largest value of every setting',
  answers(1),
  settings(
    [Setting.HEADER_TABLE_SIZE, 2 ** 32 - 1],
    [Setting.MAX_CONCURRENT_STREAMS, 2 ** 32 - 1],
    [Setting.INITIAL_WINDOW_SIZE, 2 ** 31 - 1],
    [Setting.MAX_FRAME_SIZE, 2 ** 24 - 1],
    [Setting.MAX_HEADER_LIST_SIZE, 2 ** 32 - 1],
  ),
  get(1),
);
after('6.5.3', 'an unsolicited acknowledgement of SETTINGS', answers(1), settingsAck, get(1));
after(
  '6.9.2',
  'INITIAL_WINDOW_SIZE that overflows an open window',
  ends(FLOW_CONTROL_ERROR, 'flow_control_error'),
  get(1, '/hold'),
  windowUpdate(1, 2 ** 31 - 1 - 65_535),
  settings([Setting.INITIAL_WINDOW_SIZE, 65_536]),
);

// ---------------------------------------------------------------- flow control
after('6.9', 'WINDOW_UPDATE of 0 on a stream', resets(1, PROTOCOL_ERROR), headers(1), windowUpdate(1, 0));
after('6.9', 'WINDOW_UPDATE of 0 on the connection', ends(PROTOCOL_ERROR), windowUpdate(0, 0));
after(
  '6.9.1',
  'a stream window above 2^31-1',
  resets(1, FLOW_CONTROL_ERROR, 'flow_control_error'),
  headers(1),
  windowUpdate(1, 2 ** 31 - 1),
);
after(
  '6.9.1',
  'a connection window above 2^31-1',
  ends(FLOW_CONTROL_ERROR, 'flow_control_error'),
  windowUpdate(0, 2 ** 31 - 1),
);
after(
  '6.9.1',
  'a window of exactly 2^31-1',
  answers(1),
  windowUpdate(0, 2 ** 31 - 1 - 65_535),
  headers(1),
  windowUpdate(1, 2 ** 31 - 1 - 65_535),
  data(1, '', true),
);

// ---------------------------------------------------------------- compression
const compression = ends(COMPRESSION_ERROR, 'compression_error');
function get1(fields: Buffer) {
  return headers(1, fields, { endStream: true });
}
after('7541 6.1', 'index 0', compression, get1(Buffer.concat([request(), indexed(0)])));
after('7541 6.1', 'an index past the end of the table', compression, get1(Buffer.concat([request(), indexed(62)])));
after(
  '7541 6.2',
  'a name index past the end of the table',
  compression,
  get1(Buffer.concat([request(), integer(62, 0x3f, 0x40), string('x')])),
);
after(
  '7541 5.2',
  'a string past the end of the block',
  compression,
  get1(Buffer.concat([request(), bytesOf(0), string('x'), bytesOf(5), Buffer.from('four')])),
);
after('7541 5.1', 'a truncated integer', compression, get1(Buffer.concat([request(), bytesOf(0xff, 0x80)])));
after(
  '7541 5.1',
  'an integer with too many continuation bytes',
  compression,
  get1(Buffer.concat([request(), bytesOf(0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01)])),
);
after(
  '7541 5.1',
  'an integer above 2^31-1',
  compression,
  get1(Buffer.concat([request(), bytesOf(0xff, 0xff, 0xff, 0xff, 0xff, 0x0f)])),
);
after('9113 4.3', 'a literal without a value', compression, get1(Buffer.concat([request(), bytesOf(0), string('x')])));
function huffman(bytes: Buffer) {
  return get1(Buffer.concat([request(), bytesOf(0), string('x'), integer(bytes.length, 0x7f, 0x80), bytes]));
}
after(
  '7541 5.2',
  'Huffman padding of 8 ones',
  compression,
  huffman(Buffer.concat([packBits(huffmanBits(Buffer.from('0'))), bytesOf(0xff)])),
);
after('7541 5.2', 'a Huffman string of one byte of ones', compression, huffman(bytesOf(0xff)));
after('7541 5.2', 'Huffman padding of zeros', compression, huffman(packBits(huffmanBits(Buffer.from('0')), '0')));
after('7541 5.2', 'EOS inside a Huffman string', compression, huffman(packBits('1'.repeat(30))));
after('7541 4.2', 'a table size update after a field', compression, get1(Buffer.concat([request(), sizeUpdate(0)])));
after(
  '7541 6.3',
  'a table size update above our SETTINGS_HEADER_TABLE_SIZE',
  compression,
  get1(Buffer.concat([sizeUpdate(4_097), request()])),
);
after(
  '7541 4.2',
  'a block with three table size updates',
  compression,
  get1(Buffer.concat([sizeUpdate(0), sizeUpdate(1), sizeUpdate(2), request()])),
);
after(
  '7541 4.2',
  'a block with two table size updates',
  answers(1),
  get1(Buffer.concat([sizeUpdate(0), sizeUpdate(4_096), request()])),
);
after(
  '7541 4.4',
  'an index after an entry larger than the table, which empties it,',
  compression,
  get1(Buffer.concat([request(), inserted(['x', 'y']), inserted(['x', 'y'.repeat(4_096)]), indexed(62)])),
);
after(
  '7541 4.4',
  'an entry that evicts the entry of its own name',
  answers(1),
  get1(
    Buffer.concat([
      request(),
      inserted(['x'.repeat(2_000), 'y']),
      integer(62, 0x3f, 0x40),
      string('y'.repeat(2_000)),
      indexed(62),
    ]),
  ),
);
after(
  '9113 4.3',
  'a malformed block, whose insertions still enter the table,',
  { resets: [[1, PROTOCOL_ERROR]], as: 'malformed' },
  get1(Buffer.concat([request(''), inserted(['te', 'trailers'])])),
  headers(3, Buffer.concat([request('/hold'), indexed(62)]), { endStream: true }),
);

// ---------------------------------------------------------------- malformed requests
function carrying(...fields: SentField[]) {
  return get1(request('/', ...fields));
}
function without(name: string) {
  return get1(block(REQUEST.filter(([it]) => it !== name)));
}
for (const name of ['X-Upper', 'a b', 'a\x7f', 'a\xff', 'a:b', '', '\x00', 'a\r']) {
  after('8.2.1', `the field name ${JSON.stringify(name)}`, malformed, carrying([name, 'v']));
}
for (const value of [' a', 'a ', '\ta', 'a\t', ' ', 'a\0b', 'a\rb', 'a\nb']) {
  after('8.2.1', `the field value ${JSON.stringify(value)}`, malformed, carrying(['x', value]));
}
after(
  '8.2.1',
  'a field value of control characters and bytes that are permitted',
  answers(1),
  carrying(['x', '\x01 \x7f\xff']),
);
after('8.2.1', 'an empty field value', answers(1), carrying(['x', '']));
for (const name of [':method', ':scheme', ':path']) {
  after('8.3.1', `a request without ${name}`, malformed, without(name));
  after('8.3.1', `a request with two ${name} fields`, malformed, get1(block([[name, 'POST'], ...REQUEST])));
}
after('8.3.1', 'a request without :authority', answers(1), without(':authority'));
after('8.3.1', 'a request with two :authority fields', malformed, get1(block([[':authority', 'weir'], ...REQUEST])));
after(
  '8.3.1',
  'a request with two different :authority fields',
  malformed,
  get1(block([[':authority', 'other'], ...REQUEST])),
);
after('8.3.1', 'an empty :path', malformed, get1(request('')));
after(
  '8.3',
  'a pseudo-header field after a regular field',
  malformed,
  get1(block([...REQUEST.slice(1), ['x', 'y'], REQUEST[0]!])),
);
after('8.3', 'the pseudo-header field of responses', malformed, get1(block([[':status', '200'], ...REQUEST])));
after('8.3', 'an unknown pseudo-header field', malformed, get1(block([[':weir', 'x'], ...REQUEST])));
for (const name of ['connection', 'proxy-connection', 'keep-alive', 'transfer-encoding', 'upgrade']) {
  after('8.2.2', `the field ${name}`, malformed, carrying([name, 'x']));
}
after('8.2.2', 'te other than trailers', malformed, carrying(['te', 'gzip']));
after('8.2.2', 'te: trailers', answers(1), carrying(['te', 'trailers']));
after('8.3.1', 'a request with two host fields', malformed, carrying(['host', 'weir'], ['host', 'weir']));
after('8.3.1', 'a request with two different host fields', malformed, carrying(['host', 'weir'], ['host', 'other']));
after('8.3.1', 'a host other than :authority', malformed, carrying(['host', 'other']));
after('8.3.1', 'a host equal to :authority', answers(1), carrying(['host', 'weir']));
after('8.5', 'CONNECT with a path', malformed, get1(block([[':method', 'CONNECT'], ...REQUEST.slice(1)])));
after('8.5', 'CONNECT without an authority', malformed, get1(block([[':method', 'CONNECT']])));
function length(...values: string[]) {
  return headers(1, request('/', ...values.map((value) => ['content-length', value] as const)));
}
after('8.1.1', 'a body shorter than content-length', malformed, length('3'), data(1, 'ab', true));
after('8.1.1', 'a body longer than content-length', malformed, length('3'), data(1, 'abcd'));
after(
  '8.1.1',
  'a body as long as content-length, in pieces and not counting padding,',
  answers(1),
  length('3'),
  data(1, 'ab', false, 7),
  data(1, 'c', true),
);
after('8.1.1', 'content-length without a body', malformed, carrying(['content-length', '3']));
after('8.1.1', 'content-length 0 without a body', answers(1), carrying(['content-length', '0']));
after('8.1.1', 'a request with two different content-lengths', malformed, length('3', '4'));
after('8.1.1', 'a request with two equal content-lengths', answers(1), length('3', '3'), data(1, 'abc', true));
for (const value of ['-1', '+3', '3 3', '0x3', '', '12345678901234567890']) {
  after('8.1.1', `content-length ${JSON.stringify(value)}`, malformed, length(value));
}
after(
  '8.1.1',
  'a trailer section before the end of content-length',
  malformed,
  length('3'),
  data(1, 'ab'),
  headers(1, block([['x', 'y']]), { endStream: true }),
);
after('8.1', 'a second HEADERS without END_STREAM', malformed, headers(1), headers(1, block([['x', 'y']])));
after('8.1', 'a pseudo-header field in trailers', malformed, headers(1), headers(1, request(), { endStream: true }));
after(
  '8.1',
  'a request with trailers',
  answers(1),
  headers(1),
  data(1, 'ab'),
  headers(1, block([['x', 'y']]), { endStream: true }),
);
after(
  '7540 5.3.1',
  'HEADERS that depends on its own stream',
  malformed,
  headers(1, request(), { endStream: true, dependency: 1 }),
);
after('7540 5.3.1', 'PRIORITY that depends on its own stream', resets(1, PROTOCOL_ERROR), headers(1), priority(1, 1));

// ---------------------------------------------------------------- ping, goaway
after('6.7', 'an acknowledgement of a PING that was not sent', answers(1), ping('not-sent', Flag.ACK), get(1));
after(
  '6.8',
  'GOAWAY from the client, once its open streams have finished,',
  { goaway: NO_ERROR, as: 'protocol_error', lastStream: 1 },
  get(1, '/'),
  headers(3).subarray(0, 0),
  goaway(),
);
after(
  '5.1.2',
  'a stream over SETTINGS_MAX_CONCURRENT_STREAMS',
  { resets: [[2_049, REFUSED_STREAM]], as: 'streams' },
  ...Array.from({ length: 1_025 }, (_, at) => get(2 * at + 1, '/hold')),
);
after(
  '6.5',
  'SETTINGS of 33 entries',
  ends(ENHANCE_YOUR_CALM, 'settings_flood'),
  settings(...Array.from({ length: 33 }, () => [Setting.ENABLE_PUSH, 0] as const)),
);
after(
  '6.10',
  'a header block between the frames of another stream',
  answers(3, 1),
  headers(1),
  headers(3, half, { endStream: true, endHeaders: false }),
  continuation(3, rest, true),
  data(1, '', true),
);
after(
  '7541 6.2.3',
  'a request with literals of every form',
  answers(1),
  get1(
    Buffer.concat([
      indexed(3),
      indexed(6),
      bytesOf(0x14),
      string('/'),
      literal(['x', 'y']),
      inserted(['te', 'trailers']),
      indexed(62),
    ]),
  ),
);

export const REQUIREMENTS: readonly Requirement[] = list;
