import { BehaviorSubject, type Observable, Subject, type Subscription, defer, retry, tap, timer } from 'rxjs';
import type { RetryDelay } from './backoff';
import type { Connection } from './connection';
import type { Deadline } from './deadline';
import type { PoolOnEmpty } from './options';
import type { PoolStatistics } from './pool-statistics';
import { noConnection, poolEmpty, timedOut } from './store-error';

/** How often connections that nobody uses are asked whether they are still there, in milliseconds. */
const HEARTBEAT = 5000;

export interface PoolOptions {
  /** A new connection: emits when it can be used, fails when it is lost. */
  readonly connect: () => Observable<Connection>;
  readonly size: number;
  readonly onEmpty: PoolOnEmpty;
  /** Milliseconds before {@link onEmpty} acts. */
  readonly onEmptyAfter: number;
  /**
   * How many windows are handed down before those that wait do so above us. A window beyond them has done its waiting
   * already.
   */
  readonly windowsInFlight: number;
  /** 0: no limit. */
  readonly timeout: number;
  /** Asked anew at each failure: the waits differ before and after the first connection. */
  readonly backoff: RetryDelay;
  readonly statistics: PoolStatistics;
}

interface Waiter {
  readonly take: (connection: Connection) => void;
  readonly fail: (error: Error) => void;
}

/**
 * The connections to one server. Each carries one window at a time and, when lost, is made anew by itself; windows that
 * find none free wait, those that find none alive fail at once. Nothing is queued for a server that is away.
 */
