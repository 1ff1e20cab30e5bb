import {
  type ChannelCredentials,
  Client,
  type ClientOptions,
  type ServiceError,
  credentials,
  status,
} from '@grpc/grpc-js';
import { RateLimitRequest, RateLimitResponse } from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import { KUADRANT, SHOULD_RATE_LIMIT } from '../../../src/grpc/rate-limit/rate-limit-service';
import { entries } from '../data/requests';

/** A descriptor as the text `key=value,key2=value2`, or as the message of the protocol. */
export type DescriptorSketch = string | RateLimitRequest['descriptors'][number];

/** The codes that grpc-js gives to the calls of a lost connection; INTERNAL if it is reset while the client reads. */
export const CONNECTION_LOST = [status.UNAVAILABLE, status.INTERNAL];

/** A client of the rate limit service over grpc-js. */
export class RateLimitClient implements Disposable {
  readonly #client: Client;

  constructor(
    address: string,
    channel: ChannelCredentials = credentials.createInsecure(),
    options: Partial<ClientOptions> = {},
  ) {
    this.#client = new Client(address, channel, options);
  }

  shouldRateLimit(
    domain: string,
    descriptors: readonly DescriptorSketch[],
    hitsAddend = 0,
  ): Promise<RateLimitResponse> {
    return this.send(requestMessage(domain, descriptors, hitsAddend));
  }

  /** Calls a method of Kuadrant's service. */
  kuadrant(method: 'CheckRateLimit' | 'Report', message: Buffer, deadline = Infinity): Promise<RateLimitResponse> {
    return this.#call(`/${KUADRANT}/${method}`, message, deadline);
  }

  /**
   * Sends raw bytes, which need not be a valid request. After `deadline`, in Unix milliseconds, the client resets the
   * call.
   */
  send(message: Buffer, deadline = Infinity): Promise<RateLimitResponse> {
    return this.#call(SHOULD_RATE_LIMIT, message, deadline);
  }

  #call(path: string, message: Buffer, deadline: number): Promise<RateLimitResponse> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        path,
        (bytes: Buffer) => bytes,
        (bytes: Buffer) => RateLimitResponse.decode(bytes),
        message,
        { deadline },
        (error: ServiceError | null, response?: RateLimitResponse) =>
          error === null && response !== undefined ? resolve(response) : reject(error ?? new Error('no response')),
      );
    });
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}

export function requestMessage(domain: string, descriptors: readonly DescriptorSketch[], hitsAddend = 0): Buffer {
  return Buffer.from(
    RateLimitRequest.encode({ domain, descriptors: descriptors.map(descriptorMessage), hitsAddend }).finish(),
  );
}

function descriptorMessage(sketch: DescriptorSketch): RateLimitRequest['descriptors'][number] {
  if (typeof sketch !== 'string') return sketch;
  return { entries: [...entries(sketch)], limit: undefined, hitsAddend: undefined, isNegativeHits: false };
}
