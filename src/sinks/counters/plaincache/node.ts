import { type Observable, Subject, map } from 'rxjs';
import { DecisionError, timedOut } from '../../../counting/decision-error';
import { LARGEST_COUNT, type Operation, type Result } from '../../../counting/operation';
import { hitsOnRead } from '../../../counting/read-then-decide';
import type { ConditionLog } from '../../../log/condition-log';
import type { Counter } from '../../../statistics/counter';
import type { Statistics } from '../../../statistics/statistics';
import type { Deadline } from '../../../streams/deadline';
import type { CounterInstance, CounterLane, LanePipeline } from '../../../streams/ports/counters';
import { THRESHOLDS, type Trouble } from '../../../streams/server-report';
import type { ServerState } from '../../../streams/server-state';
import type { ServerStates } from '../../../streams/server-views';
import { messageOf } from '../../../text/thrown';
import { lifetimeOf, randomPart } from '../expiry';
import { parseServer } from '../server-address';
import {
  type StoredValue,
  VERSION,
  type WireKey,
  type WriteCommand,
  type WriteOutcome,
  get,
  wireKey,
  write,
} from './commands';
import { Connection, type ConnectionContext, NoAnswer } from './connection';

/** incr; add for keys that are absent; incr for those that another process has added in the meantime. */
const MAX_ROUNDS = 3;

/** What the nodes of a store have in common. */
export interface NodeContext extends Omit<ConnectionContext, 'server'> {
  /** How long a pipeline window gathers, in milliseconds. */
  readonly windowSpan: number;
  /** EXPIRATION_JITTER_MAX_SECONDS */
  readonly expirationJitterMaxSeconds: number;
  /** Whether counters that a server does not send count as 0; otherwise the batch fails. */
  readonly countsAsZero: boolean;
  readonly instance: CounterInstance;
  readonly statistics: PlaincacheStatistics;
  readonly servers: ServerStates;
  /** Milliseconds between checks of a server without requests; undefined: none is made. */
  readonly checkEvery?: number | undefined;
  /** The log of commands that the servers reject, and of values that are not numbers. */
  readonly rejections: ConditionLog;
}

/**
 * A memcached server, whose counters are a lane. A batch is read, decided and answered; then its hits are written. The
 * next batch is read when they have been, so that hits of this process are never missed; those that other processes
 * write in between are.
 *
 * While the server does not answer it is tried in the background, so that only the first calls wait for its timeout:
 * the others are answered at once.
 */
export class Node implements CounterLane {
  readonly name: string;
  readonly pipeline: LanePipeline;
  readonly instance: CounterInstance;
  readonly server: ServerState;
  readonly feedsServer = true;
  readonly retired$: Observable<unknown>;
  /** Whether the server answers: the present state, then every change until it is retired. */
  readonly isUp$: Observable<boolean>;
  readonly #context: NodeContext;
  readonly #connection: Connection;
  readonly #retired$ = new Subject<void>();
  /** Settles when the last batch has been written. */
  #idle: Promise<unknown> = Promise.resolve();

  /** @throws Error when the name is not an address */
  constructor(name: string, context: NodeContext) {
    const { windowSpan: span, countsAsZero, instance, servers, timeoutMs, checkEvery } = context;
    this.name = name;
    // One window at a time: the next one reads what this one has written.
    this.pipeline = { span, windowsInFlight: 1, whenFull: undefined };
    this.instance = instance;
    this.retired$ = this.#retired$;
    this.#context = context;
    this.#connection = new Connection({ ...context, server: parseServer(name) });
    this.server = servers.open({
      ...{ name: { server: name }, failures: 1, checkEvery },
      silence: Math.min(THRESHOLDS.silent, timeoutMs),
      probe: () => this.#probe(),
      lines: {
        begins: countsAsZero
          ? 'a memcached server does not answer; its counters count as 0 and its hits are dropped until it does'
          : 'a memcached server does not answer; its calls are answered by policy until it does',
        ends: 'a memcached server answers again',
        hasReasons: true,
      },
    });
    this.isUp$ = this.server.reports$.pipe(map(({ isHeldBack }) => !isHeldBack));
  }

  /**
   * As {@link CounterLane.apply}: the hits are written after that, in `deadline.writing`. The counts that a node does
   * not send are 0, so that their limits do not apply; the batch does not fail. Nothing is written of a batch that is
   * not waited for any longer.
   */
  apply(batch: readonly Operation[], deadline: Deadline): Promise<readonly Result[]> {
    deadline.mayHaveCounted = false;
    return new Promise((resolve, reject) => {
      deadline.writing = this.#inTurn(() => this.#apply(batch, deadline, resolve));
      deadline.writing.then(undefined, reject);
    });
  }