export class Pool {
  readonly #options: PoolOptions;
  readonly connected$ = new BehaviorSubject(false);
  /** Attempts and connections that failed. */
  readonly failures$ = new Subject<Error>();
  readonly #open = new Set<Connection>();
  readonly #idle: Connection[] = [];
  readonly #waiting = new Set<Waiter>();
  /** Connections made because the pool was empty, each for one window. */
  readonly #overflow = new Map<Connection, Subscription>();
  readonly #slots: Subscription[] = [];
  readonly #heartbeat: NodeJS.Timeout;
  #underWay = 0;
  #isDraining = false;
  #only: string | undefined;
  #lastFailure: Error | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT);
    this.#heartbeat.unref();
    // The first goes ahead: while the server is away, one connection tries and not all of them.
    this.#openSlot();
  }

  /** Windows that are in the store, or wait to get there. */
  get underWay(): number {
    return this.#underWay;
  }

  /** A connection for one window, to be given back by {@link release}. @throws DecisionError, or rejects with one */
  lease(deadline: Deadline): Connection | Promise<Connection> {
    const connection = this.#takeIdle();
    if (connection === undefined && this.#open.size === 0 && this.#lastFailure !== undefined) {
      throw noConnection(this.#lastFailure);
    }
    this.#underWay += 1;
    return connection ?? this.#wait(deadline);
  }

  release(connection: Connection): void {
    this.#underWay -= 1;
    const overflow = this.#overflow.get(connection);
    if (overflow !== undefined) {
      this.#overflow.delete(connection);
      overflow.unsubscribe();
      this.#options.statistics.closed();
    } else if (this.#open.has(connection) && connection.isOpen) {
      this.#offer(connection);
    }
    if (this.#isDraining && this.#underWay === 0) this.close();
  }

  /** Closes once the windows that are under way have come to an end. */
  drain(): void {
    this.#isDraining = true;
    if (this.#underWay === 0) this.close();
  }

  /** Cuts the connections that do not lead to this server, now and from now on: the one to count on has become another. */
  keepOnly(server: string): void {
    this.#only = server;
    for (const connection of this.#open) {
      if (connection.server !== server) connection.destroy();
    }
  }

  close(): void {
    clearInterval(this.#heartbeat);
    for (const slot of this.#slots) slot.unsubscribe();
    for (const overflow of this.#overflow.values()) overflow.unsubscribe();
    for (const _ of this.#open) this.#options.statistics.closed();
    this.#open.clear();
    this.#failWaiting(noConnection(this.#lastFailure));
    this.connected$.complete();
  }

  #openSlot(): void {
    const slot$ = defer(() => {
      let own: Connection | undefined;
      return this.#options.connect().pipe(
        tap({
          next: (connection) => {
            if (this.#only !== undefined && connection.server !== this.#only) return connection.destroy();
            own = connection;
            this.#gained(connection);
          },
          error: (error: Error) => this.#lost(own, error),
        }),
      );
    });
    this.#slots.push(
      slot$
        .pipe(retry({ delay: (_, attempt) => timer(this.#options.backoff(attempt)), resetOnSuccess: true }))
        .subscribe(),
    );
  }

  #gained(connection: Connection): void {
    this.#open.add(connection);
    this.#options.statistics.opened();
    this.#lastFailure = undefined;
    if (!this.connected$.value) this.connected$.next(true);
    while (this.#slots.length < this.#options.size) this.#openSlot();
    this.#offer(connection);
  }

  #lost(connection: Connection | undefined, error: Error): void {
    if (connection !== undefined) {
      this.#open.delete(connection);
      this.#options.statistics.closed();
      const index = this.#idle.indexOf(connection);
      if (index >= 0) this.#idle.splice(index, 1);
    }
    if (this.#open.size === 0) {
      this.#lastFailure = error;
      this.#failWaiting(noConnection(error));
      if (this.connected$.value) this.connected$.next(false);
    }
    this.failures$.next(error);
  }

  #offer(connection: Connection): void {
    for (const waiter of this.#waiting) {
      waiter.take(connection);
      return;
    }
    this.#idle.push(connection);
  }

  /** The one used last: its buffers are warm, and a server that is little used shows in few connections. */
  #takeIdle(): Connection | undefined {
    let connection = this.#idle.pop();
    // One that closes is not lost yet for as long as its socket takes.
    while (connection !== undefined && !connection.isOpen) connection = this.#idle.pop();
    return connection;
  }

  #wait(deadline: Deadline): Promise<Connection> {
    const { onEmpty, onEmptyAfter, windowsInFlight } = this.#options;
    const hasWaited = this.#underWay > windowsInFlight;
    return new Promise((resolve, reject) => {
      let acting: NodeJS.Timeout | undefined;
      let overflow: Subscription | undefined;
      let isSettled = false;
      const settle = (): void => {
        isSettled = true;
        clearTimeout(acting);
        deadline.forget(expire);
        this.#waiting.delete(waiter);
      };
      const waiter: Waiter = {
        take: (connection) => {
          settle();
          resolve(connection);
        },
        fail: (error) => {
          if (isSettled) return;
          settle();
          overflow?.unsubscribe();
          this.#underWay -= 1;
          reject(error);
        },
      };
      function expire(): void {
        waiter.fail(timedOut());
      }
      const act = (): void => {
        if (onEmpty === 'ERROR') return waiter.fail(poolEmpty());
        this.#waiting.delete(waiter);
        overflow = this.#options.connect().subscribe({
          next: (connection) => {
            this.#overflow.set(connection, overflow as Subscription);
            this.#options.statistics.opened();
            waiter.take(connection);
          },
          // Once it is in use, its window hears from its own command.
          error: (error: Error) => waiter.fail(noConnection(error)),
        });
      };
      this.#waiting.add(waiter);
      deadline.watch(expire);
      if (onEmpty === 'WAIT') return;
      if (hasWaited) act();
      else acting = setTimeout(act, onEmptyAfter);
    });
  }

  #failWaiting(error: Error): void {
    for (const waiter of [...this.#waiting]) waiter.fail(error);
  }

  /** Finds connections whose peer has gone without a word, before a window does. */
  #beat(): void {
    const { timeout } = this.#options;
    const limit = timeout > 0 ? Math.min(timeout, HEARTBEAT) : HEARTBEAT;
    for (const connection of this.#idle) {
      // A window that has taken it meanwhile has its own deadline.
      const patience = setTimeout(() => this.#idle.includes(connection) && connection.destroy(), limit);
      // An error reply is a sign of life too; a lost connection is told by itself.
      function answered(): void {
        clearTimeout(patience);
      }
      connection.send('PING').then(answered, answered);
    }
  }
}
