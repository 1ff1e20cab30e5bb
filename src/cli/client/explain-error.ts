import { status } from '@grpc/grpc-js';

/** The parts of a gRPC error that explain why a call failed. */
export interface CallError {
  readonly code: status;
  readonly details: string;
}

const NO_CONNECTION =
  /^No connection established\. Last error: (?:Error: )?(?<reason>[^]*?)(?:\s*\([\d:.TZ-]+\))?[.\s]*$/;

const REASONS: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED/, 'connection refused; check that the server is running'],
  [/ENOENT/, 'the socket does not exist'],
  [/EHOSTUNREACH|ENETUNREACH/, 'the host is unreachable'],
  [/Protocol error/, 'the server does not accept gRPC without TLS; try -grpc-use-tls'],
  [/wrong version number/, 'the server does not accept TLS'],
];

/** Why a call failed, in one sentence for the user of the program. */
export function explainError(address: string, timeoutMs: number, { code, details }: CallError): string {
  if (code === status.DEADLINE_EXCEEDED) return `no response from ${address} within ${timeoutMs / 1000} s`;
  const reason = NO_CONNECTION.exec(details)?.groups?.['reason'];
  if (reason !== undefined) {
    const known = REASONS.find(([pattern]) => pattern.test(reason));
    return `cannot connect to ${address}: ${known?.[1] ?? (reason || 'the connection failed')}`;
  }
  if (/^(Name resolution failed|Failed to parse DNS)/.test(details)) {
    return `cannot connect to ${address}: the host name cannot be resolved`;
  }
  return `${address} responded with ${status[code]}: ${details}`;
}
