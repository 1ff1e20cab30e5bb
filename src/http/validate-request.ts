import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { type Rejection, errorBody } from './errors';
import type { HttpLimits, HttpRejection } from './limits';

/** A request that is not handled. */
export type InvalidRequest = Rejection & { readonly kind: HttpRejection };

/** A host with a port, or nothing, in the characters of RFC 3986. */
const HOST = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/i;
const ABSOLUTE_FORM = /^(?<scheme>[a-z][a-z\d+.-]*):\/\/(?<authority>[^/?#]*)/i;
const DEFAULT_PORTS: Readonly<Record<string, RegExp>> = { http: /:(?:80)?$/, https: /:(?:443)?$/ };

/**
 * Checks what Node's parser accepts although another server on the way may read it differently: the version, the host,
 * the transfer coding, the number of headers. Returns undefined for a valid request.
 */
export function validateRequest(request: IncomingMessage, limits: HttpLimits): InvalidRequest | undefined {
  const { rawHeaders, headers, httpVersion } = request;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    return malformed('the only supported versions are HTTP/1.1 and HTTP/1.0', 505, 'unknown_http_version');
  }
  if (rawHeaders.length > 2 * limits.maxHeaders) return headersTooLarge(limits);
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && httpVersion !== '1.1') return malformed('Transfer-Encoding requires HTTP/1.1');
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    return malformed('the only supported Transfer-Encoding is chunked', 501, 'unknown_transfer_encoding');
  }
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue') {
    return malformed('the only supported Expect is 100-continue', 417, 'unknown_expectation');
  }
  const reason = problemOfLine(request) ?? problemOfHost(request);
  return reason === undefined ? undefined : malformed(reason);
}

/** A path and a query, which every parser accepts. */
const PLAIN_TARGET = /^\/[^#\s]*$/;

/**
 * Checks that a target can be parsed and has a path. Node's HTTP parser accepts some for which URL parsers throw, and
 * some without a path, such as `foo://host`. Koa parses within the application, where that would be an internal error.
 *
 * @param parsePath the path of the target as Koa parses it; null if there is none
 */
export function validateTarget({ url = '' }: IncomingMessage, parsePath: () => unknown): InvalidRequest | undefined {
  if (PLAIN_TARGET.test(url)) return undefined;
  try {
    const path = parsePath();
    // `*` is the target of a request about the whole server (RFC 9112, section 3.2.4).
    if (path === '*' || (typeof path === 'string' && path.startsWith('/'))) return undefined;
  } catch {
    // A target that cannot be parsed is rejected as one without a path.
  }
  return malformed('the request target is not a valid URL');
}

/**
 * What is wrong with the request line (RFC 9112, section 3). Node's parser skips further spaces in it and accepts the
 * protocols RTSP and ICE, but reports neither. The bytes that it is parsing show both, unless the line has arrived in
 * two pieces, or the same one without a mistake is among them.
 */
function problemOfLine({ socket, method = '', url, httpVersion }: IncomingMessage): string | undefined {
  // A field of Node that is not documented.
  const bytes = (socket as { parser?: { getCurrentBuffer?(): Buffer } | null }).parser?.getCurrentBuffer?.();
  if (bytes === undefined || bytes.includes(`${method} ${url} HTTP/${httpVersion}\r\n`, 0, 'latin1')) return undefined;
  const isThere = bytes
    .toString('latin1')
    .split('\r\n')
    .some((line) => {
      // The body of the request before a pipelined one may precede its method.
      const [first = '', target, protocol = ''] = line.split(/ +/).slice(-3);
      return first.endsWith(method) && target === url && protocol.endsWith(`/${httpVersion}`);
    });
  return isThere
    ? 'the request line is not a method, a target and HTTP with its version, with one space each'
    : undefined;
}

/** What is wrong with the host (RFC 9112, section 3.2). */
function problemOfHost({ rawHeaders, headers: { host }, httpVersion, url = '' }: IncomingMessage): string | undefined {
  if (host === undefined) return httpVersion === '1.1' ? 'the Host header is missing' : undefined;
  if (!HOST.test(host)) return 'the Host header is not a host name or an address';
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    // The length first: it rules out nearly all headers.
    if (rawHeaders[at]!.length === 4 && rawHeaders[at]!.toLowerCase() === 'host') count += 1;
  }
  // Node has kept the first of them.
  if (count > 1) return 'there is more than one Host header';
  if (url.startsWith('/')) return undefined;
  const { scheme, authority } = ABSOLUTE_FORM.exec(url)?.groups ?? {};
  if (scheme === undefined || authority === undefined) return undefined;
  return comparable(scheme, authority) === comparable(scheme, host)
    ? undefined
    : 'the Host header differs from the host of the request target';
}

function comparable(scheme: string, host: string): string {
  return host.toLowerCase().replace(DEFAULT_PORTS[scheme.toLowerCase()] ?? '', '');
}

function malformed(message: string, status = 400, code = 'malformed_request'): InvalidRequest {
  return { kind: 'malformed', status, code, message };
}

/**
 * The response to headers over a limit. Newer versions of Node report both limits in the same way, so the message names
 * both.
 */
function headersTooLarge({ maxHeaders, maxHeaderBytes }: HttpLimits): InvalidRequest {
  const message = `a request may have at most ${maxHeaders} headers, of ${maxHeaderBytes / 1024} KiB in all`;
  return { kind: 'header_list', status: 431, code: 'headers_too_large', message };
}

/** An error of Node's HTTP server that ends a connection before its request has reached the application. */
export type ParseError = Error & { readonly code?: string };

/** The response; undefined when the connection has failed and no response can be sent. */
export function answerTo({ code = '' }: ParseError, limits: HttpLimits): InvalidRequest | undefined {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    const message = 'the request did not arrive in time';
    return { kind: 'request_timeout', status: 408, code: 'request_timeout', message };
  }
  if (code === 'HPE_HEADER_OVERFLOW') return headersTooLarge(limits);
  if (!code.startsWith('HPE_') || code === 'HPE_INVALID_EOF_STATE') return undefined;
  return malformed('the request is not valid HTTP');
}

/** Sends a response on a connection whose request has no response object, and closes the connection. */
export function answerAndClose(socket: Socket, invalid: InvalidRequest): void {
  const body = errorBody(invalid);
  socket.write(
    `HTTP/1.1 ${invalid.status} ${STATUS_CODES[invalid.status]}\r\n` +
      'Connection: close\r\nContent-Type: application/json\r\n' +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  socket.destroySoon();
}
