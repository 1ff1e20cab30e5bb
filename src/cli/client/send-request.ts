import { type ChannelCredentials, Client, Metadata } from '@grpc/grpc-js';
import { RateLimitRequest, RateLimitResponse } from '../../gen/envoy/service/ratelimit/v3/rls';
import { hideAddressCredentials } from '../../text/hide-credentials';
import { FlagError } from '../flags';
import { explainError } from './explain-error';

const METHOD = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

/** The server to call, and how. */
export interface CallOptions {
  readonly address: string;
  readonly credentials: ChannelCredentials;
  /** Includes the time to connect. */
  readonly timeoutMs: number;
}

/**
 * Sends one rate limit request.
 *
 * @throws {FlagError} if the address is invalid
 * @throws {Error} with a message of one sentence if there is no response
 */
export async function sendRequest(request: RateLimitRequest, options: CallOptions): Promise<RateLimitResponse> {
  const { address, timeoutMs } = options;
  const client = createClient(options);
  try {
    return await new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        METHOD,
        (message: RateLimitRequest) => Buffer.from(RateLimitRequest.encode(message).finish()),
        (bytes) => RateLimitResponse.decode(bytes),
        request,
        new Metadata(),
        { deadline: Date.now() + timeoutMs },
        (error, response) => {
          if (error === null) resolve(response!);
          else reject(new Error(explainError(hideAddressCredentials(address), timeoutMs, error), { cause: error }));
        },
      );
    });
  } finally {
    client.close();
  }
}

function createClient({ address, credentials }: CallOptions): Client {
  try {
    return new Client(address, credentials);
  } catch (cause) {
    const shown = hideAddressCredentials(address);
    throw new FlagError(`invalid value "${shown}" for flag -dial_string: expected host:port or unix:/path`, { cause });
  }
}
