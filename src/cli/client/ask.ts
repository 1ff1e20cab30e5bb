import { type ChannelCredentials, Client, Metadata } from '@grpc/grpc-js';
import { RateLimitRequest, RateLimitResponse } from '../../gen/envoy/service/ratelimit/v3/rls';
import { hideAddressCredentials } from '../../text/hide-credentials';
import { FlagError } from '../flags';
import { explainFailure } from './explain-failure';

const METHOD = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

/**
 * Asks one question.
 *
 * @param timeoutMs for everything, connecting too
 * @throws an error whose message is one sentence, when there is no answer.
 */
export async function ask(
  address: string,
  security: ChannelCredentials,
  request: RateLimitRequest,
  timeoutMs: number,
): Promise<RateLimitResponse> {
  const client = open(address, security);
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
          else reject(new Error(explainFailure(hideAddressCredentials(address), timeoutMs, error), { cause: error }));
        },
      );
    });
  } finally {
    client.close();
  }
}

function open(address: string, security: ChannelCredentials): Client {
  try {
    return new Client(address, security);
  } catch (cause) {
    throw new FlagError(
      `invalid value "${hideAddressCredentials(address)}" for flag -dial_string: host:port expected`,
      {
        cause,
      },
    );
  }
}
