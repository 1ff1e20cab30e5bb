import { connect } from 'node:tls';
import { type ChannelCredentials, Client, Metadata, credentials } from '@grpc/grpc-js';
import {
  type RateLimitRequest,
  RateLimitResponse,
  RateLimitRequest as Request,
} from '../../gen/envoy/service/ratelimit/v3/rls';
import { trustedRoots } from '../../net/trusted-roots';
import { hideAddressCredentials } from '../../text/hide-credentials';
import { messageOf } from '../../text/thrown';
import { readPem } from '../api';
import { FlagError, type FlagValues, booleanFlag, textFlag } from '../flags';
import { type CallContext, explainError } from './explain-error';

/** By what a call is for. */
const METHODS = {
  count: '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
  check: '/kuadrant.service.ratelimit.v1.RateLimitService/CheckRateLimit',
  report: '/kuadrant.service.ratelimit.v1.RateLimitService/Report',
};

const ADDRESS = /^(?:unix:(?<path>.+)|\[?(?<host>[^/]+?)\]?:(?<port>\d+))$/;
const PROBE_TIMEOUT_MS = 2000;

/** The flags that configure TLS. They have the names that the client of the Go service gives them. */
export const TLS_FLAGS = {
  'grpc-use-tls': booleanFlag('connect with TLS'),
  'grpc-server-ca-file': textFlag(
    'file',
    'PEM file with the CA of the server, trusted instead of the CAs of the system',
  ),
  'grpc-cert-file': textFlag('file', 'PEM file with the client certificate'),
  'grpc-key-file': textFlag('file', 'PEM file with the private key of the client certificate'),
};

type TlsFlags = FlagValues<typeof TLS_FLAGS>;
type FileFlag = Exclude<keyof TlsFlags, 'grpc-use-tls'>;
const FILE_FLAGS: readonly FileFlag[] = ['grpc-server-ca-file', 'grpc-cert-file', 'grpc-key-file'];

/** A connection to a rate limit service. */
export class RateLimitClient {
  readonly #client: Client;
  readonly #context: CallContext;

  /**
   * @param timeoutMs of each call, including the time to connect
   * @throws {FlagError} for an invalid address, for flags that contradict each other, and for invalid files
   */
  constructor(address: string, flags: TlsFlags, timeoutMs: number) {
    const channel = channelCredentials(flags);
    const shown = hideAddressCredentials(address);
    try {
      this.#client = new Client(address, channel);
    } catch (cause) {
      throw new FlagError(`invalid value "${shown}" for flag -address: expected host:port or unix:/path`, { cause });
    }
    this.#context = {
      address: shown,
      timeoutMs,
      isTls: flags['grpc-use-tls'],
      hasCertificate: flags['grpc-cert-file'] !== '',
      serverSpeaksTls: () => serverSpeaksTls(address),
    };
  }

  /** @throws Error with a message of one sentence if there is no response */
  send(request: RateLimitRequest, method: keyof typeof METHODS): Promise<RateLimitResponse> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        METHODS[method],
        (message: RateLimitRequest) => Buffer.from(Request.encode(message).finish()),
        (bytes) => RateLimitResponse.decode(bytes),
        request,
        new Metadata(),
        { deadline: Date.now() + this.#context.timeoutMs },
        (cause, response) => {
          if (cause === null) resolve(response!);
          else explainError(this.#context, cause).then((reason) => reject(new Error(reason, { cause })), reject);
        },
      );
    });
  }

  close(): void {
    this.#client.close();
  }
}

/**
 * Whether the server answers a TLS handshake, if only with an alert. Its certificate does not matter, because nothing
 * is sent. Undefined for an address that is neither `host:port` nor `unix:/path`.
 */
async function serverSpeaksTls(address: string): Promise<boolean | undefined> {
  const { path, host, port } = ADDRESS.exec(address)?.groups ?? {};
  if (path === undefined && host === undefined) return undefined;
  const server = path === undefined ? { host, port: Number(port) } : { path };
  return new Promise((resolve) => {
    const socket = connect({ ...server, ALPNProtocols: ['h2'], rejectUnauthorized: false });
    const timer = setTimeout(() => end(false), PROBE_TIMEOUT_MS);
    function end(isTls: boolean): void {
      clearTimeout(timer);
      socket.destroy();
      resolve(isTls);
    }
    socket.once('secureConnect', () => end(true));
    // An alert is an answer, for example that a client certificate is required.
    socket.on('error', (error) => end(/alert/.test(error.message)));
    socket.once('close', () => end(false));
  });
}

function channelCredentials(flags: TlsFlags): ChannelCredentials {
  if (!flags['grpc-use-tls']) {
    const given = FILE_FLAGS.find((name) => flags[name] !== '');
    if (given !== undefined) throw new FlagError(`flag -${given} requires -grpc-use-tls`);
    return credentials.createInsecure();
  }
  if ((flags['grpc-cert-file'] === '') !== (flags['grpc-key-file'] === '')) {
    throw new FlagError('flags -grpc-cert-file and -grpc-key-file must be used together');
  }
  const [ca, certificate, key] = FILE_FLAGS.map((name) => {
    return flags[name] === '' ? null : Buffer.from(readPem(flags[name], `of flag -${name} (${flags[name]})`));
  });
  try {
    return credentials.createSsl(ca ?? Buffer.from(trustedRoots().join('\n')), key, certificate);
  } catch (cause) {
    throw new FlagError(`invalid TLS files: ${messageOf(cause)}`, { cause });
  }
}
