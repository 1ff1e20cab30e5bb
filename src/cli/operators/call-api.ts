import { messageOf } from '../../text/thrown';
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
 * @throws Error with a message of one sentence when there is none, or it is an error
 */
export async function callApi({ address, token, timeoutMs }: ApiTarget, request: ApiRequest): Promise<unknown> {
  const { method = 'GET', path, query = {}, body } = request;
  const { ok, status, text } = await receive(urlOf(address, path, query), {
    method,
    headers: {
      Accept: 'application/vnd.weir+json;version=1',
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(timeoutMs),
  }).catch((error: unknown) => {
    throw new Error(`cannot call the API at ${address}: ${failureOf(error)}`, { cause: error });
  });
  const answer = parse(text);
  if (ok && answer !== undefined) return answer;
  const { detail } = Object(answer) as { readonly detail?: unknown };
  if (typeof detail === 'string') throw new Error(visible(detail));
  throw new Error(`${address} is not the debug listener of weir: it answered with status ${status}`);
}

interface CompleteAnswer extends Pick<Response, 'ok' | 'status'> {
  readonly text: string;
}

async function receive(url: URL, init: RequestInit): Promise<CompleteAnswer> {
  const response = await fetch(url, init);
  return { ok: response.ok, status: response.status, text: await response.text() };
}

/** Undefined for a text that is not JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function urlOf(address: string, path: string, query: Readonly<Record<string, string>>): URL {
  try {
    const url = new URL(`http://${address}/api/${path}`);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return url;
  } catch (cause) {
    throw new FlagError(`invalid address "${address}": expected host:port`, { cause });
  }
}

function failureOf(error: unknown): string {
  const { name, cause } = Object(error) as { readonly name?: unknown; readonly cause?: unknown };
  if (name === 'TimeoutError') return 'it did not answer in time';
  const { message } = Object(cause) as { readonly message?: unknown };
  return typeof message === 'string' && message !== '' ? message : messageOf(error);
}
