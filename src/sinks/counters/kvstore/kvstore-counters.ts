import { Observable, combineLatest, distinctUntilChanged, map } from 'rxjs';
import type { Count, CounterOperation } from '../../../limiter/counter-operation';
import type { WhenFull } from '../../../streams/decisions';
import type { Counters } from '../../../streams/ports/counters';
import type { InstanceOptions, KvstoreOptions } from './connections/options';
import { storeError } from './connections/store-error';
import { TlsMaterial } from './connections/tls-material';
import { openStore, readInstance } from './stores/open-store';
import { splitByInstance } from './stores/split-by-instance';
import type { Store } from './stores/store';
import { waitForStore } from './stores/wait-for-store';

/** Counters in Redis or Valkey, and the limits that the decision path has to observe. */
export interface KvstoreCounters extends Counters {
  /**
   * Emits once when every instance has been connected to, and completes; fails with an Error for the operator when that takes
   * longer than KVSTORE_STARTUP_MAX_ELAPSED_TIME.
   */
  readonly ready$: Observable<void>;
  /** How many windows the pipeline may have in flight. */
  readonly windowsInFlight: number;
  /** What the pipeline does with windows beyond that (KVSTORE_POOL_ON_EMPTY_BEHAVIOR); undefined: they wait. */
  readonly whenFull: WhenFull | undefined;
}

/**
 * Counters in Redis or Valkey: a single server, a master that sentinels monitor, or a cluster; optionally with a second
 * instance for limits per second. Starts to connect immediately.
 *
 * @throws Error that names the setting or the file that cannot be used
 */
export function kvstoreCounters(options: KvstoreOptions): KvstoreCounters {
  const { main, perSecond, startup, tlsFiles, log } = options;
  const windowsInFlight = Math.max(main.poolSize, perSecond?.poolSize ?? 0);
  const instances = [
    readInstance(main, 'main'),
    ...(perSecond === undefined ? [] : [readInstance(perSecond, 'perSecond')]),
  ];
  const tls = instances.some(({ deployment }) => deployment.tls) ? new TlsMaterial(tlsFiles, log) : undefined;
  const stores = instances.map((instance) => openStore(instance, { options, windowsInFlight, tls }));
  const [mainStore, perSecondStore] = stores as [Store, Store?];
  const inFlight = new Set<Promise<void>>();

  function count(batch: readonly CounterOperation[]): Promise<readonly Count[]> {
    if (perSecondStore === undefined) return mainStore.apply(batch);
    return splitByInstance(batch, { main: mainStore, perSecond: perSecondStore });
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
        const done = count(batch).then(
          (counts) => {
            inFlight.delete(done);
            subscriber.next(counts);
            subscriber.complete();
          },
          (error: unknown) => {
            inFlight.delete(done);
            subscriber.error(storeError(error));
          },
        );
        inFlight.add(done);
      }),
    close: async () => {
      await Promise.all(inFlight);
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
