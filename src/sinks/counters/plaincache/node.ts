import { BehaviorSubject, Observable, Subject, type Subscriber } from 'rxjs';
import { LARGEST_COUNT, type Operation, type Result } from '../../../counting/operation';
import { hitsOnRead } from '../../../counting/read-then-decide';
import { DecisionError } from '../../../counting/decision-error';
import type { Counter } from '../../../statistics/counter';
import type { Statistics } from '../../../statistics/statistics';
import { ConditionLog } from '../../../log/condition-log';
import { BREAKER_OPEN } from '../../../streams/store-faults';
import type { Deadline } from '../../../streams/deadline';
import type { CounterInstance, CounterLane, LanePipeline } from '../../../streams/ports/counters';
import type { Log } from '../../../log/log';
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
import { Connection, type ConnectionContext } from './connection';

/** How often a node that is away is tried, in milliseconds. */
const PROBE_INTERVAL = 250;
/** incr; add for keys that are absent; incr for those that another process has added in the meantime. */
const MAX_ROUNDS = 3;

/** What the nodes of a store have in common. */
export interface NodeContext extends Omit<ConnectionContext, 'server'> {
  /** How long a pipeline window gathers, in milliseconds. */
  readonly span: number;
  /** EXPIRATION_JITTER_MAX_SECONDS */
  readonly jitter: number;
  readonly statistics: PlaincacheStatistics;
  readonly instance: CounterInstance;
  /** Whether counters that a server does not send count as 0; otherwise the batch fails. */
  readonly countsAsZero: boolean;
  readonly log: Log;
  /** Receives the errors of commands that the server rejected, and values that are not numbers. */
  readonly onRejected: (error: Error) => void;
}

/**
 * A memcached server, whose counters are a lane. A batch is read, decided and answered; then its hits are written. The next batch is read
 * when they have been, so that hits of this process are never missed; those that other processes write in between are.
 *
 * While the server does not answer it is tried in the background, so that only the first calls wait for its timeout: the others are
 * answered at once.
 */
