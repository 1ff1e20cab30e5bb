import type { Socket } from 'node:net';
import { STATUS_CODES } from 'node:http';
import { errorBody } from './error-boundary';
import { type InvalidRequest, headersTooLarge } from './validate-request';
import type { HttpLimits } from './limits';

/** An error of Node's HTTP server that ends a connection before its request has reached the application. */
export type ParseError = Error & { readonly code?: string };

/** The response; undefined when the connection has failed and no response can be sent. */
export function answerTo({ code = '' }: ParseError, limits: HttpLimits): InvalidRequest | undefined {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    const message = 'the request did not arrive in time';
    return { kind: 'request_timeout', response: { status: 408, code: 'request_timeout', message } };
  }
  if (code === 'HPE_HEADER_OVERFLOW') return headersTooLarge(limits);
  if (!code.startsWith('HPE_') || code === 'HPE_INVALID_EOF_STATE') return undefined;
  return {
    kind: 'malformed',
    response: { status: 400, code: 'malformed_request', message: 'the request is not valid HTTP' },
  };
}

/** Sends a response on a connection whose request has no response object, and closes the connection. */
export function answerAndClose(socket: Socket, { response: { status, code, message } }: InvalidRequest): void {
  const body = errorBody(code, message);
  socket.write(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  socket.destroySoon();
}
