import {
  type Observable,
  combineLatest,
  defer,
  distinctUntilChanged,
  filter,
  map,
  merge,
  mergeMap,
  take,
  throwError,
} from 'rxjs';
import { GIVEN_BACK } from '../../../statistics/statistics';
import type { CounterAdministration } from '../../../streams/ports/counter-administration';
import type { Counted } from '../../../counting/operation';
import type { Counters } from '../../../streams/ports/counters';
import type { ReservationStore } from '../../../streams/ports/reservations';
import { storeTls } from '../tls-material';
import { counterAdministration } from './administration';
import type { KvstoreOptions } from './deployment';
import { ClusterStore } from './cluster-store';
import { describeDeployment, readDeployment } from './deployment';
import { FreedKeys } from './freed-keys';
import { StoreClient, type Store, isPerSecond } from './store-client';
import { kvstoreReservations } from './reservations';
import { ServerStore } from './server-store';

/** The two instances: their name in log lines, and in statistics. */
const NAMES = [
  { name: 'main', poolName: 'redis_pool' },
  { name: 'per second', poolName: 'redis_per_second_pool' },
] as const;

/** Counters in Redis or Valkey. */
export interface KvstoreCounters extends Counters, CounterAdministration {
  /**
   * Emits once when every instance has been connected to, and completes; fails with an Error for the operator when that
   * takes longer than KVSTORE_STARTUP_MAX_ELAPSED_TIME.
   */
  readonly ready$: Observable<void>;
  readonly reservations: ReservationStore;
  /** Undefined without a local cache. */
  readonly freedKeys: FreedKeys | undefined;
  /** The kind and the addresses of the instances, without credentials, for log lines. */
  readonly description: string;
}

/**
 * Counters in Redis or Valkey: a single server, a master that sentinels monitor, or a cluster; optionally with a second
 * instance for limits per second. Starts to connect immediately.
 *
 * @throws Error that names the setting or the file that cannot be used
 */
export function kvstoreCounters(store: KvstoreOptions): KvstoreCounters {
  const { main, perSecond, startup, tlsFiles, log } = store;
  const read = (perSecond === undefined ? [main] : [main, perSecond]).map((options, index) => ({
    ...(NAMES[index] as (typeof NAMES)[number]),
    options,
    deployment: readDeployment(options),
  }));
  const tls = read.some(({ deployment }) => deployment.tls) ? storeTls(tlsFiles, log) : undefined;
  const instances = read.map((each) => new StoreClient({ ...each, store, tls }));
  const stores = instances.map(openStore);
  const [mainStore, perSecondStore = mainStore] = stores as [Store, Store?];

  const { freedKeysChannel: channel } = store;
  // Limits per second, of the other instance, are in no local cache for longer than that.
  const freedKeys = channel === undefined ? undefined : new FreedKeys(mainStore, instances[0]!, channel);

  function storeOf({ limit }: Pick<Counted, 'limit'>): Store {
    return isPerSecond(limit) ? perSecondStore : mainStore;
  }

  const givenBack = store.statistics.counter(GIVEN_BACK);

  return {
    ...counterAdministration(storeOf, store.expirationJitterMaxSeconds),
    reservations: kvstoreReservations({
      storeOf,
      records: mainStore,
      connected$: mainStore.connected$,
      isCluster: read.some(({ deployment }) => deployment.servers.kind === 'cluster'),
      jitter: store.expirationJitterMaxSeconds,
      ...{ scheduler: store.scheduler, now: store.now, dueKey: store.dueReservationsKey },
      onGivenBack: (members) => givenBack.add(members),
    }),
    freedKeys,
    laneOf: (operation) => storeOf(operation).laneOf(operation),
    connected$: combineLatest(stores.map(({ connected$ }) => connected$)).pipe(
      map((states) => !states.includes(false)),
      distinctUntilChanged(),
    ),
    description: read.map(({ name, deployment }) => `${name}: ${describeDeployment(deployment)}`).join('; '),
    ready$: waitForStores(stores, startup.maxElapsedTime),
    close: async () => {
      await freedKeys?.flush();
      await Promise.all(stores.map((each) => each.close()));
    },
  };
}

/** Starts to connect to an instance. */
export function openStore(client: StoreClient): Store {
  const { servers } = client.deployment;
  return servers.kind === 'cluster' ? new ClusterStore(servers.seeds, client) : new ServerStore(servers, client);
}

/**
 * Emits once when every store has been connected to, and completes. Fails at the first failed attempt after
 * `maxElapsed` milliseconds since subscribing (0: no limit). As in the Go service the limit is checked after failed
 * attempts only, so an attempt that is in progress is not aborted.
 */
function waitForStores(stores: readonly Store[], maxElapsed: number): Observable<void> {
  return defer(() => {
    const start = performance.now();
    const connected$ = combineLatest(
      stores.map(({ connected$: each$ }) =>
        each$.pipe(
          filter((isConnected) => isConnected),
          take(1),
        ),
      ),
    ).pipe(map(() => undefined));
    const timeout$ = merge(...stores.map(({ failures$ }) => failures$)).pipe(
      filter(() => maxElapsed > 0 && performance.now() - start >= maxElapsed),
      mergeMap((cause) =>
        throwError(
          () => new Error(`cannot connect to the counter store within ${maxElapsed} ms: ${cause.message}`, { cause }),
        ),
      ),
    );
    return merge(connected$, timeout$).pipe(take(1));
  });
}
