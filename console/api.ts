import { useEffect, useRef, useState } from 'preact/hooks';
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
 * What is read; undefined: nothing is. It is read again with another token, and when `version` changes.
 *
 * @param key what the answer depends on
 */
export function useRead<T>(key: string | undefined, read: () => Promise<T>, version?: unknown): Answer<T> {
  const currentToken = useStore(token);
  const [answer, setAnswer] = useState<Answer<T> & { readonly key?: string | undefined }>({});
  const reads = useRef({ key, begun: 0, answered: 0 });
  reads.current.key = key;
  useEffect(() => {
    if (key === undefined) return;
    const number = (reads.current.begun += 1);
    function show(make: (last: Answer<T>) => Answer<T>): void {
      const { current } = reads;
      // Where each answer takes longer than an interval, the next read must not drop it.
      if (current.key !== key || current.answered > number) return;
      current.answered = number;
      setAnswer((last) => ({ ...make(last.key === key ? last : {}), key }));
    }
    read().then(
      (value) => show(() => ({ value })),
      (error: ApiError) => show((last) => ({ ...last, error })),
    );
  }, [key, version, currentToken]);
  return key === undefined ? {} : answer;
}

/** A request with a text as its body. */
export type Init = RequestInit & { readonly body?: string };

/** The answer to a request that only reads; undefined: none is sent. */
export function useAnswer<T>(path: string | undefined, version?: unknown, init?: Init): Answer<T> {
  const key = path === undefined ? undefined : `${path} ${init?.body ?? ''}`;
  return useRead(key, () => call<T>(path!, init), version);
}

/** Milliseconds between two requests of pages that follow something. */
const LOOK_INTERVAL = 5_000;

/** Counts intervals while the page is visible. */
export function useTicks(interval = LOOK_INTERVAL): number {
  const [ticks, setTicks] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setTicks((before) => before + 1), interval);
    return () => clearInterval(timer);
  }, [interval]);
  return ticks;
}

/** The answer to a request that is sent again every few seconds. */
export function useLooks<T>(path: string | undefined, init?: Init, interval?: number): Answer<T> {
  return useAnswer<T>(path, useTicks(interval), init);
}

/** An answer that several components show: it is read in intervals while one of them does, and stays. */
export class Poll<T> {
  readonly #read: (last: T | undefined) => Promise<T>;
  readonly #interval: (last: T | undefined) => number;
  readonly #answer = new Store<Answer<T>>({});
  #users = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param interval milliseconds until the next request */
  constructor(read: (last: T | undefined) => Promise<T>, interval: (last: T | undefined) => number) {
    this.#read = read;
    this.#interval = interval;
    token.subscribe(() => this.#users > 0 && void this.#look());
  }

  /** @param isWanted whether anything is requested */
  use(isWanted = true): Answer<T> {
    useEffect(() => {
      if (!isWanted) return undefined;
      this.#users += 1;
      if (this.#users === 1) void this.#look();
      return () => {
        this.#users -= 1;
        if (this.#users === 0) clearTimeout(this.#timer);
      };
    }, [this, isWanted]);
    return useStore(this.#answer);
  }

  async #look(): Promise<void> {
    clearTimeout(this.#timer);
    const { value } = this.#answer.value;
    if (!document.hidden) {
      try {
        this.#answer.set({ value: await this.#read(value) });
      } catch (error) {
        this.#answer.set({ ...this.#answer.value, error: error as ApiError });
      }
    }
    clearTimeout(this.#timer);
    const next = this.#interval(this.#answer.value.value);
    if (this.#users > 0) this.#timer = setTimeout(() => void this.#look(), next);
  }
}
