import { type Observable, Subject, type Subscription, defer, filter, map, merge, switchMap, tap } from 'rxjs';
import type { CounterLane } from '../../../../../streams/ports/counters';
import { type Server, nameOf } from '../../../server-address';
import type { Connection } from '../../connections/connection';
import type { StoreServers } from '../deployment';
import { PooledStore } from '../pooled-store';
import type { SendCommand, Store } from '../store';
import { type StoreContext, openConnection } from '../store-context';
import { masterChanges } from './master-changes';
import { Sentinels } from './sentinels';

/** Counters on the current master, as sentinels report it. */
export class SentinelStore implements Store {
  readonly #context: StoreContext;
  readonly #sentinels: Sentinels;
  readonly #master: PooledStore;
  /** The name of the current master at each report of a sentinel, also when it has not changed. */
  readonly #followed$ = new Subject<string>();
  readonly #subscription: Subscription;

  constructor({ masterName, sentinels }: Extract<StoreServers, { kind: 'sentinel' }>, context: StoreContext) {
    this.#context = context;
    const { tls, instance, sentinelCredentials } = context;
    const { timeout } = instance;
    this.#sentinels = new Sentinels({ masterName, sentinels, credentials: sentinelCredentials, tls, timeout });
    this.#master = new PooledStore(context, {
      name: masterName,
      connect: () => this.#connect(),
      onReadonly: (server) => {
        this.#sentinels.reject(server);
        // When no sentinel knows the master now, the next connection attempt logs it.
        this.#sentinels.master().then(
          (master) => this.#follow(master),
          () => undefined,
        );
      },
    });
    this.#subscription = masterChanges(this.#sentinels, sentinels, context)
      .pipe(tap((master) => this.#follow(master)))
      .subscribe();
  }

  get connected$(): Observable<boolean> {
    return this.#master.connected$;
  }

  get failures$(): Observable<Error> {
    return this.#master.failures$;
  }

  laneOf(): CounterLane {
    return this.#master.laneOf();
  }

  run<T>(key: string, commands: (send: SendCommand) => Promise<T>): Promise<T> {
    return this.#master.run(key, commands);
  }

  close(): void {
    this.#subscription.unsubscribe();
    this.#master.close();
  }

  #connect(): Observable<Connection> {
    return defer(() => this.#sentinels.master()).pipe(
      tap((master) => this.#follow(master)),
      switchMap((master) => merge(this.#open(master), this.#endOf(master))),
    );
  }

  /**
   * Opens a connection. If that fails, another sentinel is queried next: the one that named this server may not know the new master.
   * While other connections to it are open, the failure of one says nothing about the master.
   */
  #open(master: Server): Observable<Connection> {
    let isOpen = false;
    return openConnection(master, this.#context, true).pipe(
      tap({
        next: () => {
          isOpen = true;
          this.#sentinels.prove(nameOf(master));
        },
        error: () => {
          if (!isOpen && !this.#master.isConnected) this.#sentinels.reject(nameOf(master));
        },
      }),
    );
  }

  /**
   * Fails when another server is the master, which cuts the connections to this one, and ends attempts to connect to it: a master
   * that hangs would delay them until their timeout. Emits nothing.
   */
  #endOf(master: Server): Observable<never> {
    return this.#followed$.pipe(
      filter((current) => current !== nameOf(master)),
      map((current) => {
        throw new Error(`the master is now ${current}`);
      }),
    );
  }

  #follow(master: Server): void {
    this.#followed$.next(nameOf(master));
  }
}
