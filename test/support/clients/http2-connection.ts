import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, type IncomingHttpHeaders, connect } from 'node:http2';

/** A gRPC call on an {@link Http2Connection}. */
interface Http2Call {
  readonly stream: ClientHttp2Stream;
  /** The gRPC status; NaN if the stream ended without one. */
  readonly status: Promise<number>;
}

/** One HTTP/2 connection over `node:http2`, which, unlike a gRPC client, never reconnects. Its times are of `performance.now()`. */
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
    const stream = this.#session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    });
    stream.end(prefixed(message));
    let status: unknown;
    for (const event of ['response', 'trailers']) {
      stream.on(event, (received: IncomingHttpHeaders) => (status = received['grpc-status'] ?? status));
    }
    stream.on('error', () => undefined).resume();
    const ended = once(stream, 'close').then(() => {
      this.events.push(`${path.slice(path.lastIndexOf('/') + 1)} ended with ${String(status)}`);
      return Number(status);
    });
    return { stream, status: ended };
  }

  [Symbol.dispose](): void {
    this.#session.destroy();
  }
}

/** The message as gRPC sends it: uncompressed, after its length. */
export function prefixed(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}
