import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, type IncomingHttpHeaders, connect } from 'node:http2';
import { RateLimitResponse } from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import { SHOULD_RATE_LIMIT } from '../../../src/grpc/rate-limit/rate-limit-service';

const PREFIX_BYTES = 5;

/** A gRPC call on an {@link Http2Connection}. */
interface Http2Call {
  readonly stream: ClientHttp2Stream;
  /** The gRPC status; NaN if the stream ended without one. */
  readonly status: Promise<number>;
}

/**
 * One HTTP/2 connection over `node:http2`, which, unlike a gRPC client, never reconnects. Its times are of
 * `performance.now()`.
 */
export class Http2Connection implements Disposable {
  /** Before the connection was made. */
  readonly begun = performance.now();
  /** What happened to the connection and its calls, in order. */
  readonly events: string[] = [];
  /** When the first GOAWAY arrived. */
  readonly goneAway: Promise<number>;
  /** When the connection was closed. */
  readonly closed: Promise<number>;
  readonly #session: ClientHttp2Session;

  constructor(address: string) {
    this.#session = connect(`http://${address}`);
    this.#session.on('error', () => undefined);
    this.goneAway = once(this.#session, 'goaway').then(([code, , debug]) => {
      this.events.push(`GOAWAY ${String(code)} ${String(debug)}`);
      return performance.now();
    });
    this.closed = once(this.#session, 'close').then(() => {
      this.events.push('closed');
      return performance.now();
    });
  }

  /** Makes a call with one message. A deadline in `headers` is for the server: the client does not enforce it. */
  call(path: string, message: Uint8Array, headers: Readonly<Record<string, string>> = {}): Http2Call {
    const { stream, closed, status } = openCall(this.#session, headers, path);
    stream.end(prefixed(message));
    const ended = closed.then(() => {
      this.events.push(`${path.slice(path.lastIndexOf('/') + 1)} ended with ${String(status())}`);
      return Number(status());
    });
    return { stream, status: ended };
  }

  [Symbol.dispose](): void {
    this.#session.destroy();
  }
}

/** Opens a gRPC call; its message is not sent yet. */
export function openCall(
  session: ClientHttp2Session,
  headers: Readonly<Record<string, string>> = {},
  path = SHOULD_RATE_LIMIT,
) {
  const own = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' };
  const stream = session.request({ ...own, ...headers });
  const parts: Buffer[] = [];
  let status: unknown;
  for (const event of ['response', 'trailers']) {
    stream.on(event, (received: IncomingHttpHeaders) => (status = received['grpc-status'] ?? status));
  }
  stream.on('data', (part: Buffer) => parts.push(part)).on('error', () => undefined);
  return {
    stream,
    closed: new Promise<void>((resolve) => stream.once('close', resolve)),
    /** The gRPC status; undefined if there is none yet. */
    status: () => (status === undefined ? undefined : Number(status)),
    response: () => RateLimitResponse.decode(Buffer.concat(parts).subarray(PREFIX_BYTES)),
  };
}

/** The bytes before a gRPC message. A flag of 1 says that it is compressed. */
export function prefix(length: number, flag = 0): Buffer {
  const bytes = Buffer.alloc(PREFIX_BYTES);
  bytes[0] = flag;
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

/** The message as gRPC sends it, after its length. */
export function prefixed(message: Uint8Array | string, flag = 0): Buffer {
  const bytes = Buffer.from(message as string);
  return Buffer.concat([prefix(bytes.length, flag), bytes]);
}
