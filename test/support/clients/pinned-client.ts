import { once } from 'node:events';
import { type ClientHttp2Session, type IncomingHttpHeaders, connect } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { RateLimitResponse } from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import { SHOULD_RATE_LIMIT } from '../../../src/grpc/rate-limit/rate-limit-service';
import { type DescriptorSketch, requestMessage } from './grpc-client';
import { prefixed } from './http2-connection';

const PREFIX_BYTES = 5;

/** The failure of a call: its gRPC status, undefined when its connection ended before it was answered. */
export class CallFailed extends Error {
  constructor(readonly status: number | undefined) {
    super(`the call failed with status ${status ?? 'none'}`);
  }
}

/** A client of the rate limit service with one connection that it never replaces, so that it stays with one process. */
export class PinnedClient implements Disposable {
  readonly #session: ClientHttp2Session;

  private constructor(
    session: ClientHttp2Session,
    /** Of its own end of the connection. */
    readonly localPort: number,
  ) {
    this.#session = session;
  }

  static async connect(address: string): Promise<PinnedClient> {
    const session = connect(`http://${address}`);
    session.on('error', () => undefined);
    await once(session, 'connect');
    return new PinnedClient(session, (session.socket.address() as AddressInfo).port);
  }

  /** Whether it can make no more calls. */
  get isClosed(): boolean {
    return this.#session.closed || this.#session.destroyed;
  }

  /** @throws CallFailed */
  async shouldRateLimit(domain: string, descriptors: readonly DescriptorSketch[]): Promise<RateLimitResponse> {
    if (this.isClosed) throw new CallFailed(undefined);
    const stream = this.#session.request({
      ':method': 'POST',
      ':path': SHOULD_RATE_LIMIT,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.end(prefixed(requestMessage(domain, descriptors)));
    let status: unknown;
    for (const event of ['response', 'trailers']) {
      stream.on(event, (received: IncomingHttpHeaders) => (status = received['grpc-status'] ?? status));
    }
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => undefined);
    if (!stream.closed) await once(stream, 'close');
    if (status !== '0') throw new CallFailed(status === undefined ? undefined : Number(status));
    return RateLimitResponse.decode(Buffer.concat(chunks).subarray(PREFIX_BYTES));
  }

  [Symbol.dispose](): void {
    this.#session.destroy();
  }
}