export class Node implements CounterLane {
  readonly name: string;
  readonly pipeline: LanePipeline;
  readonly instance: CounterInstance;
  readonly retired$: Observable<unknown>;
  /** Whether the server answers: the present state, then every change. */
  readonly isUp$: Observable<boolean>;
  readonly #context: NodeContext;
  readonly #connection: Connection;
  readonly #away: ConditionLog;
  readonly #isUp$ = new BehaviorSubject(true);
  readonly #retired$ = new Subject<void>();
  /** Settles when the last batch has been written. */
  #idle: Promise<void> = Promise.resolve();
  #probeTimer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @throws Error when the name is not an address */
  constructor(name: string, context: NodeContext) {
    this.name = name;
    // One window at a time: the next one reads what this one has written.
    this.pipeline = { span: context.span, windowsInFlight: 1, whenFull: undefined };
    this.instance = context.instance;
    this.retired$ = this.#retired$.asObservable();
    this.isUp$ = this.#isUp$.asObservable();
    this.#context = context;
    this.#connection = new Connection({ ...context, server: parseServer(name) });
    this.#away = new ConditionLog(context.log, {
      begins: context.countsAsZero
        ? 'a memcached server does not answer; its counters count as 0 and its hits are dropped until it does'
        : 'a memcached server does not answer; its calls are answered by policy until it does',
      ends: 'a memcached server answers again',
      fields: { server: name },
    });
    context.statistics.showAway(name, () => !this.#isClosed && !this.#isUp$.value);
  }

  /**
   * As {@link CounterLane.apply}, but completes only when the hits have been written: until then the batch is in flight. The counts that a
   * node does not send are 0, so that their limits do not apply; the batch does not fail. Nothing is written of a batch that is not waited
   * for any longer.
   */
  apply(batch: readonly Operation[], deadline?: Deadline): Observable<readonly Result[]> {
    return new Observable((subscriber) => {
      if (deadline !== undefined) deadline.hasBegun = false;
      this.#idle = this.#idle
        .then(() => this.#apply(batch, subscriber))
        .catch((error: unknown) => subscriber.error(error));
    });
  }

  /**
   * Runs other commands between two batches. Rejects with a DecisionError: a server that does not answer cannot be administered.
   */
  administer<T>(run: (connection: Connection) => Promise<T>): Promise<T> {
    const done = this.#idle.then(async () => {
      if (!this.#isUp$.value) throw doesNotAnswer();
      try {
        return await run(this.#connection);
      } catch (error) {
        if (error instanceof DecisionError) throw error;
        this.#failed(error);
        throw doesNotAnswer(error);
      }
    });
    this.#idle = done.then(
      () => undefined,
      () => undefined,
    );
    return done;
  }

  /** Finds out whether the server still answers. */
  check(): void {
    if (this.#isUp$.value) this.#probe();
  }

  /** The server has left the store. Resolves when its batches are written and its connection closed. */
  async retire(): Promise<void> {
    this.#retired$.next();
    // The window that was open is written after those in flight.
    for (let idle; idle !== this.#idle;) await (idle = this.#idle);
    this.#isClosed = true;
    clearTimeout(this.#probeTimer);
    this.#isUp$.complete();
    this.#connection.close();
  }

  async #apply(batch: readonly Operation[], subscriber: Subscriber<readonly Result[]>): Promise<void> {
    const wires = batch.map(({ key }) => wireKey(key));
    const stored = await this.#read(new Set(wires));
    if (subscriber.closed) return;
    if (!this.#context.countsAsZero && !this.#isUp$.value) throw doesNotAnswer();
    const { counts, commands } = planBatch(batch, { wires, stored }, this.#context.jitter);
    subscriber.next(counts);
    await this.#write(commands);
    subscriber.complete();
  }

  /**
   * The values of the keys that exist. When the node stops answering, those that have arrived: they are right, so their limits apply,
   * although the hits of the whole batch are dropped.
   */
  async #read(keys: ReadonlySet<WireKey>): Promise<ReadonlyMap<WireKey, StoredValue>> {
    const { statistics, onRejected } = this.#context;
    const values = new Map<WireKey, StoredValue>();
    let code: 'success' | 'error' = 'error';
    if (this.#isUp$.value) {
      try {
        await Promise.all(get(keys, values).map((request) => this.#connection.read(request)));
        code = 'success';
      } catch (error) {
        this.#failed(error);
      }
    }
    statistics.read(code, { requested: keys.size, found: values.size });
    for (const value of values.values()) {
      if (value === undefined) onRejected(new Error('a counter holds a value that is not a number'));
    }
    return values;
  }

  /** Executes commands, in order. Additions create absent keys, subtractions do not. A command whose outcome is unknown is not sent again. */
  async #write(commands: readonly WriteCommand[]): Promise<void> {
    const { statistics, onRejected } = this.#context;
    let remaining = commands;
    for (let round = 0; round < MAX_ROUNDS && remaining.length > 0 && this.#isUp$.value; round += 1) {
      const sent = remaining;
      const outcomes: WriteOutcome[] = [];
      const written = write(sent, outcomes).map((request) => this.#connection.write(request));
      await Promise.all(written).catch((error: unknown) => this.#failed(error));
      sent.forEach((command, index) => statistics.wrote(command, outcomes[index]));
      for (const outcome of outcomes) if (outcome instanceof Error) onRejected(outcome);
      remaining = commandsLeft(sent, outcomes);
    }
    for (const command of remaining) statistics.dropped(command);
  }

  #probe(): void {
    this.#connection.read(VERSION).then(
      () => this.#answered(),
      (error: unknown) => this.#failed(error),
    );
  }

  #answered(): void {
    if (this.#isClosed) return;
    this.#away.ended();
    if (!this.#isUp$.value) this.#isUp$.next(true);
  }

  /** The node has not answered: it is tried until it does. */
  #failed(error: unknown): void {
    if (this.#isClosed) return;
    this.#away.because(messageOf(error));
    if (this.#isUp$.value) this.#isUp$.next(false);
    clearTimeout(this.#probeTimer);
    this.#probeTimer = setTimeout(() => this.#probe(), PROBE_INTERVAL).unref();
  }
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
  commands.forEach((command, index) => {
    const outcome = outcomes[index];
    if (outcome === 'not_stored') left.push({ ...command, kind: 'incr' });
    if (outcome !== 'miss') return;
    if (created.has(command.key)) left.push(command);
    else if (command.kind !== 'decr') {
      created.add(command.key);
      left.push({ ...command, kind: 'add' });
    }
  });
  return left;
}

interface BatchKeys {
  /** The key of each operation. */
  readonly wires: readonly WireKey[];
  /** The values that were read. */
  readonly stored: ReadonlyMap<WireKey, StoredValue>;
}

interface BatchPlan {
  /** The count after each operation. */
  readonly counts: readonly number[];
  /** What changes the counters accordingly, in order. */
  readonly commands: readonly WriteCommand[];
}

/** A key as the operations so far have left it. */
interface KeyState {
  /** Undefined while the key is absent. */
  count: number | undefined;
  /** The last command on the key, if it is an addition: further additions are joined with it. */
  addition: { hits: number } | undefined;
  /** All additions, each of which creates the key when it is absent. */
  readonly additions: { lifetime: number }[];
  /** In seconds, without the random part: the longest of the additions, so that the key outlives each of their windows. */
  longest: number;
}

/**
 * Decides a batch on counts that were read, as if its operations were applied one after the other: the counts after them, and the
 * commands that the server still has to execute. Subtracting creates no key; a counter saturates at 2^53 − 1.
 */
function planBatch(batch: readonly Operation[], { wires, stored }: BatchKeys, jitter: number): BatchPlan {
  const decided = hitsOnRead(
    batch,
    wires.map((wire) => stored.get(wire) ?? 0),
  );
  const keys = new Map<WireKey, KeyState>();
  const commands: WriteCommand[] = [];
  const counts = batch.map(({ limit: { windowSeconds } }, index) => {
    const hits = decided[index]!;
    const wire = wires[index]!;
    const state = keys.get(wire) ?? { count: stored.get(wire), addition: undefined, additions: [], longest: 0 };
    keys.set(wire, state);
    const before = state.count ?? 0;
    if (hits === 0 || (hits < 0 && state.count === undefined)) return before;
    state.count = Math.min(LARGEST_COUNT, Math.max(0, before + hits));
    // Near the largest count, only the hits that fit are added: memcached would count on up to 2^64 and then from 0.
    const added = state.count - before;
    if (hits < 0) {
      commands.push({ kind: 'decr', key: wire, hits: -hits, lifetime: 0 });
      state.addition = undefined;
    } else if (added > 0) {
      if (state.addition === undefined) {
        const { lifetime } = state.additions[0] ?? { lifetime: 0 };
        const addition = { kind: 'incr', key: wire, hits: added, lifetime } as const;
        commands.push((state.addition = addition));
        state.additions.push(addition);
      } else state.addition.hits += added;
      const own = lifetimeOf(windowSeconds);
      if (own > state.longest) {
        state.longest = own;
        const lifetime = own + randomPart(jitter);
        for (const addition of state.additions) addition.lifetime = lifetime;
      }
    }
    return state.count;
  });
  return { counts, commands };
}

/** The statistics of the store, with the names of the Go service, and the hits that it could not count. */
export class PlaincacheStatistics {
  readonly #statistics: Statistics;
  readonly #keysRequested: Counter;
  readonly #keysFound: Counter;
  readonly #droppedHits: Counter;
  /** By command and outcome; the Go service does not count subtractions. */
  readonly #outcomes: ReadonlyMap<string, ReadonlyMap<string, Counter>>;

  constructor(statistics: Statistics) {
    this.#statistics = statistics;
    function counter(name: string): Counter {
      return statistics.counter(`ratelimit.memcache.${name}`);
    }
    function outcomes(name: string, ...codes: readonly string[]): ReadonlyMap<string, Counter> {
      return new Map(codes.map((code) => [code, counter(`${name}.__code=${code}`)]));
    }
    this.#keysRequested = counter('keys_requested');
    this.#keysFound = counter('keys_found');
    this.#droppedHits = counter('dropped_hits');
    this.#outcomes = new Map([
      ['get', outcomes('multiget', 'success', 'error')],
      ['incr', outcomes('increment', 'success', 'miss', 'error')],
      ['add', outcomes('add', 'success', 'not_stored', 'error')],
    ]);
  }

  showAway(server: string, isAway: () => boolean): void {
    this.#statistics.gauge(BREAKER_OPEN, () => Number(isAway()), { server });
  }

  /** @param found the keys whose values have arrived, in a read that failed as well */
  read(code: 'success' | 'error', { requested, found }: { readonly requested: number; readonly found: number }): void {
    this.#keysRequested.add(requested);
    this.#keysFound.add(found);
    this.#outcomes.get('get')?.get(code)?.add(1);
  }

  /** @param outcome undefined: the connection failed before the reply */
  wrote(command: WriteCommand, outcome: WriteOutcome | undefined): void {
    const isError = outcome === undefined || outcome instanceof Error;
    if (isError) this.dropped(command);
    this.#outcomes
      .get(command.kind)
      ?.get(isError ? 'error' : outcome)
      ?.add(1);
  }

  /** Hits that were not sent, or perhaps not counted. */
  dropped({ kind, hits }: WriteCommand): void {
    if (kind !== 'decr') this.#droppedHits.add(hits);
  }
}
