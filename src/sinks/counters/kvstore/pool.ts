import {
  BehaviorSubject,
  EMPTY,
  type Observable,
  Subject,
  type SchedulerLike,
  Subscription,
  defer,
  finalize,
  interval,
  retry,
  tap,
  timer,
} from 'rxjs';
import { DecisionError, timedOut } from '../../../counting/decision-error';
import type { Counter } from '../../../statistics/counter';
import type { Statistics } from '../../../statistics/statistics';
import { type Backoff, backoff } from '../../../streams/backoff';
import type { ConditionLog } from '../../../log/condition-log';
import { type Deadline, Trip } from '../../../streams/deadline';
import { NOT_SENT, type ServerState } from '../../../streams/server-state';
import { messageOf } from '../../../text/thrown';
import type { Connection } from './connection';
import { isReply, noConnection, replyCode, storeError } from './store-error';

/** How often idle connections are checked with a PING, in milliseconds, and how long the reply may take. */
export const HEARTBEAT = 5000;

/** Doubles from `initial` to `max` milliseconds; each wait is drawn from the upper half. */
export function connectBackoff(initial: number, max: number): Backoff {
  return backoff({ initial, max, jitter: (wait) => [wait / 2, wait] });
}

/** Error codes in reply to a PING of a server that cannot count yet. */
const NOT_READY: ReadonlySet<string> = new Set(['BUSY', 'LOADING', 'MASTERDOWN']);

/** For connections that are lost after start-up. */
export const RECONNECT: Backoff = connectBackoff(50, 1000);

export interface PoolOptions {
  /** Opens a connection: emits when it can be used, fails when it is lost. */
  readonly connect: () => Observable<Connection>;
  readonly size: number;
  /** Whether a window beyond {@link size} has one more connection opened; otherwise it waits for one of the pool. */
  readonly mayExceed: boolean;
  /** KVSTORE_TIMEOUT in milliseconds, 0: no limit. */
  readonly timeout: number;
  /** Called at each failure, because the delays before and after the first connection differ. */
  readonly retryDelay: Backoff;
  readonly scheduler: SchedulerLike;
  readonly statistics: PoolStatistics;
  /** What is known of the server: it learns of connections, and of what answers. */
  readonly state: ServerState;
  /** The log of times without a connection. */
  readonly outage: ConditionLog;
}

/** A window that waits for a connection. */
interface Waiting {
  readonly deadline: Deadline;
  readonly resolve: (connection: Connection) => void;
  readonly reject: (error: DecisionError) => void;
}

/**
 * The connections to one server. Each carries one window at a time and is replaced when it is lost. Windows wait while
 * all connections are busy and fail immediately while none is alive: nothing is queued for an unreachable server.
 */
