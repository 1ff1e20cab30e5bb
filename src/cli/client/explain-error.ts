import { type ServiceError, status } from '@grpc/grpc-js';
import { connectionFailure } from '../../text/connection-failure';
import { excerpt } from '../../text/excerpt';
import { visibleLine } from '../../text/visible';

/** How a client calls. */
export interface CallContext {
  readonly address: string;
  readonly timeoutMs: number;
  /** Whether the client has used TLS, and whether with a certificate. */
  readonly isTls: boolean;
  readonly hasCertificate: boolean;
  /** Determines whether the server accepts TLS; undefined when that cannot be determined. */
  readonly serverSpeaksTls: () => Promise<boolean | undefined>;
}

type Explanation = readonly [pattern: RegExp, reason: string | ((match: RegExpExecArray) => string)];

const NETWORK: readonly Explanation[] = [
  [/ECONNREFUSED/, 'connection refused; check that the server is running'],
  [/ENOENT/, 'the socket does not exist'],
  [/EHOSTUNREACH|ENETUNREACH/, 'the host is unreachable'],
];

const CERTIFICATES: readonly Explanation[] = [
  [
    /Host: (\S+?)\.? is not in the cert's altnames: (.*)$/,
    ([, host, names = '']) => `the certificate of the server is not for ${host} but for ${namesIn(names)}`,
  ],
  [/IP: (\S+) is not in the cert's list/, ([, ip]) => `the certificate of the server is not for the address ${ip}`],
  [/Hostname\/IP does not match/, 'the certificate of the server is for another name'],
  [/certificate has expired/, 'the certificate of the server has expired'],
  [/certificate is not yet valid/, 'the certificate of the server is not valid yet'],
  [
    /unable to (?:verify|get)|self.signed/,
    'the certificate of the server is from an unknown CA; give that CA with -grpc-server-ca-file',
  ],
  [
    /wrong version number|packet length too long|http request/,
    'the server does not speak TLS; try without -grpc-use-tls',
  ],
  [
    /alert certificate required/,
    'the server requires a client certificate; give one with -grpc-cert-file and -grpc-key-file',
  ],
  [/alert (.*(?:certificate|unknown ca).*)/, ([, alert]) => `the server rejects the client certificate: ${alert}`],
  [/alert handshake failure/, 'the server rejects the TLS handshake; it may require a client certificate'],
  [/no application protocol/, 'the server does not speak HTTP/2'],
];

/** In characters: the names of a certificate are those that its server has chosen. */
const LONGEST_FAILURE = 4096;

/** Why a call failed, in one sentence for the user of the program. */
export async function explainError(
  call: CallContext,
  { code, details }: Pick<ServiceError, 'code' | 'details'>,
): Promise<string> {
  const { address, timeoutMs } = call;
  if (code === status.DEADLINE_EXCEEDED) return `no response from ${address} within ${timeoutMs / 1000} s`;
  const failure = connectionFailure(details);
  if (failure !== undefined) return visibleLine(`cannot connect to ${address}: ${await explainFailure(call, failure)}`);
  if (/^(Name resolution failed|Failed to parse DNS)/.test(details)) {
    return `cannot connect to ${address}: the host name cannot be resolved`;
  }
  return visibleLine(`${address} responded with ${status[code]}: ${details}`);
}

async function explainFailure(call: CallContext, failure: string): Promise<string> {
  for (const [pattern, reason] of call.isTls ? [...NETWORK, ...CERTIFICATES] : NETWORK) {
    const match = pattern.exec(excerpt(failure, LONGEST_FAILURE));
    if (match !== null) return typeof reason === 'string' ? reason : reason(match);
  }
  if (!/Failed to connect|Protocol error|ECONNRESET|EPIPE|socket hang up|disconnected/.test(failure)) return failure;
  const speaksTls = await call.serverSpeaksTls();
  if (!call.isTls) {
    return speaksTls === true ? 'the server requires TLS; try -grpc-use-tls' : 'the server does not speak gRPC';
  }
  if (speaksTls === false) return 'the server does not speak TLS; try without -grpc-use-tls';
  return call.hasCertificate
    ? 'the server closed the connection; it may reject the client certificate'
    : 'the server closed the connection; it may require a client certificate (-grpc-cert-file, -grpc-key-file)';
}

/** `DNS:a, IP Address:1.2.3.4` as `a, 1.2.3.4`. */
function namesIn(alternatives: string): string {
  return alternatives.replaceAll(/\b(?:DNS|IP Address|URI):/g, '');
}