  /**
   * Runs other commands between two batches. Rejects with a DecisionError: a server that does not answer cannot be
   * administered.
   */
  administer<T>(run: (connection: Connection) => Promise<T>): Promise<T> {
    return this.#inTurn(async () => {
      if (this.server.isClosed) throw doesNotAnswer();
      try {
        return await run(this.#connection);
      } catch (error) {
        if (error instanceof DecisionError) throw error;
        this.#failed(error);
        throw doesNotAnswer(error);
      }
    });
  }

  /** The server has left the store. Resolves when its batches are written and its connection closed. */
  async retire(): Promise<void> {
    this.#retired$.next();
    // The window that was open is written after those in flight.
    for (let idle; idle !== this.#idle;) await (idle = this.#idle);
    this.server.end();
    this.#connection.close();
  }

  /** Runs work when that before it is done. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#idle.then(work);
    this.#idle = done.catch(() => undefined);
    return done;
  }

  async #apply(
    batch: readonly Operation[],
    deadline: Deadline,
    answer: (counts: readonly Result[]) => void,
  ): Promise<void> {
    const keys = batch.map(({ key }) => wireKey(key));
    const stored = await this.#read(new Set(keys));
    if (deadline.hasPassed) throw timedOut({ isUncounted: true });
    const { countsAsZero, expirationJitterMaxSeconds } = this.#context;
    if (!countsAsZero && this.server.isClosed) throw doesNotAnswer();
    const { counts, commands } = planBatch(batch, { keys, stored }, expirationJitterMaxSeconds);
    answer(counts);
    await this.#write(commands);
  }

  /**
   * The values of the keys that exist. When the node stops answering, those that have arrived: they are right, so their
   * limits apply, although the hits of the whole batch are dropped.
   */
  async #read(keys: ReadonlySet<WireKey>): Promise<ReadonlyMap<WireKey, StoredValue>> {
    const { statistics, rejections } = this.#context;
    const values = new Map<WireKey, StoredValue>();
    let code: 'success' | 'error' = 'error';
    if (!this.server.isClosed) {
      const sentAt = performance.now();
      try {
        await this.#connection.send(...get(keys, values));
        code = 'success';
        this.server.ended('ok', { size: 0, milliseconds: performance.now() - sentAt });
      } catch (error) {
        this.server.ended('bad', { size: 0, milliseconds: 0, reason: messageOf(error), trouble: troubleOf(error) });
      }
    }
    statistics.keysRequested.add(keys.size);
    statistics.keysFound.add(values.size);
    statistics.reads[code]?.add(1);
    for (const value of values.values()) {
      if (value === undefined) rejections.because('a counter holds a value that is not a number');
    }
    return values;
  }

  /**
   * Executes commands, in order. Additions create absent keys, subtractions do not. A command whose outcome is unknown
   * is not sent again.
   */
  async #write(commands: readonly WriteCommand[]): Promise<void> {
    const { statistics, rejections } = this.#context;
    let left = commands;
    for (let round = 0; round < MAX_ROUNDS && left.length > 0 && !this.server.isClosed; round += 1) {
      const sent = left;
      const outcomes: WriteOutcome[] = [];
      await this.#connection.send(...write(sent, outcomes)).catch((error: unknown) => this.#failed(error));
      for (const [index, command] of sent.entries()) {
        // Without an outcome, the connection failed before the reply.
        const outcome = outcomes[index] ?? 'error';
        if (outcome instanceof Error) rejections.because(outcome.message);
        const code = outcome instanceof Error ? 'error' : outcome;
        if (code === 'error') this.#drop(command);
        statistics.writes.get(command.kind)?.[code]?.add(1);
      }
      left = commandsLeft(sent, outcomes);
    }
    for (const command of left) this.#drop(command);
  }

  /** Counts the hits of a command that was not sent, or perhaps not counted. */
  #drop({ kind, hits }: WriteCommand): void {
    if (kind !== 'decr') this.#context.statistics.droppedHits.add(hits);
  }

  #probe(): void {
    this.#connection.send(VERSION).then(
      () => this.server.checked(),
      (error: unknown) => this.#failed(error),
    );
  }

  #failed(error: unknown): void {
    this.server.checked(messageOf(error), troubleOf(error));
  }
}

/** What the error of a request shows; undefined: the server has not answered. */
function troubleOf(error: unknown): Trouble | undefined {
  if (error instanceof NoAnswer) return undefined;
  return ['connect', 'getaddrinfo'].includes((error as NodeJS.ErrnoException).syscall ?? '') ? 'away' : 'failing';
}