export class Pool {
  readonly #options: PoolOptions;
  readonly #connected$ = new BehaviorSubject(false);
  readonly #failures$ = new Subject<Error>();
  /** Whether a connection is alive: the present state, then every change. Completes when the pool is closed. */
  readonly connected$ = this.#connected$.asObservable();
  /** Connections that were lost or could not be made. Completes when the pool is closed. */
  readonly failures$ = this.#failures$.asObservable();
  /** Each with what closes it. */
  readonly #alive = new Map<Connection, () => void>();
  readonly #idle: Connection[] = [];
  /** Oldest first. */
  readonly #waiting = new Set<Waiting>();
  readonly #subscription = new Subscription();
  /** Connections that are alive or being opened; more than the size of the pool only while windows need them. */
  #slots = 0;
  /** Windows that use a connection or wait for one. */
  #inFlight = 0;
  /** Called when there are none any more. */
  readonly #onDrained: (() => void)[] = [];
  /** Why no connection is alive; undefined while one is, and before the first attempt has ended. */
  #lastFailure: Error | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#subscription.add(interval(HEARTBEAT, options.scheduler).subscribe(() => this.#checkIdle()));
    // The others follow when this one is connected: only one connection retries while the server is unreachable.
    this.#open();
  }

  get isConnected(): boolean {
    return this.#connected$.value;
  }

  /**
   * Leases a connection to a window, until {@link give} is called; it is cut when the deadline passes. A window that
   * has to wait for one gets a Promise, which rejects with a DecisionError when none can be had.
   */
  take(deadline: Deadline): Connection | Promise<Connection> {
    deadline.mayHaveCounted = false;
    this.#inFlight += 1;
    const connection = this.#takeIdle();
    if (connection === undefined) return this.#wait(deadline);
    deadline.begin(connection);
    return connection;
  }

  /** The window has ended on a connection that it has taken. */
  give(connection: Connection, deadline: Deadline): void {
    deadline.left(connection);
    if (this.#alive.has(connection) && connection.isOpen) this.#offer(connection);
    this.#left();
  }

  /**
   * A window has failed on its connection, which is cut unless the error is an error reply or a DecisionError: its next
   * reply might belong to a command of this window. Returns the error for callers.
   */
  failed(error: unknown, connection: Connection, deadline: Deadline): DecisionError {
    if (error instanceof DecisionError) return error;
    if (!isReply(error)) connection.cut(error as Error);
    return deadline.hasPassed ? timedOut() : storeError(error);
  }

  /** Runs the commands of a window on a connection. Rejects with a DecisionError. */
  async use<T>(deadline: Deadline, run: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.take(deadline);
    try {
      return await run(connection);
    } catch (error) {
      throw this.failed(error, connection, deadline);
    } finally {
      this.give(connection, deadline);
    }
  }

  /** A connection for a command that no window waits for, an idle one if there is one. Windows can use it meanwhile. */
  get anyConnection(): Connection | undefined {
    const [first] = this.#alive.keys();
    return this.#idle.at(-1) ?? first;
  }

  /** As {@link use}, for commands of no window, which end with the time of the store. */
  async run<T>(commands: (connection: Connection) => Promise<T>): Promise<T> {
    const { state } = this.#options;
    if (state.isClosed) throw NOT_SENT;
    const trip = this.#begin();
    try {
      const result = await this.use(trip, commands);
      state.heard();
      return result;
    } finally {
      state.trips.ended(trip);
    }
  }

  /** Sends PING to the server, and reports the answer to its state. */
  probe(): void {
    const { state } = this.#options;
    this.anyConnection?.send('PING').then(
      () => state.checked(),
      (error: unknown) => {
        const code = replyCode(error);
        // A user without permission for this command can still count.
        if (code !== '' && !NOT_READY.has(code)) state.checked();
        else state.checked(messageOf(error), code === '' ? undefined : 'failing');
      },
    );
  }

  /** Closes the pool once the windows in flight have ended; resolves then. */
  drain(): Promise<void> {
    return new Promise((resolve) => {
      this.#onDrained.push(() => resolve(this.close()));
      this.#drained();
    });
  }

  close(): void {
    this.#subscription.unsubscribe();
    for (const connection of this.#alive.keys()) this.#forget(connection);
    this.#lastFailure ??= new Error('the connections are closed');
    this.#failWaiting();
    this.#connected$.complete();
    this.#failures$.complete();
  }

  /** Resolves with a connection; rejects when the deadline passes, or the last connection is lost. */
  #wait(deadline: Deadline): Promise<Connection> {
    const { mayExceed, size } = this.#options;
    return new Promise((resolve, fail) => {
      const reject = (error: DecisionError): void => {
        this.#waiting.delete(waiting);
        fail(error);
        this.#left();
      };
      const waiting = { deadline, resolve, reject };
      if (deadline.hasPassed) return reject(timedOut({ isUncounted: true }));
      this.#waiting.add(waiting);
      if (this.#lastFailure !== undefined) return this.#failWaiting();
      deadline.whileWaiting(() => this.#waiting.has(waiting) && reject(timedOut({ isUncounted: true })));
      // When it cannot be opened, the window waits for another one.
      if (mayExceed && this.#inFlight > size) this.#open();
    });
  }

  #left(): void {
    this.#inFlight -= 1;
    this.#drained();
  }

  #drained(): void {
    if (this.#inFlight === 0) for (const onDrained of this.#onDrained.splice(0)) onDrained();
  }

  #failWaiting(): void {
    for (const { reject } of this.#waiting) reject(noConnection(this.#lastFailure));
  }

  #offer(connection: Connection): void {
    for (const waiting of this.#waiting) {
      const { deadline, resolve, reject } = waiting;
      // Granted while overdue replies are read, the connection would be cut right after the window was sent.
      if (deadline.hasPassed) {
        reject(timedOut({ isUncounted: true }));
        continue;
      }
      this.#waiting.delete(waiting);
      deadline.begin(connection);
      resolve(connection);
      return;
    }
    if (this.#alive.size <= this.#options.size) {
      this.#idle.push(connection);
      return;
    }
    this.#alive.get(connection)?.();
    this.#forget(connection);
  }

  /** The connection used last: its buffers are warm, and a server with little load is served over few connections. */
  #takeIdle(): Connection | undefined {
    let connection = this.#idle.pop();
    // A connection that its peer closes is reported as lost only when its socket has closed.
    while (connection !== undefined && !connection.isOpen) connection = this.#idle.pop();
    return connection;
  }

  /** Opens a connection, again whenever it fails or is lost, unless there are more than the size of the pool. */
  #open(): void {
    const { connect, size, retryDelay, scheduler } = this.#options;
    let own: Connection | undefined;
    this.#slots += 1;
    const opened = defer(connect)
      .pipe(
        tap({
          next: (connection) => this.#opened((own = connection), () => opened.unsubscribe()),
          error: (error: Error) => {
            this.#lost(own, error);
            own = undefined;
          },
        }),
        retry({
          delay: (_, attempt) => (this.#slots > size ? EMPTY : timer(retryDelay(attempt), scheduler)),
          resetOnSuccess: true,
        }),
        finalize(() => (this.#slots -= 1)),
      )
      .subscribe();
    this.#subscription.add(opened);
  }

  #opened(connection: Connection, close: () => void): void {
    const { size, statistics, outage, state } = this.#options;
    this.#alive.set(connection, close);
    statistics.opened();
    this.#lastFailure = undefined;
    outage.ended();
    if (!this.isConnected) this.#connected$.next(true);
    while (this.#slots < size) this.#open();
    this.#offer(connection);
    state.connected(this.#alive.size);
  }

  /** @param connection undefined: it could not be made */
  #lost(connection: Connection | undefined, error: Error): void {
    if (connection !== undefined) this.#forget(connection);
    if (this.#alive.size === 0) {
      this.#lastFailure = error;
      this.#failWaiting();
      this.#options.outage.because(error.message);
      if (this.isConnected) this.#connected$.next(false);
      this.#options.state.connected(0, error.message);
    }
    this.#failures$.next(error);
  }

  #forget(connection: Connection): void {
    if (this.#alive.delete(connection)) this.#options.statistics.closed();
    const index = this.#idle.indexOf(connection);
    if (index >= 0) this.#idle.splice(index, 1);
  }

  /** Cuts idle connections whose peer no longer replies, before a window uses them. */
  #checkIdle(): void {
    const { timeout, state } = this.#options;
    for (const connection of this.#idle) {
      const trip = this.#begin();
      // A connection that a window has leased in the meantime has the deadline of that window.
      const answered = connection.ping(timeout > 0 ? Math.min(timeout, HEARTBEAT) : HEARTBEAT, () =>
        this.#idle.includes(connection),
      );
      void answered.then((hasAnswered) => {
        state.trips.ended(trip);
        if (hasAnswered) state.heard();
      });
    }
  }

  #begin(): Trip {
    const { state } = this.#options;
    const trip = new Trip();
    state.sent();
    state.trips.begin(trip);
    return trip;
  }
}

/** Statistics of the connections of one instance, over all its servers. */
export class PoolStatistics {
  readonly #total: Counter;
  readonly #closed: Counter;
  #active = 0;
  /** Whether a connection was ever opened. */
  hasOpened = false;

  /** @param name `redis_pool` or `redis_per_second_pool` */
  constructor(statistics: Statistics, name: string) {
    this.#total = statistics.counter(`ratelimit.${name}.cx_total`);
    this.#closed = statistics.counter(`ratelimit.${name}.cx_local_close`);
    statistics.gauge(`ratelimit.${name}.cx_active`, () => this.#active);
  }

  opened(): void {
    this.hasOpened = true;
    this.#active += 1;
    this.#total.add(1);
  }

  /** Counts in `cx_local_close` whatever the reason of the close, as the Go service does. */
  closed(): void {
    this.#active -= 1;
    this.#closed.add(1);
  }
}
