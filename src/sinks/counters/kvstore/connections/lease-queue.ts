import type { Observable, Subscription } from 'rxjs';
import type { Connection } from './connection';
import type { Deadline } from './deadline';
import type { PoolStatistics } from './pool-statistics';
import { noConnection, timedOut } from './store-error';

export interface LeaseQueueOptions {
  /** Opens a connection: emits when it can be used, fails when it is lost. */
  readonly connect: () => Observable<Connection>;
  readonly statistics: PoolStatistics;
  /** Called when a window ends without having got a connection. */
  readonly onFailed: () => void;
}

/** The wait of one window for a connection. It is settled once: by a connection, an error or its deadline. */
interface PendingLease {
  readonly deadline: Deadline;
  readonly expire: () => void;
  readonly resolve: (connection: Connection) => void;
  readonly reject: (error: Error) => void;
  isSettled: boolean;
  /** The connection that is opened for this window alone. */
  extraConnection: Subscription | undefined;
}

/** The windows that wait for a connection of a pool, at most until their deadlines, or open an extra one. */
export class LeaseQueue {
  readonly #options: LeaseQueueOptions;
  /** Oldest first; without those that open a connection for themselves. */
  readonly #waiting = new Set<PendingLease>();
  readonly #extraConnections = new Map<Connection, Subscription>();

  constructor(options: LeaseQueueOptions) {
    this.#options = options;
  }

  /**
   * Resolves with a connection; rejects with a DecisionError.
   *
   * @param isExtra whether to open a connection for this window, which is closed after it
   */
  wait(deadline: Deadline, isExtra: boolean): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const lease: PendingLease = {
        deadline,
        expire: () => this.#fail(lease, timedOut()),
        resolve,
        reject,
        isSettled: false,
        extraConnection: undefined,
      };
      deadline.watch(lease.expire);
      if (isExtra) this.#openExtra(lease);
      else this.#waiting.add(lease);
    });
  }

  /** Passes a free connection to the window that has waited longest; false when none waits. */
  offer(connection: Connection): boolean {
    for (const lease of this.#waiting) {
      this.#grant(lease, connection);
      return true;
    }
    return false;
  }

  /** Fails all windows that wait for a connection of the pool. */
  failAll(error: Error): void {
    for (const lease of [...this.#waiting]) this.#fail(lease, error);
  }

  /** Closes a connection that was opened for one window; false when it is another one. */
  closeExtra(connection: Connection): boolean {
    const subscription = this.#extraConnections.get(connection);
    if (subscription === undefined) return false;
    this.#extraConnections.delete(connection);
    subscription.unsubscribe();
    this.#options.statistics.closed();
    return true;
  }

  close(reason: Error): void {
    for (const subscription of this.#extraConnections.values()) subscription.unsubscribe();
    this.failAll(reason);
  }

  #openExtra(lease: PendingLease): void {
    const { connect, statistics } = this.#options;
    lease.extraConnection = connect().subscribe({
      next: (connection) => {
        this.#extraConnections.set(connection, lease.extraConnection as Subscription);
        statistics.opened();
        this.#grant(lease, connection);
      },
      // A connection that is lost while its window uses it fails the window's own command; the lease is settled by then.
      error: (error: Error) => this.#fail(lease, noConnection(error)),
    });
  }

  #grant(lease: PendingLease, connection: Connection): void {
    this.#settle(lease);
    lease.resolve(connection);
  }

  #fail(lease: PendingLease, error: Error): void {
    if (lease.isSettled) return;
    this.#settle(lease);
    lease.extraConnection?.unsubscribe();
    this.#options.onFailed();
    lease.reject(error);
  }

  #settle(lease: PendingLease): void {
    lease.isSettled = true;
    lease.deadline.unwatch(lease.expire);
    this.#waiting.delete(lease);
  }
}
