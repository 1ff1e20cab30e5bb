import { readFileSync } from 'node:fs';
import { type SecureContext, createSecureContext } from 'node:tls';
import { trustedRoots } from '../../net/trusted-roots';

/** Variables by name, like `process.env`. */
type Environment = Readonly<Record<string, string | undefined>>;

/** What the exporter is to use for TLS, PEM. */
export interface OtlpTls {
  readonly ca: string;
  readonly cert: Buffer | undefined;
  readonly key: Buffer | undefined;
}

/**
 * The trusted certificates for an exporter whose endpoint uses TLS, with its client certificate. Undefined where OpenTelemetry
 * decides by itself: without TLS, with OTEL_EXPORTER_OTLP_CERTIFICATE, and with an unusable client certificate, which it reports.
 * By itself, it trusts only the certificates of Node.
 */
export function otlpTls(protocol: 'http' | 'grpc', environment: Environment = process.env): OtlpTls | undefined {
  function valueOf(name: string): string | undefined {
    const [specific, general] = ['TRACES_', ''].map((part) => environment[`OTEL_EXPORTER_OTLP_${part}${name}`]?.trim());
    return specific || general || undefined;
  }
  const endpoint = valueOf('ENDPOINT');
  if (endpoint === undefined || valueOf('CERTIFICATE') !== undefined) return undefined;
  if (!usesTls(protocol, endpoint, valueOf('INSECURE'))) return undefined;
  const files = [valueOf('CLIENT_CERTIFICATE'), valueOf('CLIENT_KEY')];
  try {
    const [cert, key] = files.map((path) => (path === undefined ? undefined : readFileSync(path)));
    return (cert === undefined) === (key === undefined) ? { ca: trustedRoots().join('\n'), cert, key } : undefined;
  } catch {
    return undefined;
  }
}

/** Over gRPC, an endpoint without a scheme uses TLS, unless OTEL_EXPORTER_OTLP_INSECURE is set. */
function usesTls(protocol: 'http' | 'grpc', endpoint: string, insecure: string | undefined): boolean {
  if (/^https?:/i.test(endpoint)) return /^https:/i.test(endpoint);
  return protocol === 'grpc' && insecure?.toLowerCase() !== 'true';
}

/** A context for all connections: creating one takes about 100 ms. */
export function secureContextOf({ ca, cert, key }: OtlpTls): SecureContext {
  return createSecureContext({ ca, ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) });
}
