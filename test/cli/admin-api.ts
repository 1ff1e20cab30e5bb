import type { IncomingMessage } from 'node:http';
import { ADMIN } from '../../src/cli/admin/admin';
import { ApiStub } from './api-stub';
import { runOf } from './run-program';

export const TOKEN = 'token-of-the-operators';

const GREEN = { state: 'green', text: 'well', todo: null };

/** Of a healthy service. */
export const HEALTH = {
  ...{ healthy: true, unhealthy: [], degraded: [] },
  ...{ store: GREEN, rules: GREEN, process: GREEN, instances: GREEN },
};

export const ANSWER = { ...HEALTH, answer: null, error: null, descriptors: [] };

export type ReceivedRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers'>;

/** An API that answers every request with JSON, and keeps the requests. */
export async function recordingApi(
  at: { readonly host?: string; readonly port?: number } = {},
  json: unknown = ANSWER,
) {
  const requests: ReceivedRequest[] = [];
  const stub = await ApiStub.start(({ method, url, headers }, response) => {
    requests.push({ method, url, headers });
    response.end(JSON.stringify(json));
  }, at);
  return { requests, address: stub.address, [Symbol.asyncDispose]: () => stub[Symbol.asyncDispose]() };
}

export function admin({ address }: { readonly address: string }, ...argv: readonly string[]) {
  return runOf(ADMIN, [...argv, '-address', address], {});
}
