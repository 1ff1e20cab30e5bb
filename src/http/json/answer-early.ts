import type { IncomingMessage, ServerResponse } from 'node:http';

/** How long a caller may go on sending what nobody reads. */
const LINGER_MS = 2_000;

/**
 * Answers a request whose body is not wanted, and ends its connection. What the caller still sends is dropped for a
 * while first: closing on unread bytes would reset the connection, and the answer with it (RFC 9112, section 9.6).
 */
export function answerEarly(request: IncomingMessage, response: ServerResponse, status: number, json: string): void {
  response.writeHead(status, {
    Connection: 'close',
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(json),
  });
  // Whole for the caller, yet not ended: at its end Node closes the connection.
  response.write(json);
  function end() {
    clearTimeout(patience);
    response.end();
  }
  const patience = setTimeout(end, LINGER_MS);
  request.once('end', end).once('close', end).resume();
}
