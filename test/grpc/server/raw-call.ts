import type { AddressInfo } from 'node:net';
import { FrameType } from '../../../src/grpc/http2/frames/protocol';
import { BlockDecoder, block, data, headers, hello, request, windowUpdate } from '../http2/frames';
import { connectPlain } from '../http2/raw-client';

/** A message with its five-byte prefix. */
export function prefixed(message: Buffer | string, flag = 0): Buffer {
  const bytes = Buffer.from(message as string);
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** The HEADERS of a call of the test service. */
export function callHeaders(stream: number, method: string, ...more: [string, string][]): Buffer {
  const path = `/test.Service/${method}`;
  return headers(stream, request(path, ['content-type', 'application/grpc'], ['te', 'trailers'], ...more));
}
/** A call of the test service with one message. */
export function callFrames(stream: number, method: string, message = 'x', ...more: [string, string][]): Buffer {
  return Buffer.concat([callHeaders(stream, method, ...more), data(stream, prefixed(message), true)]);
}

export interface RawCall {
  /** Of the test service. */
  readonly method?: string;
  /** In addition to the fields of every call. Undefined leaves a field out. */
  readonly fields?: Readonly<Record<string, string | readonly string[] | undefined>>;
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
  { method = 'Echo', fields = {}, body = [prefixed('hello')], isOpen = false }: RawCall,
): Promise<RawResponse> {
  const all: NonNullable<RawCall['fields']> = {
    ':method': 'POST',
    ':scheme': 'http',
    ':path': `/test.Service/${method}`,
    ':authority': 'weir',
    'content-type': 'application/grpc',
    te: 'trailers',
    ...fields,
  };
  const sent = Object.entries(all).flatMap(([name, values = []]) =>
    [values].flat().map((value) => [name, value] as const),
  );
  const client = connectPlain(address);
  client.send(
    hello([4, 2 ** 31 - 1]),
    windowUpdate(0, 2 ** 30),
    headers(1, block(sent), { endStream: body.length === 0 }),
    ...body.map((bytes, at) => data(1, bytes, at === body.length - 1 && !isOpen)),
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
  const decoder = new BlockDecoder();
  const blocks = own.filter(({ type }) => type === FrameType.HEADERS);
  const received = Object.fromEntries(blocks.flatMap(({ payload }) => decoder.decode(payload)));
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
