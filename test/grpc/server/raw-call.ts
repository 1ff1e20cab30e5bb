import { FrameType } from '../../../src/grpc/http2/frames/protocol';
import { FieldSectionDecoder } from '../../../src/grpc/http2/headers/hpack/field-section-decoder';
import { DynamicTable } from '../../../src/grpc/http2/headers/hpack/dynamic-table';
import { FieldNames } from '../../../src/grpc/http2/headers/hpack/field-names';
import { block, data, headers, hello, windowUpdate } from '../http2/frames';
import { connectPlain } from '../http2/raw-client';
import type { AddressInfo } from 'node:net';

/** A message with its five-byte prefix. */
export function prefixed(message: Buffer | string, flag = 0): Buffer {
  const bytes = Buffer.from(message as string);
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

export interface RawCall {
  /** Undefined leaves the field out. */
  readonly fields?: Readonly<Record<string, string | undefined>>;
  /** The payloads of DATA frames; the last one ends the stream unless {@link isOpen}. */
  readonly body?: readonly Buffer[];
  /** Whether the request stays open after the last DATA frame. */
  readonly isOpen?: boolean;
}

/** The response: HTTP status, gRPC status and message, messages, or the error code with which the stream was reset. */
export interface RawResponse {
  readonly http?: string | undefined;
  readonly status?: string | undefined;
  readonly message?: string | undefined;
  readonly messages: readonly string[];
  readonly reset?: number;
  /** The response was a single HEADERS frame. */
  readonly isTrailersOnly: boolean;
  readonly fields: Readonly<Record<string, string>>;
}

/** Makes one call on its own connection, frame by frame. */
export async function callRaw(
  address: AddressInfo,
  { fields = {}, body = [prefixed('hello')], isOpen = false }: RawCall,
): Promise<RawResponse> {
  const all: Record<string, string | undefined> = {
    ':method': 'POST',
    ':scheme': 'http',
    ':path': '/test.Service/Echo',
    ':authority': 'weir',
    'content-type': 'application/grpc',
    te: 'trailers',
    ...fields,
  };
  const sent = Object.entries(all).filter((field): field is [string, string] => field[1] !== undefined);
  const client = connectPlain(address);
  const frames = body.map((bytes, at) => data(1, bytes, at === body.length - 1 && !isOpen));
  client.send(
    hello([4, 2 ** 31 - 1]),
    windowUpdate(0, 2 ** 30),
    headers(1, block(sent), { endStream: body.length === 0 }),
    ...frames,
  );
  try {
    await client.until('a response', () =>
      client.frames.some(
        ({ type, flags, stream }) =>
          stream === 1 && (type === FrameType.RST_STREAM || (type <= 1 && (flags & 1) === 1)),
      ),
    );
  } finally {
    client.close();
  }
  const own = client.frames.filter(({ stream }) => stream === 1);
  const decoder = new FieldSectionDecoder(new FieldNames(), { maxHeaderListBytes: 65_536, maxHeaderFields: 100 });
  const table = new DynamicTable();
  const received: Record<string, string> = {};
  const blocks = own.filter(({ type }) => type === FrameType.HEADERS);
  for (const { payload } of blocks) {
    decoder.decode(table, payload, 0, payload.length);
    for (const { name, value } of decoder.fields.slice(0, decoder.count)) received[name.text] = value;
  }
  let bytes = Buffer.concat(own.filter(({ type }) => type === FrameType.DATA).map(({ payload }) => payload));
  const messages: string[] = [];
  while (bytes.length >= 5) {
    const end = 5 + bytes.readUInt32BE(1);
    messages.push(bytes.subarray(5, end).toString());
    bytes = bytes.subarray(end);
  }
  const reset = own.find(({ type }) => type === FrameType.RST_STREAM)?.payload.readUInt32BE();
  return {
    http: received[':status'],
    status: received['grpc-status'],
    message: received['grpc-message'],
    messages,
    ...(reset !== undefined && { reset }),
    isTrailersOnly: own[0]?.type === FrameType.HEADERS && (own[0].flags & 1) === 1,
    fields: received,
  };
}
