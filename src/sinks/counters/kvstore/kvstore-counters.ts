import { Observable, combineLatest, distinctUntilChanged, map } from 'rxjs';
import type { Count, CounterOperation } from '../../../limiter/counter-operation';
import type { Counters } from '../../../streams/ports/counters';
import type { WhenFull } from '../../../streams/decisions';
import { splitByInstance } from './stores/split-by-instance';
import { mainInstance, openStore, perSecondInstance } from './stores/open-store';
import type { InstanceOptions, KvstoreOptions } from './connections/options';
import type { Store } from './stores/store';
import { storeError } from './connections/store-error';
import { TlsMaterial } from './connections/tls-material';
import { waitForStore } from './stores/wait-for-store';

/** Counters in a key-value store, and what the decision path has to know of its pools. */
export interface KvstoreCounters extends Counters {
  /**
   * Emits once when every instance has been reached, and completes; fails with an Error for the operator when that takes
   * longer than KVSTORE_STARTUP_MAX_ELAPSED_TIME.
   */
  readonly ready$: Observable<void>;
  /** How many windows can be under way at once: what the pipeline is to be given. */
  readonly windowsInFlight: number;
  /** What the pipeline is to do with those beyond: KVSTORE_POOL_ON_EMPTY_BEHAVIOR; undefined: let them wait. */
  readonly whenFull: WhenFull | undefined;
}

/**
 * Counters in Redis or Valkey: a single server, a master that sentinels watch, or a cluster, and a second one of these for
 * limits per second when there is one. Begins to connect at once.
 *
 * @throws Error naming the setting or the file that cannot be used
 */
export function kvstoreCounters(options: KvstoreOptions): KvstoreCounters {
  const { main, perSecond, startup, tlsFiles, log } = options;
  const windowsInFlight = Math.max(main.poolSize, perSecond?.poolSize ?? 0);
  const instances = [mainInstance(main), ...(perSecond === undefined ? [] : [perSecondInstance(perSecond)])];
  const tls = instances.some(({ deployment }) => deployment.tls) ? new TlsMaterial(tlsFiles, log) : undefined;
  const stores = instances.map((instance) => openStore(instance, options, windowsInFlight, tls));
  const [mainStore, perSecondStore] = stores as [Store, Store?];
  const underWay = new Set<Promise<void>>();

  function count(batch: readonly CounterOperation[]): Promise<readonly Count[]> {
    return perSecondStore === undefined ? mainStore.run(batch) : splitByInstance(batch, mainStore, perSecondStore);
  }

  return {
    windowsInFlight,
    whenFull: whenFull(main),
    connected$: combineLatest(stores.map(({ connected$ }) => connected$)).pipe(
      map((states) => !states.includes(false)),
      distinctUntilChanged(),
    ),
    ready$: waitForStore(stores, startup.maxElapsedTime),
    apply: (batch) =>
      new Observable((subscriber) => {
        const answered = count(batch).then(
          (counts) => {
            underWay.delete(answered);
            subscriber.next(counts);
            subscriber.complete();
          },
          (error: unknown) => {
            underWay.delete(answered);
            subscriber.error(storeError(error));
          },
        );
        underWay.add(answered);
      }),
    close: async () => {
      await Promise.all(underWay);
      for (const store of stores) store.close();
    },
  };
}

function whenFull({
  poolOnEmptyBehavior: behavior,
  poolOnEmptyWaitDuration: after,
}: InstanceOptions): WhenFull | undefined {
  if (behavior === 'WAIT') return undefined;
  return { behavior: behavior === 'CREATE' ? 'exceed' : 'fail', after };
}
