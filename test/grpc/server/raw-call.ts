import type { AddressInfo } from 'node:net';
import { FrameType } from '../../../src/grpc/http2/protocol';
import { prefixed } from '../../support/clients/http2-connection';
import { BlockDecoder, block, data, endedOf, headers, hello, request, resetsOf, windowUpdate } from '../http2/frames';
import { connectPlain } from '../http2/raw-client';

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

export type RawResponse = Awaited<ReturnType<typeof callRaw>>;

/** Makes one call on its own connection, frame by frame. */
export async function callRaw(
  address: AddressInfo,
  { method = 'Echo', fields = {}, body = [prefixed('hello')], isOpen = false }: RawCall,
) {
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
  const client = connectPlain(address).send(
    hello([4, 2 ** 31 - 1]),
    windowUpdate(0, 2 ** 30),
    headers(1, block(sent), { endStream: body.length === 0 }),
    ...body.map((bytes, at) => data(1, bytes, at === body.length - 1 && !isOpen)),
  );
  function isOver(): boolean {
    return endedOf(client.frames).length + resetsOf(client.frames).length > 0;
  }
  await client.until('a response', isOver).finally(() => client.close());
  const own = client.frames.filter(({ stream }) => stream === 1);
  const decoder = new BlockDecoder();
  const blocks = own.filter(({ type }) => type === FrameType.HEADERS);
  const received = Object.fromEntries(blocks.flatMap(({ payload }) => decoder.decode(payload)));
  const bytes = Buffer.concat(own.filter(({ type }) => type === FrameType.DATA).map(({ payload }) => payload));
  const messages: string[] = [];
  for (let at = 0; at < bytes.length; at += 5 + bytes.readUInt32BE(at + 1)) {
    messages.push(bytes.toString('utf8', at + 5, at + 5 + bytes.readUInt32BE(at + 1)));
  }
  return {
    http: received[':status'],
    status: received['grpc-status'],
    message: received['grpc-message'],
    messages,
    /** The response was a single HEADERS frame. */
    isTrailersOnly: endedOf(own.slice(0, 1)).length === 1,
    fields: received,
  };
}
