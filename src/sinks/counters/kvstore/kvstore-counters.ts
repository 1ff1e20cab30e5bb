import { type Observable, combineLatest, distinctUntilChanged, map } from 'rxjs';
import type { CounterAdministration } from '../../../streams/ports/counter-administration';
import type { Counters } from '../../../streams/ports/counters';
import { Expiry } from '../expiry';
import { counterAdministration } from './administration/administer-counters';
import type { KvstoreOptions } from './connections/options';
import { TlsMaterial } from '../tls-material';
import { describeDeployment } from './stores/deployment';
import { openStore, readInstance } from './stores/open-store';
import type { Store } from './stores/store';
import type { BatchesInFlight } from './stores/store-lane';
import { waitForStore } from './stores/wait-for-store';

/** Limits with this window length in seconds are counted on the per-second instance. */
const PER_SECOND = 1;

/** Counters in Redis or Valkey. */
export interface KvstoreCounters extends Counters, CounterAdministration {
  /**
   * Emits once when every instance has been connected to, and completes; fails with an Error for the operator when that takes
   * longer than KVSTORE_STARTUP_MAX_ELAPSED_TIME.
   */
  readonly ready$: Observable<void>;
  /** The kind and the addresses of the instances, without credentials, for log lines. */
  readonly description: string;
}

/**
 * Counters in Redis or Valkey: a single server, a master that sentinels monitor, or a cluster; optionally with a second
 * instance for limits per second. Starts to connect immediately.
 *
 * @throws Error that names the setting or the file that cannot be used
 */
export function kvstoreCounters(options: KvstoreOptions): KvstoreCounters {
  const { main, perSecond, startup, tlsFiles, log } = options;
  const instances = [
    readInstance(main, 'main'),
    ...(perSecond === undefined ? [] : [readInstance(perSecond, 'perSecond')]),
  ];
  const tls = instances.some(({ deployment }) => deployment.tls) ? new TlsMaterial(tlsFiles, log) : undefined;
  const inFlight: BatchesInFlight = new Set();
  const stores = instances.map((instance) => openStore(instance, { options, tls, inFlight }));
  const [mainStore, perSecondStore = mainStore] = stores as [Store, Store?];

  function storeOf({ windowSeconds }: { readonly windowSeconds: number }): Store {
    return windowSeconds === PER_SECOND ? perSecondStore : mainStore;
  }

  return {
    ...counterAdministration(storeOf, new Expiry(options.expirationJitterMaxSeconds)),
    laneOf: (operation) => storeOf(operation).laneOf(operation),
    connected$: combineLatest(stores.map(({ connected$ }) => connected$)).pipe(
      map((states) => !states.includes(false)),
      distinctUntilChanged(),
    ),
    description: instances.map(({ name, deployment }) => `${name}: ${describeDeployment(deployment)}`).join('; '),
    ready$: waitForStore(stores, startup.maxElapsedTime),
    close: async () => {
      await Promise.all(inFlight);
      for (const store of stores) store.close();
    },
  };
}
