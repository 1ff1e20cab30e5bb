import { status } from '@grpc/grpc-js';

/** What a failed call says about itself. */
export interface ClientFailure {
  readonly code: status;
  readonly details: string;
}

const NO_CONNECTION =
  /^No connection established\. Last error: (?:Error: )?(?<reason>[^]*?)(?:\s*\([\d:.TZ-]+\))?[.\s]*$/;

const REASONS: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED/, 'the connection was refused'],
  [/ENOENT/, 'there is no such socket'],
  [/EHOSTUNREACH|ENETUNREACH/, 'there is no way to this host'],
  [/Protocol error/, 'the server does not speak gRPC without TLS'],
  [/wrong version number/, 'the server does not speak TLS'],
];

/** Why there is no answer, in one sentence for the person who asked. */
export function explainFailure(address: string, timeoutMs: number, { code, details }: ClientFailure): string {
  if (code === status.DEADLINE_EXCEEDED) return `no answer from ${address} within ${timeoutMs / 1000} s`;
  const reason = NO_CONNECTION.exec(details)?.groups?.['reason'];
  if (reason !== undefined) {
    const known = REASONS.find(([pattern]) => pattern.test(reason));
    return `cannot connect to ${address}: ${known?.[1] ?? (reason || 'the connection failed')}`;
  }
  if (/^(Name resolution failed|Failed to parse DNS)/.test(details)) {
    return `cannot connect to ${address}: there is no host of this name`;
  }
  return `${address} answered ${status[code]}: ${details}`;
}
