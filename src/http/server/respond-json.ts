import type { IncomingMessage, ServerResponse } from 'node:http';

/** Handles a request on its own, without Koa. Never throws. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

export interface JsonResponse {
  readonly status: number;
  readonly json: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Sends a response as JSON in one write; nothing when the connection is closed. */
export function respondJson(response: ServerResponse, { status, json, headers }: JsonResponse): void {
  if (response.destroyed) return;
  response.writeHead(status, {
    ...headers,
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(json),
  });
  response.end(json);
}
