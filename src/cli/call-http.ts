import { request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { formatHostPort } from '../text/host-port';
import { messageOf } from '../text/thrown';

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
}

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * Calls an HTTP server on a connection of its own. Unlike `fetch`, it accepts every port, and follows no redirects: the server that was
 * named is the only one that receives a token.
 *
 * @throws Error whose message says, in a few words about the server, why there is no complete answer
 */
export function callHttp({ host, port, headers = {}, body, timeoutMs, ...rest }: HttpCall): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(timeoutMs);
    function fail(cause: unknown): void {
      const late = `it did not answer in time (timeout ${timeoutMs / 1000} s)`;
      reject(new Error(signal.aborted ? late : reasonOf(cause), { cause }));
    }
    request({ ...rest, host, port, headers: { ...headers, Host: hostHeader(host, port) }, agent: false, signal })
      .on('response', (response) => {
        const { statusCode: status = 0 } = response;
        textOf(response).then((text) => resolve({ status, text }), fail);
      })
      // Node would close the connection without another event.
      .on('upgrade', ({ statusCode: status = 0 }, socket) => {
        socket.destroy();
        resolve({ status, text: '' });
      })
      .on('error', fail)
      .end(body);
  });
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
