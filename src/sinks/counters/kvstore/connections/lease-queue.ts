import type { Observable, Subscription } from 'rxjs';
import type { Connection } from './connection';
import type { Deadline } from './deadline';
import type { PoolOnEmpty } from './options';
import type { PoolStatistics } from './pool-statistics';
import { noConnection, poolEmpty, timedOut } from './store-error';

export interface LeaseQueueOptions {
  /** Opens a connection: emits when it can be used, fails when it is lost. */
  readonly connect: () => Observable<Connection>;
  readonly onEmpty: PoolOnEmpty;
  /** Milliseconds that a window waits before {@link onEmpty} applies. */
  readonly onEmptyAfter: number;
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
  /** Runs until {@link LeaseQueueOptions.onEmpty} applies. */
  onEmptyTimer: NodeJS.Timeout | undefined;
  /** The connection that is opened for this window alone. */
  extraConnection: Subscription | undefined;
}

/**
 * The windows that wait for a connection of a pool, and what happens to those that wait long
 * (KVSTORE_POOL_ON_EMPTY_BEHAVIOR):
 *
 * - WAIT: they keep waiting, at most until their deadline.
 * - ERROR: they fail with `store_pool_empty`.
 * - CREATE: each opens a connection for itself, which is closed after the window.
 */
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
   * @param hasWaited the window has waited long enough before it came here: {@link LeaseQueueOptions.onEmpty} applies
   * immediately
   */
  wait(deadline: Deadline, hasWaited: boolean): Promise<Connection> {
    const { onEmpty, onEmptyAfter } = this.#options;
    return new Promise((resolve, reject) => {
      const lease: PendingLease = {
        deadline,
        expire: () => this.#fail(lease, timedOut()),
        resolve,
        reject,
        isSettled: false,
        onEmptyTimer: undefined,
        extraConnection: undefined,
      };
      this.#waiting.add(lease);
      deadline.watch(lease.expire);
      if (onEmpty === 'WAIT') return;
      if (hasWaited) this.#applyOnEmpty(lease);
      else lease.onEmptyTimer = setTimeout(() => this.#applyOnEmpty(lease), onEmptyAfter);
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

  #applyOnEmpty(lease: PendingLease): void {
    const { onEmpty, connect, statistics } = this.#options;
    if (onEmpty === 'ERROR') return this.#fail(lease, poolEmpty());
    this.#waiting.delete(lease);
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
    clearTimeout(lease.onEmptyTimer);
    lease.deadline.unwatch(lease.expire);
    this.#waiting.delete(lease);
  }
}
