import { readSecretFile } from '../../sources/secret-file';
import { messageOf } from '../../text/thrown';
import { FlagError } from '../flags';

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
 * The operator token: that of a file, or the variable OPERATOR_TOKEN, or the file of OPERATOR_TOKEN_FILE. It is no flag, because other
 * users of the machine can see command lines.
 *
 * @throws {FlagError} when the file cannot be read
 */
export function tokenFrom(file: string, environment: NodeJS.ProcessEnv): string | undefined {
  const { OPERATOR_TOKEN_FILE: tokenFile } = environment;
  // As for the service, an empty variable is not set.
  const token = environment['OPERATOR_TOKEN']?.trim() || undefined;
  const path = file === '' && token === undefined ? tokenFile : file;
  if (path === undefined || path === '') return token;
  try {
    return readSecretFile(path);
  } catch (cause) {
    throw new FlagError(`cannot use the file of the operator token: ${messageOf(cause)}`, { cause });
  }
}

/**
 * Calls the operators' API.
 *
 * @returns the JSON of the answer
 * @throws Error with a message of one sentence when there is none, or it is an error
 */
export async function callApi({ address, token, timeoutMs }: ApiTarget, request: ApiRequest): Promise<unknown> {
  const { method = 'GET', path, query = {}, body } = request;
  const response = await fetch(urlOf(address, path, query), {
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
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.ok && answer !== undefined) return answer;
  const { detail } = Object(answer) as { readonly detail?: unknown };
  if (typeof detail === 'string') throw new Error(detail);
  throw new Error(`${address} is not the debug listener of weir: it answered with status ${response.status}`);
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
  const { cause } = Object(error) as { readonly cause?: unknown };
  const { name } = Object(error) as { readonly name?: unknown };
  if (name === 'TimeoutError') return 'it did not answer in time';
  return messageOf(cause instanceof Error && cause.message !== '' ? cause : error);
}
