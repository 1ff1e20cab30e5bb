import { BehaviorSubject, type Observable, Subject, Subscription, defer, retry, tap, timer } from 'rxjs';
import { startReplyTimer } from '../../../../net/reply-timer';
import type { Backoff } from '../../../../streams/backoff';
import { Connection } from './connection';
import type { Deadline } from './deadline';
import { LeaseQueue } from './lease-queue';
import type { PoolStatistics } from './pool-statistics';
import { noConnection, timedOut } from './store-error';

/** How often idle connections are checked with a PING, in milliseconds, and how long the reply may take. */
const HEARTBEAT = 5000;

export interface PoolOptions {
  /** Opens a connection: emits when it can be used, fails when it is lost. */
  readonly connect: () => Observable<Connection>;
  readonly size: number;
  /** Whether a window beyond {@link size} gets an extra connection; otherwise it waits for one of the pool. */
  readonly opensExtra: boolean;
  /** KVSTORE_TIMEOUT in milliseconds, 0: no limit. */
  readonly timeout: number;
  /** Called at each failure, because the delays before and after the first connection differ. */
  readonly retryDelay: Backoff;
  readonly statistics: PoolStatistics;
}

/**
 * The connections to one server. Each carries one window at a time and is replaced when it is lost. Windows wait while all
 * connections are busy and fail immediately while none is alive: nothing is queued for an unreachable server.
 */
export class Pool {
  readonly #options: PoolOptions;
  readonly #connected$ = new BehaviorSubject(false);
  readonly #failures$ = new Subject<Error>();
  /** Whether a connection is alive: the present state, then every change. Completes when the pool is closed. */
  readonly connected$ = this.#connected$.asObservable();
  /** Connections that were lost or could not be made. Completes when the pool is closed. */
  readonly failures$ = this.#failures$.asObservable();
  readonly #alive = new Set<Connection>();
  readonly #idle: Connection[] = [];
  readonly #queue: LeaseQueue;
  readonly #subscription = new Subscription();
  /** Connections that are kept open, alive or not; at most the size of the pool. */
  #kept = 0;
  readonly #heartbeat: NodeJS.Timeout;
  #inFlight = 0;
  #isDraining = false;
  #lastFailure: Error | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#queue = new LeaseQueue({ ...options, onFailed: () => this.#windowEnded() });
    this.#heartbeat = setInterval(() => this.#checkIdle(), HEARTBEAT);
    this.#heartbeat.unref();
    // The others follow when this one is connected: only one connection retries while the server is unreachable.
    this.#keepOneOpen();
  }

  get isConnected(): boolean {
    return this.#connected$.value;
  }

  /** Windows that use a connection or wait for one. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /**
   * Runs the commands of a window on a connection that no other window uses meanwhile.
   *
   * The connection is cut when the deadline passes, and when `run` rejects: its next reply might belong to a command of this
   * window. Rejects with what `run` rejects with, or with a DecisionError when no connection could be had.
   */
  async use<T>(deadline: Deadline, run: (connection: Connection) => Promise<T>): Promise<T> {
    const lease = this.#lease(deadline);
    const connection = lease instanceof Connection ? lease : await lease;
    if (deadline.hasPassed) {
      // It was granted while overdue replies were read: it would be cut right after the window was sent.
      this.#release(connection);
      throw timedOut();
    }
    function cut(): void {
      connection.destroy();
    }
    deadline.watch(cut);
    try {
      return await run(connection);
    } catch (error) {
      cut();
      throw error;
    } finally {
      deadline.unwatch(cut);
      this.#release(connection);
    }
  }

  /** Closes the pool once the windows in flight have ended. */
  drain(): void {
    this.#isDraining = true;
    if (this.#inFlight === 0) this.close();
  }

  close(): void {
    clearInterval(this.#heartbeat);
    this.#subscription.unsubscribe();
    for (const _ of this.#alive) this.#options.statistics.closed();
    this.#alive.clear();
    this.#queue.close(noConnection(this.#lastFailure));
    this.#connected$.complete();
    this.#failures$.complete();
  }

  /** @throws DecisionError when no connection is alive */
  #lease(deadline: Deadline): Connection | Promise<Connection> {
    const { size, opensExtra } = this.#options;
    const connection = this.#takeIdle();
    if (connection === undefined && this.#alive.size === 0 && this.#lastFailure !== undefined) {
      throw noConnection(this.#lastFailure);
    }
    this.#inFlight += 1;
    return connection ?? this.#queue.wait(deadline, opensExtra && this.#inFlight > size);
  }

  #release(connection: Connection): void {
    const wasExtra = this.#queue.closeExtra(connection);
    if (!wasExtra && this.#alive.has(connection) && connection.isOpen) this.#offer(connection);
    this.#windowEnded();
  }

  #windowEnded(): void {
    this.#inFlight -= 1;
    if (this.#isDraining && this.#inFlight === 0) this.close();
  }

  #offer(connection: Connection): void {
    if (!this.#queue.offer(connection)) this.#idle.push(connection);
  }

  /** The connection used last: its buffers are warm, and a server with little load is served over few connections. */
  #takeIdle(): Connection | undefined {
    let connection = this.#idle.pop();
    // A connection that is closing is reported as lost only when its socket has closed.
    while (connection !== undefined && !connection.isOpen) connection = this.#idle.pop();
    return connection;
  }

  #keepOneOpen(): void {
    this.#kept += 1;
    const connection$ = defer(() => {
      let own: Connection | undefined;
      return this.#options.connect().pipe(
        tap({
          next: (connection) => {
            own = connection;
            this.#connected(connection);
          },
          error: (error: Error) => this.#lost(own, error),
        }),
      );
    });
    const delay = (_: unknown, attempt: number) => timer(this.#options.retryDelay(attempt));
    this.#subscription.add(connection$.pipe(retry({ delay, resetOnSuccess: true })).subscribe());
  }

  #connected(connection: Connection): void {
    this.#alive.add(connection);
    this.#options.statistics.opened();
    this.#lastFailure = undefined;
    if (!this.isConnected) this.#connected$.next(true);
    while (this.#kept < this.#options.size) this.#keepOneOpen();
    this.#offer(connection);
  }

  /** @param connection undefined: it could not be made */
  #lost(connection: Connection | undefined, error: Error): void {
    if (connection !== undefined) {
      this.#alive.delete(connection);
      this.#options.statistics.closed();
      const index = this.#idle.indexOf(connection);
      if (index >= 0) this.#idle.splice(index, 1);
    }
    if (this.#alive.size === 0) {
      this.#lastFailure = error;
      this.#queue.failAll(noConnection(error));
      if (this.isConnected) this.#connected$.next(false);
    }
    this.#failures$.next(error);
  }

  /** Cuts idle connections whose peer no longer replies, before a window uses them. */
  #checkIdle(): void {
    const { timeout } = this.#options;
    const limit = timeout > 0 ? Math.min(timeout, HEARTBEAT) : HEARTBEAT;
    for (const connection of this.#idle) {
      // A connection that a window has leased in the meantime has the deadline of that window.
      const stopTimer = startReplyTimer(limit, () => this.#idle.includes(connection) && connection.destroy());
      // An error reply is a sign of life too, and a lost connection reports itself.
      connection.send('PING').then(stopTimer, stopTimer);
    }
  }
}
