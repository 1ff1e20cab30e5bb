import { type ChannelCredentials, Client, Metadata, type ServiceError } from '@grpc/grpc-js';
import { RateLimitRequest, RateLimitResponse } from '../../gen/envoy/service/ratelimit/v3/rls';
import { speaksTls } from '../../net/speaks-tls';
import { hideAddressCredentials } from '../../text/hide-credentials';
import { FlagError } from '../flags';
import { explainError } from './explain-error';

const METHOD = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

const ADDRESS = /^(?:unix:(?<path>.+)|\[?(?<host>[^/]+?)\]?:(?<port>\d+))$/;
const PROBE_TIMEOUT = 2000;

/** The server to call, and how. */
export interface CallOptions {
  readonly address: string;
  readonly credentials: ChannelCredentials;
  readonly isTls: boolean;
  /** Whether the client presents a certificate. */
  readonly hasCertificate: boolean;
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
  const client = createClient(options);
  try {
    return await new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        METHOD,
        (message: RateLimitRequest) => Buffer.from(RateLimitRequest.encode(message).finish()),
        (bytes) => RateLimitResponse.decode(bytes),
        request,
        new Metadata(),
        { deadline: Date.now() + options.timeoutMs },
        (error, response) => {
          if (error === null) resolve(response!);
          else reject(error);
        },
      );
    });
  } catch (error) {
    throw await explained(options, error as ServiceError);
  } finally {
    client.close();
  }
}

async function explained(options: CallOptions, cause: ServiceError): Promise<Error> {
  const address = hideAddressCredentials(options.address);
  const call = { ...options, address, serverSpeaksTls: () => serverSpeaksTls(options.address) };
  return new Error(await explainError(call, cause), { cause });
}

/** Undefined for an address that is neither `host:port` nor `unix:/path`. */
async function serverSpeaksTls(address: string): Promise<boolean | undefined> {
  const { path, host, port } = ADDRESS.exec(address)?.groups ?? {};
  if (path !== undefined) return speaksTls({ path }, PROBE_TIMEOUT);
  return host === undefined ? undefined : speaksTls({ host, port: Number(port) }, PROBE_TIMEOUT);
}

function createClient({ address, credentials }: CallOptions): Client {
  try {
    return new Client(address, credentials);
  } catch (cause) {
    const shown = hideAddressCredentials(address);
    throw new FlagError(`invalid value "${shown}" for flag -dial_string: expected host:port or unix:/path`, { cause });
  }
}
