import type { IncomingMessage, ServerResponse } from 'node:http';

/** How long the rest of an unread body is received and discarded. */
const LINGER_MS = 2_000;

/**
 * Responds to a request whose body has not been read, and closes its connection. The rest of the body is discarded first, for a
 * limited time: closing a socket with unread data resets the connection, and the response may be lost (RFC 9112, section 9.6).
 */
export function respondEarly(
  request: IncomingMessage,
  response: ServerResponse,
  { status, json }: { readonly status: number; readonly json: string },
): void {
  response.writeHead(status, {
    Connection: 'close',
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(json),
  });
  // Not ended yet, although complete for the caller: Node closes the connection when the response ends.
  response.write(json);
  function end() {
    clearTimeout(timeout);
    response.end();
  }
  const timeout = setTimeout(end, LINGER_MS);
  request.once('end', end).once('close', end).resume();
}
