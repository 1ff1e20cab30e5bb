import type { IncomingMessage, ServerResponse } from 'node:http';
import { errorBody } from './error-boundary';
import type { ErrorResponse } from './errors';

const LINGER_MS = 2_000;

export interface EarlyResponse extends ErrorResponse {
  /** How long the rest of the body is received and discarded, in milliseconds. */
  readonly lingerMs?: number;
  /** The body and its type; by default that of the other listeners. */
  readonly body?: { readonly type: string; readonly text: string };
}

/**
 * Responds to a request whose body has not been read, and closes its connection. The rest of the body is discarded first, for a
 * limited time: closing a socket with unread data resets the connection, and the response may be lost (RFC 9112, section 9.6).
 */
export function respondEarly(
  request: IncomingMessage,
  response: ServerResponse,
  { status, code, message, headers, lingerMs = LINGER_MS, body }: EarlyResponse,
): void {
  const { type, text } = body ?? { type: 'application/json', text: errorBody(code, message) };
  response.writeHead(status, {
    ...headers,
    Connection: 'close',
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(text),
  });
  // Not ended yet, although complete for the caller: Node closes the connection when the response ends.
  response.write(text);
  function end() {
    clearTimeout(timeout);
    response.end();
  }
  const timeout = setTimeout(end, lingerMs);
  request.once('end', end).once('close', end).resume();
}
