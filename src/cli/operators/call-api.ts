import { hideAddressCredentials } from '../../text/hide-credentials';
import { type HostPort, parseServerAddress } from '../../text/host-port';
import { messageOf } from '../../text/thrown';
import { callHttp } from '../call-http';
import { FlagError } from '../flags';
import { visible } from '../visible';

/** Where the API is, and with what it is called. */
export interface ApiTarget {
  /** `host:port` of the debug listener. */
  readonly address: string;
  /** Undefined: without a token. */
  readonly token: string | undefined;
  readonly timeoutMs: number;
}

export interface ApiRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below /api. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
}

/**
 * Calls the operators' API.
 *
 * @returns the JSON of the answer
 * @throws {FlagError} for an invalid address, before anything is sent
 * @throws Error with a message of one sentence when there is none, or it is an error
 */
export async function callApi({ address, token, timeoutMs }: ApiTarget, request: ApiRequest): Promise<unknown> {
  const { method = 'GET', path, query = {}, body } = request;
  const search = new URLSearchParams(query).toString();
  const { status, text } = await callHttp({
    ...serverAt(address),
    method,
    path: `/api/${path}${search === '' ? '' : `?${search}`}`,
    headers: {
      Accept: 'application/vnd.weir+json;version=1',
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    body: body && JSON.stringify(body),
    timeoutMs,
  }).catch((error: unknown) => {
    throw new Error(`cannot call the API at ${address}: ${messageOf(error)}`, { cause: error });
  });
  const answer = parse(text);
  if (status >= 200 && status < 300 && answer !== undefined) return answer;
  const { detail } = Object(answer) as { readonly detail?: unknown };
  if (typeof detail === 'string') throw new Error(visible(detail));
  throw new Error(`${address} is not the debug listener of weir: it answered with status ${status}`);
}

/** Nothing but a host and a port: the rest of a URL would send the token to another port or path. */
function serverAt(address: string): HostPort {
  const server = parseServerAddress(address);
  if (server !== undefined) return server;
  throw new FlagError(`invalid address "${visible(hideAddressCredentials(address))}": expected host:port`);
}

/** Undefined for a text that is not JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
