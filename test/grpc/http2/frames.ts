import { HUFFMAN_CODE_LENGTHS } from '../../../src/grpc/http2/hpack/huffman';
import { FieldSectionDecoder } from '../../../src/grpc/http2/hpack/decoder';
import { DynamicTable } from '../../../src/grpc/http2/hpack/dynamic-table';
import { ErrorCode, Flag, FrameType, PREFACE } from '../../../src/grpc/http2/protocol';

/** A frame as it is sent. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** A field to send, in one of HPACK's literal forms. */
export type SentField = readonly [name: string, value: string];

const EMPTY = Buffer.alloc(0);
/** As many times what `make` returns, one after the other. */
export function times(count: number, make: (at: number) => Buffer): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, at) => make(at)));
}
export function bytesOf(...values: number[]): Buffer {
  return Buffer.from(values);
}
export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

/** Any frame, valid or not. */
export function frame(type: number, flags: number, stream: number, payload: Buffer = EMPTY): Buffer {
  const header = Buffer.alloc(9);
  header.writeUIntBE(payload.length, 0, 3);
  header[3] = type;
  header[4] = flags;
  header.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([header, payload]);
}

/** The complete frames in `bytes`; `rest` is an incomplete one at the end. */
export function parseFrames(bytes: Buffer): { frames: Frame[]; rest: Buffer } {
  const frames: Frame[] = [];
  let at = 0;
  while (bytes.length - at >= 9) {
    const length = bytes.readUIntBE(at, 3);
    if (bytes.length - at - 9 < length) break;
    frames.push({
      type: bytes[at + 3]!,
      flags: bytes[at + 4]!,
      stream: bytes.readUInt32BE(at + 5),
      payload: bytes.subarray(at + 9, at + 9 + length),
    });
    at += 9 + length;
  }
  return { frames, rest: bytes.subarray(at) };
}

// ---------------------------------------------------------------- HPACK encoding

export function integer(value: number, mask: number, flags: number): Buffer {
  if (value < mask) return bytesOf(flags | value);
  const bytes = [flags | mask];
  let rest = value - mask;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return bytesOf(...bytes, rest);
}

export function string(text: string | Buffer): Buffer {
  const bytes = Buffer.isBuffer(text) ? text : Buffer.from(text, 'latin1');
  return Buffer.concat([integer(bytes.length, 0x7f, 0), bytes]);
}

/** Canonical codes from their lengths, computed independently of the decoder under test. */
const CODES = (() => {
  const codes: string[] = [];
  let next = 0n;
  let length = 0;
  const lengths = Array.from(HUFFMAN_CODE_LENGTHS, (bits, byte) => ({ bits, byte }));
  for (const { bits, byte } of lengths.toSorted((a, b) => a.bits - b.bits || a.byte - b.byte)) {
    next <<= BigInt(bits - length);
    length = bits;
    codes[byte] = next.toString(2).padStart(bits, '0');
    next += 1n;
  }
  return codes;
})();

/** The Huffman code of `bytes` as bits, without padding. */
export function huffmanBits(bytes: Iterable<number>): string {
  return Array.from(bytes, (byte) => CODES[byte]!).join('');
}

/** Bits as bytes, padded with ones by default. */
export function packBits(bits: string, padding = '1'): Buffer {
  const padded = bits.padEnd(Math.ceil(bits.length / 8) * 8, padding);
  return Buffer.from(padded.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? []);
}

export function huffmanString(text: string | Buffer): Buffer {
  const bytes = packBits(huffmanBits(Buffer.from(text as string, 'latin1')));
  return Buffer.concat([integer(bytes.length, 0x7f, 0x80), bytes]);
}

export function indexed(index: number): Buffer {
  return integer(index, 0x7f, 0x80);
}
/** A literal without indexing, with a literal name. */
export function literal([name, value]: SentField): Buffer {
  return Buffer.concat([bytesOf(0), string(name), string(value)]);
}
/** A literal with incremental indexing, with a literal name. */
export function inserted([name, value]: SentField): Buffer {
  return Buffer.concat([bytesOf(0x40), string(name), string(value)]);
}
export function sizeUpdate(size: number): Buffer {
  return integer(size, 0x1f, 0x20);
}

export const REQUEST: readonly SentField[] = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/'],
  [':authority', 'weir'],
];
/** A header block of literals. */
export function block(fields: readonly SentField[] = REQUEST): Buffer {
  return Buffer.concat(fields.map(literal));
}
/** The pseudo-header fields of a request for `path`, then `more`. */
export function request(path = '/', ...more: SentField[]): Buffer {
  return block([...REQUEST.map(([name, value]) => [name, name === ':path' ? path : value] as const), ...more]);
}

// ---------------------------------------------------------------- frames of each type

export interface HeaderOptions {
  readonly endStream?: boolean;
  readonly endHeaders?: boolean;
  readonly padding?: number | undefined;
  /** The stream that it depends on. */
  readonly dependency?: number | undefined;
}

