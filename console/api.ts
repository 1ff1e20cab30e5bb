import { useEffect, useState } from 'preact/hooks';
import { Store, useStore } from './store';

/** Relative to the page: a proxy may have put the listener below any path. */
const API = '../api/';

/** The operator token, as long as the page is open. */
export const token = new Store('');

/** Why there is no answer: one sentence. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** Of HTTP; 0 without an answer. */
    readonly status: number,
    /** The members of the problem. */
    readonly members: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }
}

/** @throws ApiError unless the answer has status 200 */
export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  // Authorization may be that of a proxy, with which the browser has logged in.
  const headers: Record<string, string> = token.value === '' ? {} : { 'Weir-Operator-Token': token.value };
  let response: Response;
  try {
    response = await fetch(API + path, { ...init, headers });
  } catch (error) {
    throw new ApiError('the service cannot be reached: it has stopped, or the connection is interrupted', 0, { error });
  }
  if (response.ok) return response;
  const members = Object((await response.json().catch(() => undefined)) as unknown) as Record<string, unknown>;
  const { detail = Object(members['error']).message ?? `the answer has status ${response.status}` } = members;
  throw new ApiError(String(detail), response.status, members);
}

export async function call<T>(path: string, init?: RequestInit): Promise<T> {
  return (await (await send(path, init)).json()) as T;
}

/** What was answered last, and why there is no newer answer. */
export interface Answer<T> {
  readonly value?: T;
  readonly error?: ApiError;
}

/**
 * The answer to a request that only reads; undefined: none is sent. It is sent again with another token, and when
 * `version` changes.
 *
 * @param version what the answer depends on
 */
export function useAnswer<T>(path: string | undefined, version?: unknown, init?: RequestInit): Answer<T> {
  const currentToken = useStore(token);
  const [answer, setAnswer] = useState<Answer<T> & { readonly path?: string | undefined }>({});
  const body = init?.body;
  useEffect(() => {
    if (path === undefined) return undefined;
    let isCurrent = true;
    call<T>(path, init).then(
      (value) => isCurrent && setAnswer({ value, path }),
      (error: ApiError) => isCurrent && setAnswer((last) => ({ ...(last.path === path && last), error, path })),
    );
    return () => (isCurrent = false);
  }, [path, version, currentToken, body]);
  return path === undefined ? {} : answer;
}
