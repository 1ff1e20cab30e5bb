import { useEffect } from 'preact/hooks';
import { Store, useStore } from './store';

/** Relative to the page: a proxy may have put the listener below any path. */
const API = '../api/';

/** The operator token, as long as the page is open. */
export const token = new Store('');

/** Why there is no answer: one sentence. */
export class ApiError extends Error {
  /** @param status of HTTP; 0 without an answer */
  constructor(
    message: string,
    readonly status: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** @throws ApiError unless the answer has status 200 */
export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  // Authorization may be that of a proxy, with which the browser has logged in.
  const headers: Record<string, string> = token.value === '' ? {} : { 'Weir-Operator-Token': token.value };
  let response: Response;
  try {
    response = await fetch(API + path, { ...init, headers });
  } catch (cause) {
    throw new ApiError('the service cannot be reached: it has stopped, or the connection is interrupted', 0, { cause });
  }
  if (response.ok) return response;
  const members = Object((await response.json().catch(() => undefined)) as unknown) as Record<string, unknown>;
  const { detail = Object(members['error']).message ?? `the answer has status ${response.status}` } = members;
  throw new ApiError(String(detail), response.status);
}

export async function call<T>(path: string, init?: RequestInit): Promise<T> {
  return (await (await send(path, init)).json()) as T;
}

/** What was answered last, and why there is no newer answer. */
export interface Answer<T> {
  readonly value?: T;
  readonly error?: ApiError;
}

/** @param last what it has answered before */
type Read<T> = (last: T | undefined) => Promise<T>;

interface Options<T> {
  /** Milliseconds between an answer and the next request; without it, there is none. */
  readonly every?: number | ((value: T | undefined) => number);
  /** With another one, there is another request at once. */
  readonly version?: unknown;
}

/** An answer, for all components that show it. It stays, also while none does. */
class Reading<T> {
  readonly answer = new Store<Answer<T>>({});
  users = 0;
  version: unknown;
  #requests = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  async begin(read: Read<T>, every: Options<T>['every']): Promise<void> {
    clearTimeout(this.#timer);
    const number = (this.#requests += 1);
    const { value } = this.answer.value;
    if (!document.hidden || value === undefined) {
      const answer: Answer<T> = await read(value).then(
        (next) => ({ value: next }),
        (error: ApiError) => ({ ...this.answer.value, error }),
      );
      // A later request has the answer.
      if (number !== this.#requests) return;
      this.answer.set(answer);
    }
    const wait = typeof every === 'function' ? every(this.answer.value.value) : every;
    if (this.users > 0 && wait !== undefined) this.#timer = setTimeout(() => void this.begin(read, every), wait);
  }

  leave(): void {
    this.users -= 1;
    if (this.users === 0) clearTimeout(this.#timer);
  }
}

/** By what they depend on. */
const readings = new Map<string, Reading<unknown>>();

function readingOf<T>(key: string): Reading<T> {
  const reading = readings.get(key) ?? new Reading<unknown>();
  readings.set(key, reading);
  return reading as Reading<T>;
}

/**
 * What is read, while a component shows it.
 *
 * @param key what the answer depends on, apart from the token; undefined: nothing is read
 */
export function useReading<T>(key: string | undefined, read: Read<T>, { every, version }: Options<T> = {}): Answer<T> {
  const all = `${useStore(token)} ${key}`;
  const reading = readingOf<T>(all);
  useEffect(() => {
    if (key === undefined) return undefined;
    reading.users += 1;
    if (reading.users === 1 || reading.version !== version) void reading.begin(read, every);
    reading.version = version;
    return () => reading.leave();
  }, [all, version]);
  return useStore(reading.answer);
}

/** The answer to a request that only reads. @param path undefined: none is sent */
export function useAnswer<T>(
  path: string | undefined,
  { body, ...options }: Options<T> & { readonly body?: string } = {},
): Answer<T> {
  const key = path === undefined ? undefined : `${path} ${body ?? ''}`;
  return useReading(key, () => call<T>(path!, body === undefined ? {} : { method: 'POST', body }), options);
}
