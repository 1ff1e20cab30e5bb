import type { ServiceError } from '@grpc/grpc-js';
import { RateLimitClient } from '../clients/grpc-client';
import type { WeirProcess } from './weir-process';

const REQUEST = JSON.stringify({ domain: 'shop', descriptors: [{ entries: [{ key: 'key', value: 'a' }] }] });

/** Everything that a running service shows to a client of any of its open listeners, and what it has printed. */
export async function observableOutput(weir: WeirProcess): Promise<string> {
  const metrics = /metrics listener opened.*?port"?[=:](\d+)/.exec(weir.output)?.[1];
  const requests: readonly (readonly [port: number | undefined, path: string, init?: RequestInit])[] = [
    ...['/', '/stats', '/rlconfig', '/nothing'].map((path) => [weir.ports.debug, path] as const),
    [metrics === undefined ? undefined : Number(metrics), '/metrics'],
    ...['/healthcheck', '/json', '/nothing'].map((path) => [weir.ports.http, path] as const),
    [weir.ports.http, '/json', { method: 'POST', body: REQUEST }],
    [weir.ports.http, '/json', { method: 'POST', body: '{' }],
  ];
  const responses = await Promise.all([
    ...requests.map((request) => httpResponse(...request)),
    grpcResponse(weir, 'key'),
    grpcResponse(weir, 'fast'),
  ]);
  return [weir.output, ...responses].join('\n');
}

/** Empty when the listener is not open. */
async function httpResponse(port: number | undefined, path: string, init?: RequestInit): Promise<string> {
  if (port === undefined) return '';
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
    return [response.statusText, ...[...response.headers].flat(), await response.text()].join('\n');
  } catch {
    return '';
  }
}

async function grpcResponse({ grpcAddress }: WeirProcess, key: string): Promise<string> {
  using client = new RateLimitClient(grpcAddress);
  try {
    const { overallCode, statuses } = await client.shouldRateLimit('shop', [`${key}=a`]);
    return `gRPC answers ${overallCode} for ${key}, ${JSON.stringify(statuses.map(({ code }) => code))}`;
  } catch (error) {
    const { message, details, metadata } = error as ServiceError;
    return [`gRPC fails for ${key}`, message, details, JSON.stringify(metadata.getMap())].join('\n');
  }
}
