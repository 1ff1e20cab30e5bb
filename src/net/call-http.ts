import { X509Certificate } from 'node:crypto';
import { type IncomingMessage, type RequestOptions, request } from 'node:http';
import { isIP } from 'node:net';
import { StringDecoder } from 'node:string_decoder';
import { type SecureContext, type TLSSocket, checkServerIdentity, connect } from 'node:tls';
import { excerpt } from '../text/excerpt';
import { formatHostPort } from '../text/host-port';
import { messageOf } from '../text/thrown';
import { visibleLine } from '../text/visible';

/** Each piece of an answer takes time of its own: after so many, they must have so many bytes on average. */
const [FREE_PIECES, MIN_PIECE_BYTES] = [1_024, 16];
/** Interim responses (RFC 9110, 15.2) before the answer. */
const MAX_INTERIM = 8;
/** Most characters of an error that an answer describes. */
const LONGEST_ERROR = 2_000;

export interface HttpCall {
  /** IPv6 addresses without brackets. */
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** From the connection to the end of the answer. */
  readonly timeoutMs: number;
  /** The most bytes that the answer may have; undefined: any number. */
  readonly maxBytes?: number;
  /** Undefined: without TLS. */
  readonly tls?: CallTls | undefined;
}

/** What the certificate of a server must be. */
export interface CallTls {
  /** The name or the address that it must have. */
  readonly name: string;
  /** Who must have issued it. */
  readonly context: SecureContext;
  /** One that is accepted whatever its name and its issuer are, PEM: the first certificate of the text. */
  readonly known?: string | undefined;
}

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * Calls an HTTP server on a connection of its own. Unlike `fetch`, it accepts every port, and follows no redirects: the
 * server that was named is the only one that receives a token.
 *
 * @throws Error whose message says, in a few words about the server, why there is no complete answer
 */
export function callHttp({
  host,
  port,
  headers = {},
  body,
  timeoutMs,
  maxBytes = Infinity,
  tls,
  ...rest
}: HttpCall): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(timeoutMs);
    function fail(cause: unknown): void {
      const late = `it did not answer in time (timeout ${timeoutMs / 1000} s)`;
      reject(new Error(signal.aborted ? late : reasonOf(cause), { cause }));
    }
    const options = { ...rest, host, port, headers: { ...headers, Host: hostHeader(host, port) }, signal };
    const how = tls === undefined ? { agent: false } : { createConnection: connectionOf(tls, { host, port, signal }) };
    let interim = 0;
    const sent = request({ ...options, ...how })
      .on('response', (response) => {
        const { statusCode: status = 0 } = response;
        textOf(response, maxBytes).then((text) => resolve({ status, text }), fail);
      })
      // Node would close the connection without another event.
      .on('upgrade', ({ statusCode: status = 0 }, socket) => {
        socket.destroy();
        resolve({ status, text: '' });
      })
      .on('information', () => {
        interim += 1;
        if (interim > MAX_INTERIM) sent.destroy(new Error(`it sent more than ${MAX_INTERIM} interim responses`));
      })
      .on('error', fail)
      .end(body);
  });
}

/** Makes a connection with TLS. Nothing is sent before the certificate has been found to be right. */
function connectionOf(
  { name, context: secureContext, known }: CallTls,
  { host, port, signal }: Pick<HttpCall, 'host' | 'port'> & { readonly signal: AbortSignal },
): NonNullable<RequestOptions['createConnection']> {
  return (_, created) => {
    let nameError: Error | undefined;
    const socket = connect({
      ...{ host, port, secureContext, rejectUnauthorized: false },
      // An address is no name of a server in a handshake.
      servername: isIP(name) === 0 ? name : '',
      checkServerIdentity: (_host, certificate) => (nameError = checkServerIdentity(name, certificate)),
    });
    socket.once('error', (error) => created(error, socket));
    socket.once('secureConnect', () => {
      if (socket.authorized || isKnown(socket, known)) return created(null, socket);
      const reason = nameError?.message ?? String(socket.authorizationError);
      return socket.destroy(new Error(`its certificate is not accepted: ${reason}`));
    });
    signal.addEventListener('abort', () => socket.destroy(), { once: true });
    return undefined;
  };
}

function isKnown(socket: TLSSocket, known: string | undefined): boolean {
  const presented = socket.getPeerX509Certificate()?.fingerprint256;
  return known !== undefined && presented === new X509Certificate(known).fingerprint256;
}

function textOf(response: IncomingMessage, maxBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    // Texts are collected as garbage earlier than buffers, whose memory is not in the heap.
    const decoder = new StringDecoder();
    let [text, bytes, pieces] = ['', 0, 0];
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      pieces += 1;
      if (bytes > maxBytes) response.destroy(new Error(`its answer has more than ${maxBytes} bytes`));
      else if (pieces > FREE_PIECES && bytes < pieces * MIN_PIECE_BYTES) {
        response.destroy(new Error(`its answer is in pieces of fewer than ${MIN_PIECE_BYTES} bytes`));
      } else text += decoder.write(chunk);
    });
    response.on('end', () => resolve(text + decoder.end())).on('error', reject);
  });
}

/**
 * The JSON of an answer of the operators' API.
 *
 * @param who whose answer it is, for the error
 * @throws Error with what the answer says if it is an error, or else that it is none of weir
 */
export function readAnswer({ status, text }: HttpAnswer, who: string): unknown {
  const answer = parse(text);
  if (status >= 200 && status < 300 && answer !== undefined) return answer;
  const { detail, error } = Object(answer) as { readonly detail?: unknown; readonly error?: unknown };
  // The other errors of the listener are no problems.
  const message: unknown = detail ?? Object(error).message;
  throw new Error(
    typeof message === 'string'
      ? visibleLine(excerpt(message, LONGEST_ERROR))
      : `${who} is not the debug listener of weir: it answered with status ${status}`,
  );
}

/** Undefined for a text that is not JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Without the zone of an IPv6 address, which has a meaning on this machine only. */
function hostHeader(host: string, port: number): string {
  return formatHostPort(host.replace(/%.*$/, ''), port);
}

function reasonOf(error: unknown): string {
  const { code, errors } = Object(error) as { readonly code?: unknown; readonly errors?: unknown };
  if (code === 'ECONNRESET') return 'other side closed';
  if (String(code).startsWith('HPE_')) return `its answer is not HTTP/1.1 (${messageOf(error)})`;
  // One for each address of the host; the message of all is empty.
  return Array.isArray(errors) ? errors.map(messageOf).join('; ') : messageOf(error);
}
