import { RateLimitResponse } from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import { SHOULD_RATE_LIMIT } from '../../../src/grpc/rate-limit/rate-limit-service';
import { type DescriptorSketch, requestMessage } from './grpc-client';
import { Http2Connection } from './http2-connection';

const PREFIX_BYTES = 5;

/** The failure of a call: its gRPC status, undefined when its connection ended before it was answered. */
export class CallFailed extends Error {
  constructor(readonly status: number | undefined) {
    super(`the call failed with status ${status ?? 'none'}`);
  }
}

/** A client of the rate limit service with one connection that it never replaces, so that it stays with one process. */
export class PinnedClient implements Disposable {
  readonly #connection: Http2Connection;

  private constructor(
    connection: Http2Connection,
    /** Of its own end of the connection. */
    readonly localPort: number,
  ) {
    this.#connection = connection;
  }

  static async connect(address: string): Promise<PinnedClient> {
    const connection = new Http2Connection(address);
    return new PinnedClient(connection, await connection.localPort());
  }

  /** Whether it can make no more calls. */
  get isClosed(): boolean {
    return this.#connection.isClosed;
  }

  /** @throws CallFailed */
  async shouldRateLimit(domain: string, descriptors: readonly DescriptorSketch[]): Promise<RateLimitResponse> {
    if (this.isClosed) throw new CallFailed(undefined);
    const call = this.#connection.call(SHOULD_RATE_LIMIT, requestMessage(domain, descriptors));
    const chunks: Buffer[] = [];
    call.stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    const status = await call.status;
    if (status !== 0) throw new CallFailed(Number.isNaN(status) ? undefined : status);
    return RateLimitResponse.decode(Buffer.concat(chunks).subarray(PREFIX_BYTES));
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
  }
}
