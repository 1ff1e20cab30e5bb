import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { RateLimitResponse } from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import { type DescriptorSketch, requestMessage } from './grpc-client';
import { openCall, prefixed } from './http2-connection';

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
    const { stream, closed, status, response } = openCall(this.#session);
    stream.end(prefixed(requestMessage(domain, descriptors)));
    await closed;
    if (status() !== 0) throw new CallFailed(status());
    return response();
  }

  [Symbol.dispose](): void {
    this.#session.destroy();
  }
}
