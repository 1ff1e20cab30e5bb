/** What a frame of `requests` says to the answering end. A long request is in several parts, the last of which is `request`. */
export const ASK = { request: 0, cancel: 1, credit: 2, part: 3 } as const;
/** What a frame of `answers` says to the asking end. */
export const REPLY = { chunk: 0, end: 1, error: 2 } as const;

/** How many chunks may be on their way; further ones wait until the asking end has consumed some. */
export const INITIAL_CREDIT = 8;
export const CHUNK_BYTES = 64 * 1024;

/** The number of the request and the kind, before the rest of the body. */
const PREFIX_BYTES = 5;

export interface RequestFrame {
  readonly id: number;
  readonly kind: number;
  readonly rest: Buffer;
}

export function writeRequestFrame(id: number, kind: number, rest: Uint8Array | string = ''): Buffer {
  const bytes = typeof rest === 'string' ? Buffer.from(rest) : rest;
  const body = Buffer.allocUnsafe(PREFIX_BYTES + bytes.length);
  body.writeUInt32LE(id, 0);
  body[4] = kind;
  body.set(bytes, PREFIX_BYTES);
  return body;
}

export function readRequestFrame(body: Buffer): RequestFrame {
  return { id: body.readUInt32LE(0), kind: body[4] as number, rest: body.subarray(PREFIX_BYTES) };
}
