import { ErrorCode, Flag, FrameType, PREFACE, Setting } from '../../../src/grpc/http2/protocol';
import type { Rejection } from '../../../src/grpc/http2/limits';
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
  times,
  uint32,
  windowUpdate,
} from './frames';

const { DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION } =
  FrameType;
const { PADDED, END_STREAM } = Flag;
const { ENABLE_PUSH, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, NO_RFC7540_PRIORITIES } = Setting;
const { PROTOCOL_ERROR, FLOW_CONTROL_ERROR, STREAM_CLOSED, FRAME_SIZE_ERROR, COMPRESSION_ERROR, NO_ERROR } = ErrorCode;

/** The required effect of some bytes. */
export type Verdict =
  /** The connection is ended with GOAWAY and this code. */
  | { readonly goaway: ErrorCode; readonly as: Rejection }
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

/** `about`: the section and the case, with a colon between them. */
type Row = readonly [about: string, ...frames: Buffer[]];

const list: Requirement[] = [];
function from(before: Buffer) {
  return (then: Verdict, ...rows: readonly Row[]): void => {
    for (const [about, ...frames] of rows) {
      const [, section, subject] = /^(.+?): (.*)$/s.exec(about)!;
      const title = `${subject!} ${effectOf(then)}`;
      list.push({ reference: referenceOf(section!), title, before, bytes: Buffer.concat(frames), then });
    }
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
function resets(stream: number, code: ErrorCode, as: Rejection | undefined = 'stream_error'): Verdict {
  return { resets: [[stream, code]], as };
}
function answers(...streams: number[]): Verdict {
  return { answers: streams };
}
/** Stream 1 is reset, which is not counted as a fault of the client. */
function ignored(code: ErrorCode): Verdict {
  return { resets: [[1, code]], as: undefined };
}
const protocolError = ends(PROTOCOL_ERROR);
const wrongSize = ends(FRAME_SIZE_ERROR);
const flowControlError = ends(FLOW_CONTROL_ERROR, 'flow_control_error');
const compressionError = ends(COMPRESSION_ERROR, 'compression_error');
const closedStream = resets(1, STREAM_CLOSED);
const malformed = resets(1, PROTOCOL_ERROR, 'malformed');
const noReset: Verdict = { resets: [], as: undefined };

// ---------------------------------------------------------------- preface
raw(
  protocolError,
  ['3.4: a connection that is not HTTP/2', Buffer.from('GET / HTTP/1.1\r\nHost: weir\r\n\r\n')],
  ['3.4: a preface with a wrong last byte', PREFACE.subarray(0, 23), Buffer.from('x')],
  ['3.4: a first frame that is not SETTINGS', PREFACE, ping()],
  ['3.4: a first frame of an unknown type', PREFACE, frame(0xfa, 0, 0)],
  ['3.4: a first SETTINGS that is an acknowledgement', PREFACE, settingsAck],
);
raw(
  answers(1),
  ['3.4: an empty first SETTINGS', PREFACE, settings(), get(1)],
  ['3.4: a request sent together with the preface, before any acknowledgement,', PREFACE, settings(), get(1)],
);

// ---------------------------------------------------------------- lengths
const long = Buffer.alloc(16_385);
const open1 = headers(1, request(), { endHeaders: false });
after(
  wrongSize,
  ...[DATA, HEADERS, PUSH_PROMISE].map((type): Row => [
    `4.2: a frame of type ${type} over MAX_FRAME_SIZE`,
    frame(type, 0, 1, long),
  ]),
  ['4.2: a frame of type 9 over MAX_FRAME_SIZE', open1, frame(CONTINUATION, 0, 1, long)],
  ['4.2: a frame of type 4 over MAX_FRAME_SIZE', frame(SETTINGS, 0, 0, long)],
  ['4.2: a frame of an unknown type over MAX_FRAME_SIZE', frame(0xfa, 0, 1, long)],
  ['6.1: padded DATA without room for the pad length', headers(1), frame(DATA, PADDED, 1)],
  ['6.2: padded HEADERS without room for the pad length', frame(HEADERS, 0xc, 1)],
  ['6.2: HEADERS without room for its priority', frame(HEADERS, 0x24, 1, Buffer.alloc(4))],
  ['6.2: padded HEADERS without room for its priority', frame(HEADERS, 0x2c, 1, Buffer.alloc(5))],
  ['6.5: SETTINGS of 5 bytes', frame(SETTINGS, 0, 0, Buffer.alloc(5))],
  ['6.5: an acknowledgement of SETTINGS with a payload', frame(SETTINGS, 1, 0, Buffer.alloc(6))],
  ['6.7: PING of 7 bytes', frame(PING, 0, 0, Buffer.alloc(7))],
  ['6.9: WINDOW_UPDATE of 3 bytes', frame(WINDOW_UPDATE, 0, 0, Buffer.alloc(3))],
  ['6.4: RST_STREAM of 5 bytes', headers(1), frame(RST_STREAM, 0, 1, Buffer.alloc(5))],
  ['6.8: GOAWAY of 7 bytes', frame(GOAWAY, 0, 0, Buffer.alloc(7))],
  ['6.3: PRIORITY of 4 bytes on an idle stream, which cannot be reset,', frame(PRIORITY, 0, 1, Buffer.alloc(4))],
);
const onlyPriority = headers(1, Buffer.alloc(0), { endStream: true, endHeaders: false, dependency: 3 });
after(answers(1), ['6.2: HEADERS with only its priority', onlyPriority, continuation(1, request(), true)]);
after(answers(1), ['4.2: DATA of exactly MAX_FRAME_SIZE', headers(1), data(1, long.subarray(1), true)]);
after(resets(1, FRAME_SIZE_ERROR), ['6.3: PRIORITY of 4 bytes', headers(1), frame(PRIORITY, 0, 1, Buffer.alloc(4))]);

// ---------------------------------------------------------------- stream identifiers
after(
  protocolError,
  ['6: DATA on the wrong kind of stream', data(0, 'x')],
  ['6: HEADERS on the wrong kind of stream', headers(0)],
  ['6: PRIORITY on the wrong kind of stream', priority(0, 1)],
  ['6: RST_STREAM on the wrong kind of stream', rstStream(0)],
  ['6: SETTINGS on the wrong kind of stream', frame(SETTINGS, 0, 1)],
  ['6: PING on the wrong kind of stream', frame(PING, 0, 1, Buffer.alloc(8))],
  ['6: GOAWAY on the wrong kind of stream', frame(GOAWAY, 0, 1, Buffer.alloc(8))],
  ['6.10: CONTINUATION on stream 0', continuation(0, block())],
  ['5.5: a frame of an unknown type inside a header block', open1, frame(0xfa, 0, 1)],
);
after(
  answers(1),
  ['4.1: a reserved bit before the stream number', frame(HEADERS, 5, 0x8000_0001, request())],
  ['4.1: a reserved bit before a window increment', windowUpdate(0, 0x8000_0001), get(1)],
  ['4.1: a frame with undefined flags', frame(HEADERS, 5 | 0x92, 1, request()), ping('flagflag', 0xfe)],
  ['4.1: a frame of an unknown type', frame(0xfa, 0xff, 0, Buffer.alloc(30)), get(1)],
);

// ---------------------------------------------------------------- padding
/** The pad length, the priority fields, and the rest of HEADERS. */
function paddedWithPriority(padding: number, rest: Buffer, flags = 0x2d): Buffer {
  return frame(HEADERS, flags, 1, Buffer.concat([bytesOf(padding), uint32(3), bytesOf(15), rest]));
}
after(
  answers(1),
  ['6.1: padding that leaves no payload', headers(1), frame(DATA, PADDED | END_STREAM, 1, bytesOf(4, 0, 0, 0, 0))],
  ['6.2: padded HEADERS with priority', headers(1, request(), { endStream: true, padding: 255, dependency: 3 })],
  [
    '6.2: HEADERS with a pad length and priority fields only',
    paddedWithPriority(0, Buffer.alloc(0), 0x29),
    continuation(1, request(), true),
  ],
);
after(
  protocolError,
  ['6.1: padding longer than the payload', headers(1), frame(DATA, PADDED, 1, bytesOf(5, 0, 0, 0, 0))],
  ['6.2: padding longer than the payload after the priority fields', paddedWithPriority(5, bytesOf(1, 2, 3, 4))],
  ['6.2: a pad length of 255 in a short frame', paddedWithPriority(255, block())],
);

// ---------------------------------------------------------------- header blocks and frames between them
const half = request().subarray(0, 10);
const rest = request().subarray(10);
const openHalf = headers(1, half, { endHeaders: false });
const endedHalf = headers(1, half, { endStream: true, endHeaders: false });
const blockOf3 = [headers(3, half, { endStream: true, endHeaders: false }), continuation(3, rest, true)];
const undefinedFlag = frame(CONTINUATION, 5, 1, rest);
after(
  answers(1),
  ['6.10: a header block that is completed by CONTINUATION', endedHalf, continuation(1, rest, true)],
  ['6.2: DATA after CONTINUATION with flag 1, which is undefined there,', openHalf, undefinedFlag, data(1, '', true)],
);
const between = [headers(1), ...blockOf3, data(1, '', true)];
after(answers(3, 1), ['6.10: a header block between the frames of another stream', ...between]);
after(
  protocolError,
  ['6.10: another stream inside a header block', openHalf, headers(3)],
  ['6.10: CONTINUATION of another stream', openHalf, continuation(3, rest, true)],
  ['6.10: PING inside a header block', openHalf, ping()],
  ['6.10: CONTINUATION without a header block', continuation(1, rest, true)],
  ['6.10: CONTINUATION after END_HEADERS', headers(1), continuation(1, rest, true)],
);

// ---------------------------------------------------------------- stream states
const again = headers(1, request(), { endStream: true });
const isReset = Buffer.concat([headers(1), rstStream(1)]);
const trailers = headers(1, block([['x', 'y']]), { endStream: true });
after(
  protocolError,
  ['5.1.1: a request on an even stream', headers(2)],
  ['5.1.1: a request on a stream lower than the last', headers(5), headers(3)],
  ['5.1: DATA on an idle stream', data(1, 'x')],
  ['5.1: DATA on an idle stream with an even identifier', data(2, 'x')],
  ['5.1: WINDOW_UPDATE on an idle stream', windowUpdate(1, 1)],
  ['5.1: RST_STREAM on an idle stream', rstStream(1)],
  ['8.4: PUSH_PROMISE from a client', headers(1), frame(PUSH_PROMISE, 4, 1, Buffer.concat([uint32(2), block()]))],
);
answered(ends(STREAM_CLOSED), ['5.1: HEADERS on a stream that both sides ended', again]);
answered(closedStream, ['5.1: DATA on a stream that both sides ended', data(1, 'x')]);
const late = [windowUpdate(1, 1), rstStream(1, NO_ERROR)];
answered(answers(1), ['5.1: WINDOW_UPDATE and RST_STREAM on a closed stream', ...late]);
const skipped = [get(3), data(1, 'x')];
after(ignored(STREAM_CLOSED), ['6.1: DATA on a stream that a request on a higher stream has closed', ...skipped]);
after(
  closedStream,
  ['5.1: DATA on a half-closed stream', get(1, '/hold'), data(1, 'x')],
  ['5.1: HEADERS on a half-closed stream', get(1, '/hold'), again],
  ['5.1: DATA after the peer reset the stream', isReset, data(1, 'x')],
  ['5.1: HEADERS after the peer reset the stream', isReset, again],
  ['5.1: only the first of several DATA frames after the peer reset the stream', isReset, times(3, () => data(1, 'x'))],
);
after(answers(1), ['5.1: a request after PRIORITY on its stream, which stays idle,', priority(1, 3), get(1)]);
const afterMalformed = [data(1, 'x'), trailers, windowUpdate(1, 0), rstStream(1)];
after(malformed, [
  '5.1: a malformed request whose later frames are ignored',
  headers(1, request('')),
  ...afterMalformed,
]);
after(
  noReset,
  ['5.4.2: RST_STREAM on a stream that the peer has reset', isReset, rstStream(1), rstStream(1)],
  ['7: RST_STREAM with an unknown code', headers(1), rstStream(1, 0xffff_ffff)],
);
const early = [headers(1, request('/early')), data(1, 'late')];
after(ignored(NO_ERROR), ['8.1: a response before the end of the request', ...early]);
const tooMany = times(1_025, (at) => get(2 * at + 1, '/hold'));
const refused = resets(2_049, ErrorCode.REFUSED_STREAM, 'streams');
after(refused, ['5.1.2: a stream over SETTINGS_MAX_CONCURRENT_STREAMS', tooMany]);

// ---------------------------------------------------------------- settings
const invalidThenValid = settings([MAX_FRAME_SIZE, 1], [MAX_FRAME_SIZE, 16_384]);
const largest = settings([1, 2 ** 32 - 1], [3, 2 ** 32 - 1], [4, 2 ** 31 - 1], [5, 2 ** 24 - 1], [6, 2 ** 32 - 1]);
const largestIncrement = 2 ** 31 - 1 - 65_535;
const overflowing = [get(1, '/hold'), windowUpdate(1, largestIncrement), settings([INITIAL_WINDOW_SIZE, 65_536])];
after(
  protocolError,
  ['6.5.2: ENABLE_PUSH of 2', settings([ENABLE_PUSH, 2])],
  ['6.5.2: MAX_FRAME_SIZE of 0', settings([MAX_FRAME_SIZE, 0])],
  ['6.5.2: MAX_FRAME_SIZE below 2^14', settings([MAX_FRAME_SIZE, 16_383])],
  ['6.5.2: MAX_FRAME_SIZE above 2^24-1', settings([MAX_FRAME_SIZE, 2 ** 24])],
  ['6.5.2: an invalid value that a later one overrides', invalidThenValid],
  ['RFC 9218: NO_RFC7540_PRIORITIES of 2', settings([NO_RFC7540_PRIORITIES, 2])],
);
after(
  flowControlError,
  ['6.5.2: INITIAL_WINDOW_SIZE above 2^31-1', settings([INITIAL_WINDOW_SIZE, 2 ** 31])],
  ['6.9.2: INITIAL_WINDOW_SIZE that overflows an open window', ...overflowing],
);
after(
  answers(1),
  ['6.5.2: an unknown setting', settings([0x00fa, 0xffff_ffff]), get(1)],
  ['6.5.2: the largest value of every setting', largest, get(1)],
  ['6.5.3: an unsolicited acknowledgement of SETTINGS', settingsAck, get(1)],
);
const manySettings = settings(...Array.from({ length: 33 }, () => [ENABLE_PUSH, 0] as const));
after(ends(ErrorCode.ENHANCE_YOUR_CALM, 'settings_flood'), ['6.5: SETTINGS of 33 entries', manySettings]);

// ---------------------------------------------------------------- flow control
after(resets(1, PROTOCOL_ERROR), ['6.9: WINDOW_UPDATE of 0 on a stream', headers(1), windowUpdate(1, 0)]);
after(protocolError, ['6.9: WINDOW_UPDATE of 0 on the connection', windowUpdate(0, 0)]);
const aboveLargest = [headers(1), windowUpdate(1, 2 ** 31 - 1)];
after(resets(1, FLOW_CONTROL_ERROR, 'flow_control_error'), ['6.9.1: a stream window above 2^31-1', ...aboveLargest]);
after(flowControlError, ['6.9.1: a connection window above 2^31-1', windowUpdate(0, 2 ** 31 - 1)]);
const largestWindows = [windowUpdate(0, largestIncrement), headers(1), windowUpdate(1, largestIncrement)];
after(answers(1), ['6.9.1: a window of exactly 2^31-1', ...largestWindows, data(1, '', true)]);

// ---------------------------------------------------------------- compression
function get1(fields: Buffer): Buffer {
  return headers(1, fields, { endStream: true });
}
/** A request with more in its header block. */
function adding(...more: Buffer[]): Buffer {
  return get1(Buffer.concat([request(), ...more]));
}
/** A request with something before the fields of its header block. */
function beginning(...updates: Buffer[]): Buffer {
  return get1(Buffer.concat([...updates, request()]));
}
function huffman(bytes: Buffer): Buffer {
  return adding(bytesOf(0), string('x'), integer(bytes.length, 0x7f, 0x80), bytes);
}
/** The name of the first entry of the dynamic table, in a field that is inserted. */
const nameOfFirst = integer(62, 0x3f, 0x40);
const zero = huffmanBits(Buffer.from('0'));
after(
  compressionError,
  ['7541 6.1: index 0', adding(indexed(0))],
  ['7541 6.1: an index past the end of the table', adding(indexed(62))],
  ['7541 6.2: a name index past the end of the table', adding(nameOfFirst, string('x'))],
  ['7541 5.2: a string past the end of the block', adding(bytesOf(0), string('x'), bytesOf(5), Buffer.from('four'))],
  ['7541 5.1: a truncated integer', adding(bytesOf(0xff, 0x80))],
  ['7541 5.1: an integer with too many continuation bytes', adding(bytesOf(0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01))],
  ['7541 5.1: an integer above 2^31-1', adding(bytesOf(0xff, 0xff, 0xff, 0xff, 0xff, 0x0f))],
  ['9113 4.3: a literal without a value', adding(bytesOf(0), string('x'))],
  ['7541 5.2: Huffman padding of 8 ones', huffman(Buffer.concat([packBits(zero), bytesOf(0xff)]))],
  ['7541 5.2: a Huffman string of one byte of ones', huffman(bytesOf(0xff))],
  ['7541 5.2: Huffman padding of zeros', huffman(packBits(zero, '0'))],
  ['7541 5.2: EOS inside a Huffman string', huffman(packBits('1'.repeat(30)))],
  ['7541 4.2: a table size update after a field', adding(sizeUpdate(0))],
  ['7541 6.3: a table size update above our SETTINGS_HEADER_TABLE_SIZE', beginning(sizeUpdate(4_097))],
  ['7541 4.2: a block with three table size updates', beginning(sizeUpdate(0), sizeUpdate(1), sizeUpdate(2))],
  [
    '7541 4.4: an index after an entry larger than the table, which empties it,',
    adding(inserted(['x', 'y']), inserted(['x', 'y'.repeat(4_096)]), indexed(62)),
  ],
);
const path = bytesOf(0x14);
const literals = [path, string('/'), literal(['x', 'y']), inserted(['te', 'trailers']), indexed(62)];
after(
  answers(1),
  ['7541 4.2: a block with two table size updates', beginning(sizeUpdate(0), sizeUpdate(4_096))],
  [
    '7541 4.4: an entry that evicts the entry of its own name',
    adding(inserted(['x'.repeat(2_000), 'y']), nameOfFirst, string('y'.repeat(2_000)), indexed(62)),
  ],
  ['7541 6.2.3: a request with literals of every form', get1(Buffer.concat([indexed(3), indexed(6), ...literals]))],
);
after(malformed, [
  '9113 4.3: a malformed block, whose insertions still enter the table,',
  get1(Buffer.concat([request(''), inserted(['te', 'trailers'])])),
  headers(3, Buffer.concat([request('/hold'), indexed(62)]), { endStream: true }),
]);

// ---------------------------------------------------------------- malformed requests
function carrying(...fields: SentField[]): Buffer {
  return get1(request('/', ...fields));
}
function without(name: string): Buffer {
  return get1(block(REQUEST.filter(([it]) => it !== name)));
}
/** A request with another field before its first. */
function preceded(...field: SentField): Buffer {
  return get1(block([field, ...REQUEST]));
}
const names = ['X-Upper', 'A', 'Z', 'a b', 'a\x7f', 'a\xff', 'a:b', '', '\x00', 'a\r'];
const values = [' a', 'a ', '\ta', 'a\t', ' ', 'a\0b', 'a\rb', 'a\nb'];
const perConnection = ['connection', 'proxy-connection', 'keep-alive', 'transfer-encoding', 'upgrade'];
after(
  malformed,
  ...names.map((name): Row => [`8.2.1: the field name ${JSON.stringify(name)}`, carrying([name, 'v'])]),
  ...values.map((value): Row => [`8.2.1: the field value ${JSON.stringify(value)}`, carrying(['x', value])]),
  ...perConnection.map((name): Row => [`8.2.2: the field ${name}`, carrying([name, 'x'])]),
  ...[':method', ':scheme', ':path'].flatMap((name): Row[] => [
    [`8.3.1: a request without ${name}`, without(name)],
    [`8.3.1: a request with two ${name} fields`, preceded(name, 'POST')],
  ]),
  ['8.3.1: a request with two :authority fields', preceded(':authority', 'weir')],
  ['8.3.1: a request with two different :authority fields', preceded(':authority', 'other')],
  ['8.3.1: an empty :path', get1(request(''))],
  ['8.3: a pseudo-header field after a regular field', get1(block([...REQUEST.slice(1), ['x', 'y'], REQUEST[0]!]))],
  ['8.3: the pseudo-header field of responses', preceded(':status', '200')],
  ['8.3: an unknown pseudo-header field', preceded(':weir', 'x')],
  ['8.2.2: te other than trailers', carrying(['te', 'gzip'])],
  ['8.3.1: a request with two host fields', carrying(['host', 'weir'], ['host', 'weir'])],
  ['8.3.1: a request with two different host fields', carrying(['host', 'weir'], ['host', 'other'])],
  ['8.3.1: a host other than :authority', carrying(['host', 'other'])],
  ['8.5: CONNECT with a path', get1(block([[':method', 'CONNECT'], ...REQUEST.slice(1)]))],
  ['8.5: CONNECT without an authority', get1(block([[':method', 'CONNECT']]))],
  ['7540 5.3.1: HEADERS that depends on its own stream', headers(1, request(), { endStream: true, dependency: 1 })],
);
after(resets(1, PROTOCOL_ERROR), ['7540 5.3.1: PRIORITY that depends on its own stream', headers(1), priority(1, 1)]);
after(
  answers(1),
  ['8.2.1: a field name with every other kind of character', carrying(["a!#$%&'*+-.^_`|~@z{}", 'v'])],
  ['8.2.1: a field value of control characters and bytes that are permitted', carrying(['x', '\x01 \x7f\xff'])],
  ['8.2.1: an empty field value', carrying(['x', ''])],
  ['8.3.1: a request without :authority', without(':authority')],
  ['8.2.2: te: trailers', carrying(['te', 'trailers'])],
  ['8.3.1: a host equal to :authority', carrying(['host', 'weir'])],
);

// ---------------------------------------------------------------- bodies and their length
function length(...texts: string[]): Buffer {
  return headers(1, request('/', ...texts.map((value) => ['content-length', value] as const)));
}
const pieces = [data(1, 'ab', false, 7), data(1, 'c', true)];
after(
  malformed,
  ['8.1.1: a body shorter than content-length', length('3'), data(1, 'ab', true)],
  ['8.1.1: a body longer than content-length', length('3'), data(1, 'abcd')],
  ['8.1.1: content-length without a body', carrying(['content-length', '3'])],
  ['8.1.1: a request with two different content-lengths', length('3', '4')],
  ...['-1', '+3', '3 3', '0x3', '', '12345678901234567890'].map((value): Row => [
    `8.1.1: content-length ${JSON.stringify(value)}`,
    length(value),
  ]),
  ['8.1.1: a trailer section before the end of content-length', length('3'), data(1, 'ab'), trailers],
  ['8.1: a second HEADERS without END_STREAM', headers(1), headers(1, block([['x', 'y']]))],
  ['8.1: a pseudo-header field in trailers', headers(1), again],
);
after(
  answers(1),
  ['8.1.1: a body as long as content-length, in pieces and not counting padding,', length('3'), ...pieces],
  ['8.1.1: content-length 0 without a body', carrying(['content-length', '0'])],
  ['8.1.1: a request with two equal content-lengths', length('3', '3'), data(1, 'abc', true)],
  ['8.1: a request with trailers', headers(1), data(1, 'ab'), trailers],
);

// ---------------------------------------------------------------- ping, goaway
after(answers(1), ['6.7: an acknowledgement of a PING that was not sent', ping('not-sent', Flag.ACK), get(1)]);
after(ends(NO_ERROR), ['6.8: GOAWAY from the client, once its open streams have finished,', get(1), goaway()]);

export const REQUIREMENTS: readonly Requirement[] = list;