export function headers(
  stream: number,
  fields: Buffer = request(),
  { endStream = false, endHeaders = true, padding, dependency }: HeaderOptions = {},
): Buffer {
  const flags =
    (endStream ? Flag.END_STREAM : 0) |
    (endHeaders ? Flag.END_HEADERS : 0) |
    (padding === undefined ? 0 : Flag.PADDED) |
    (dependency === undefined ? 0 : Flag.PRIORITY);
  const pad = padding === undefined ? EMPTY : bytesOf(padding);
  const priorityFields = dependency === undefined ? EMPTY : Buffer.concat([uint32(dependency), bytesOf(15)]);
  const payload = Buffer.concat([pad, priorityFields, fields, Buffer.alloc(padding ?? 0)]);
  return frame(FrameType.HEADERS, flags, stream, payload);
}

/** The stream of the request with this number, from 0. */
export function streamOf(at: number): number {
  return 2 * at + 1;
}
/** A complete request without a body. */
export function get(stream: number, path = '/'): Buffer {
  return headers(stream, request(path), { endStream: true });
}

export function data(stream: number, body: Buffer | string = EMPTY, endStream = false, padding?: number): Buffer {
  const bytes = Buffer.from(body as string);
  if (padding === undefined) return frame(FrameType.DATA, endStream ? Flag.END_STREAM : 0, stream, bytes);
  const flags = Flag.PADDED | (endStream ? Flag.END_STREAM : 0);
  return frame(FrameType.DATA, flags, stream, Buffer.concat([bytesOf(padding), bytes, Buffer.alloc(padding)]));
}

export function continuation(stream: number, fragment: Buffer, endHeaders = false): Buffer {
  return frame(FrameType.CONTINUATION, endHeaders ? Flag.END_HEADERS : 0, stream, fragment);
}
export function priority(stream: number, dependency: number): Buffer {
  return frame(FrameType.PRIORITY, 0, stream, Buffer.concat([uint32(dependency), bytesOf(15)]));
}
export function rstStream(stream: number, code: number = ErrorCode.CANCEL): Buffer {
  return frame(FrameType.RST_STREAM, 0, stream, uint32(code));
}
export function settings(...values: (readonly [setting: number, value: number])[]): Buffer {
  const entries = values.map(([setting, value]) =>
    Buffer.concat([bytesOf(setting >> 8, setting & 0xff), uint32(value)]),
  );
  return frame(FrameType.SETTINGS, 0, 0, Buffer.concat(entries));
}
export const settingsAck = frame(FrameType.SETTINGS, Flag.ACK, 0);
export function ping(opaque = 'pingping', flags = 0): Buffer {
  return frame(FrameType.PING, flags, 0, Buffer.from(opaque, 'latin1'));
}
export function goaway(lastStream = 0, code: number = ErrorCode.NO_ERROR): Buffer {
  return frame(FrameType.GOAWAY, 0, 0, Buffer.concat([uint32(lastStream), uint32(code)]));
}
export function windowUpdate(stream: number, increment: number): Buffer {
  return frame(FrameType.WINDOW_UPDATE, 0, stream, uint32(increment));
}

/** The first bytes of a well-behaved client: the preface, SETTINGS and an acknowledgement. */
export function hello(...values: (readonly [setting: number, value: number])[]): Buffer {
  return Buffer.concat([PREFACE, settings(...values), settingsAck]);
}

// ---------------------------------------------------------------- reading the output of the server

/** Decodes the header blocks of one connection. */
export class BlockDecoder {
  readonly #decoder = new FieldSectionDecoder(1e6, 1e4);
  readonly #table = new DynamicTable();

  decode(bytes: Buffer): SentField[] {
    this.#decoder.decode(this.#table, bytes, 0, bytes.length);
    return this.#decoder.fields.slice(0, this.#decoder.count).map(({ name, value }) => [name.text, value]);
  }
}
/** The fields of a response block, which does not use the dynamic table. */
export function fieldsOf(bytes: Buffer): Record<string, string> {
  return Object.fromEntries(new BlockDecoder().decode(bytes));
}

/** The frames of a type, on all streams or one. */
export function ofType(frames: readonly Frame[], wanted: number, id?: number): Frame[] {
  return frames.filter(({ type, stream }) => type === wanted && (id === undefined || stream === id));
}
export function goawaysOf(frames: readonly Frame[]): { lastStream: number; code: number; debug: string }[] {
  return ofType(frames, FrameType.GOAWAY).map(({ payload }) => ({
    lastStream: payload.readUInt32BE(0),
    code: payload.readUInt32BE(4),
    debug: payload.toString('latin1', 8),
  }));
}
/** The streams that were reset, with their error codes. */
export function resetsOf(frames: readonly Frame[]): [stream: number, code: number][] {
  return ofType(frames, FrameType.RST_STREAM).map(({ stream, payload }) => [stream, payload.readUInt32BE()]);
}
/** The streams whose response is complete. */
export function endedOf(frames: readonly Frame[]): number[] {
  return frames
    .filter(({ type, flags }) => type <= FrameType.HEADERS && (flags & Flag.END_STREAM) !== 0)
    .map(({ stream }) => stream);
}
/** The lengths of the DATA frames of a stream. */
export function bodiesOf(frames: readonly Frame[], id: number): number[] {
  return ofType(frames, FrameType.DATA, id).map(({ payload }) => payload.length);
}
/** The increments of the WINDOW_UPDATE frames of a stream, or of the connection. */
export function updatesOf(frames: readonly Frame[], id: number): number[] {
  return ofType(frames, FrameType.WINDOW_UPDATE, id).map(({ payload }) => payload.readUInt32BE());
}
export function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}
