import { randomBytes } from 'node:crypto';
import {
  type Observable,
  Subject,
  catchError,
  defer,
  filter,
  ignoreElements,
  interval,
  map,
  merge,
  mergeMap,
  retry,
  switchMap,
  take,
  tap,
  timer,
} from 'rxjs';
import type { ConditionLog } from '../../../log/condition-log';
import { LONGEST_TABLE_KEY, tableKey } from '../../../text/table-key';
import type { Connection } from './connection';
import type { StoreClient, Store } from './store-client';
import { HEARTBEAT } from './pool';
import { isReply } from './store-error';

/** For how long keys are gathered before they are announced, in milliseconds. */
const GATHERED_FOR = 100;
/** Most keys that are gathered; further ones are not announced. */
const MAX_GATHERED = 10_000;
/** Most bytes of the keys in a message in JSON: with what is around them, half of what a connection reads at once. */
const MAX_BYTES = 32 * 1024;
/** Most keys of a message: as many of one character fit into it. */
const MAX_KEYS = MAX_BYTES / 4;
/** How soon what the server has rejected is tried again, in milliseconds. */
const REJECTED_FOR = 60_000;

/**
 * Counters that other processes have reduced: their keys as in {@link tableKey}, or all, as some may have been missed.
 */
export type Freed = readonly string[] | 'all';

/**
 * Tells processes that share a store of counters that were reduced, on a channel of Redis (Pub/Sub), so that their
 * local caches forget the keys. What is lost is noticed later, by LOCAL_CACHE_MAX_AGE.
 *
 * A message is a JSON list: a name of the process, and keys.
 */
export class FreedKeys {
  /** What others announce, while it is subscribed to. Never fails, never completes. */
  readonly freed$: Observable<Freed>;
  readonly #store: Store;
  readonly #client: StoreClient;
  readonly #channel: string;
  readonly #name = randomBytes(6).toString('base64');
  readonly #gathered = new Set<string>();
  readonly #rejection: ConditionLog;
  readonly #foreign: ConditionLog;
  readonly #tooMany: ConditionLog;
  /** By `performance.now()`. */
  #rejectedUntil = 0;

  /** @param channel starts with CACHE_KEY_PREFIX, so that others on the server do not use it */
  constructor(store: Store, client: StoreClient, channel: string) {
    this.#store = store;
    this.#client = client;
    this.#channel = channel;
    const fields = { channel };
    this.#rejection = client.conditionLog({
      begins: 'cannot use the channel of reduced counters; local caches notice them after LOCAL_CACHE_MAX_AGE',
      ends: 'the channel of reduced counters can be used again',
      fields,
    });
    this.#foreign = client.conditionLog({
      begins: 'a message on the channel of reduced counters is not one of weir; ignoring such messages',
      fields,
    });
    this.#tooMany = client.conditionLog({
      begins: 'more counters are reduced than announced; local caches notice others after LOCAL_CACHE_MAX_AGE',
      fields: { ...fields, announced: MAX_GATHERED, milliseconds: GATHERED_FOR },
    });
    const { scheduler, retryDelay } = client;
    this.freed$ = store.connected$.pipe(
      filter((isConnected) => isConnected),
      take(1),
      switchMap(() => store.connect()),
      switchMap((connection) => merge(this.#listen(connection), heartbeat(connection, client))),
      retry({ delay: (_, attempt) => timer(retryDelay(attempt), scheduler), resetOnSuccess: true }),
    );
  }

  /** Announces the key of a counter, soon, with others. */
  announce(cacheKey: string): void {
    if (this.#gathered.size >= MAX_GATHERED) return this.#tooMany.occurred();
    this.#gathered.add(tableKey(cacheKey));
    if (this.#gathered.size === 1) this.#client.scheduler.schedule(() => void this.flush(), GATHERED_FOR);
    return undefined;
  }

  /** Announces what is gathered. Never rejects. */
  async flush(): Promise<void> {
    const keys = [...this.#gathered];
    this.#gathered.clear();
    for (const message of messagesOf(this.#name, keys)) {
      if (performance.now() < this.#rejectedUntil) return;
      // A store that is away has every process forget all keys when it is back.
      const reply = await this.#store
        .run(this.#channel, (send) => send('PUBLISH', this.#channel, message))
        .catch(() => undefined);
      if (isReply(reply)) this.#rejected(reply);
    }
  }

  #listen(connection: Connection): Observable<Freed> {
    const messages$ = new Subject<string>();
    const subscribed$ = defer(() => connection.subscribe(this.#channel, (message) => messages$.next(message))).pipe(
      map((): Freed => {
        this.#rejection.ended();
        return 'all';
      }),
      catchError((error: unknown) => {
        if (!isReply(error)) throw error;
        this.#rejected(error);
        return timer(REJECTED_FOR, this.#client.scheduler).pipe(
          map(() => {
            throw error;
          }),
        );
      }),
    );
    return merge(messages$.pipe(mergeMap((message) => this.#read(message))), subscribed$);
  }

  #rejected(error: Error): void {
    this.#rejectedUntil = performance.now() + REJECTED_FOR;
    this.#rejection.because(error.message);
  }

  /** The keys of a message, unless it is of this process or not one of weir. */
  #read(message: string): readonly (readonly string[])[] {
    const list = listOf(message);
    if (list === undefined) this.#foreign.occurred();
    const [name, ...keys] = list ?? [];
    return name === undefined || name === this.#name ? [] : [keys];
  }
}

function heartbeat(connection: Connection, { scheduler }: StoreClient): Observable<never> {
  return interval(HEARTBEAT, scheduler).pipe(
    tap(() => connection.ping(HEARTBEAT)),
    ignoreElements(),
  );
}

/** Messages with these keys, each of bounded size. */
function messagesOf(name: string, keys: readonly string[]): readonly string[] {
  const messages: string[] = [];
  let texts: string[] = [];
  let bytes = 0;
  for (const key of keys) {
    const text = JSON.stringify(key);
    const size = Buffer.byteLength(text) + 1;
    if (bytes + size > MAX_BYTES) {
      messages.push(`[${[JSON.stringify(name), ...texts].join()}]`);
      [texts, bytes] = [[], 0];
    }
    texts.push(text);
    bytes += size;
  }
  if (texts.length > 0) messages.push(`[${[JSON.stringify(name), ...texts].join()}]`);
  return messages;
}

/** Undefined: it is not a list of a name and keys. */
function listOf(message: string): readonly string[] | undefined {
  try {
    const list: unknown = JSON.parse(message);
    return Array.isArray(list) && list.length <= MAX_KEYS + 1 && list.length > 1 && list.every(isKey)
      ? list
      : undefined;
  } catch {
    return undefined;
  }
}

function isKey(value: unknown): value is string {
  return typeof value === 'string' && value.length <= LONGEST_TABLE_KEY;
}