/** Nothing was written: it did not answer when it was read. */
function doesNotAnswer(cause?: unknown): DecisionError {
  const message = 'the memcached server of the counter does not answer';
  return new DecisionError('store_failed', message, { cause, isUncounted: true });
}

/** The commands that are left, because a key was absent or was not. */
function commandsLeft(commands: readonly WriteCommand[], outcomes: readonly WriteOutcome[]): readonly WriteCommand[] {
  /** Keys that are created in the next round: commands that did not find them have to follow. */
  const created = new Set<WireKey>();
  const left: WriteCommand[] = [];
  for (const [index, command] of commands.entries()) {
    const outcome = outcomes[index];
    if (outcome === 'not_stored') left.push({ ...command, kind: 'incr' });
    if (outcome !== 'miss') continue;
    if (created.has(command.key)) left.push(command);
    else if (command.kind !== 'decr') {
      created.add(command.key);
      left.push({ ...command, kind: 'add' });
    }
  }
  return left;
}

/** A key as the operations so far have left it. */
interface KeyState {
  /** Undefined while the key is absent. */
  count: number | undefined;
  /** What is to be added and subtracted, in order. */
  readonly changes: number[];
  /**
   * In seconds, without the random part: the longest of the additions, so that the key outlives each of their windows.
   */
  lifetime: number;
}

/**
 * Decides a batch on the values that were read, as if its operations were applied one after the other: the counts after
 * them, and the commands that the server still has to execute, those on a key in order. Subtracting creates no key; a
 * counter saturates at 2^53 − 1.
 */
function planBatch(
  batch: readonly Operation[],
  { keys, stored }: { readonly keys: readonly WireKey[]; readonly stored: ReadonlyMap<WireKey, StoredValue> },
  jitter: number,
): { readonly counts: readonly number[]; readonly commands: readonly WriteCommand[] } {
  // Only groups change hits.
  const isGrouped = batch.some(({ group }) => group !== undefined);
  const counted = isGrouped ? keys.map((key) => stored.get(key) ?? 0) : [];
  const decided = isGrouped ? hitsOnRead(batch, counted) : undefined;
  const states = new Map<WireKey, KeyState>();
  const counts = batch.map((operation, index) => {
    const hits = decided?.[index] ?? operation.hits;
    const key = keys[index]!;
    let state = states.get(key);
    if (state === undefined) states.set(key, (state = { count: stored.get(key), changes: [], lifetime: 0 }));
    const before = state.count ?? 0;
    if (hits === 0 || (hits < 0 && state.count === undefined)) return before;
    const count = (state.count = Math.min(LARGEST_COUNT, Math.max(0, before + hits)));
    // Near the largest count, only the hits that fit are added: memcached would count on up to 2^64 and then from 0.
    const change = hits < 0 ? hits : count - before;
    if (change === 0) return count;
    const last = state.changes.at(-1) ?? 0;
    // Additions are joined, but not across a subtraction.
    if (change > 0 && last > 0) state.changes[state.changes.length - 1] = last + change;
    else state.changes.push(change);
    if (change > 0) state.lifetime = Math.max(state.lifetime, lifetimeOf(operation.limit));
    return count;
  });
  const commands: WriteCommand[] = [];
  for (const [key, state] of states) {
    const lifetime = state.lifetime + randomPart(jitter);
    for (const change of state.changes) {
      commands.push({ kind: change < 0 ? 'decr' : 'incr', key, hits: Math.abs(change), lifetime });
    }
  }
  return { counts, commands };
}

/** The statistics of the store, with the names of the Go service, and the hits that it could not count. */
export type PlaincacheStatistics = ReturnType<typeof plaincacheStatistics>;

export function plaincacheStatistics(statistics: Statistics) {
  function counter(name: string): Counter {
    return statistics.counter(`ratelimit.memcache.${name}`);
  }
  function outcomes(name: string, ...codes: readonly string[]): Readonly<Record<string, Counter>> {
    return Object.fromEntries(codes.map((code) => [code, counter(`${name}.__code=${code}`)]));
  }
  return {
    keysRequested: counter('keys_requested'),
    /** In a read that failed: those that have arrived. */
    keysFound: counter('keys_found'),
    /** Hits that were not sent, or perhaps not counted. */
    droppedHits: counter('dropped_hits'),
    reads: outcomes('multiget', 'success', 'error'),
    /** The Go service has no subtractions. */
    writes: new Map([
      ['incr', outcomes('increment', 'success', 'miss', 'error')],
      ['add', outcomes('add', 'success', 'not_stored', 'error')],
    ]),
  };
}
