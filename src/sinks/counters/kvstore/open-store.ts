import { filter, take } from 'rxjs';
import { type Backoff, RECONNECT, exponentialBackoff } from './backoff';
import { ClusterStore } from './cluster/cluster-store';
import { type Deployment, readDeployment } from './deployment';
import { Expiry } from './expiry';
import type { InstanceOptions, KvstoreOptions } from './options';
import { PoolStatistics } from './pool-statistics';
import { sentinelStore } from './sentinel/sentinel-store';
import { singleStore } from './single-store';
import { StateLog } from './state-log';
import type { Store } from './store';
import type { StoreContext } from './store-context';
import type { TlsMaterial } from './tls-material';

/** One of the two instances: what the settings say of it, and what it goes by. */
export interface Instance {
  readonly options: InstanceOptions;
  readonly deployment: Deployment;
  /** For log lines. */
  readonly name: string;
  /** Under which its statistics stand. */
  readonly poolName: string;
}

export function mainInstance(options: InstanceOptions): Instance {
  return { options, deployment: readDeployment(options, 'KVSTORE'), name: 'main', poolName: 'redis_pool' };
}

export function perSecondInstance(options: InstanceOptions): Instance {
  return {
    options,
    deployment: readDeployment(options, 'KVSTORE_PERSECOND'),
    name: 'per second',
    poolName: 'redis_per_second_pool',
  };
}

/** Begins to connect to an instance. */
export function openStore(
  { options: instance, deployment, name, poolName }: Instance,
  options: KvstoreOptions,
  windowsInFlight: number,
  tls: TlsMaterial | undefined,
): Store {
  const { log } = options;
  const { initialInterval, maxInterval } = options.startup;
  let backoff: Backoff = exponentialBackoff(initialInterval, Math.max(initialInterval, maxInterval));
  const store = storeAt(deployment, {
    instance,
    credentials: deployment.credentials,
    db: deployment.db,
    tls: deployment.tls ? tls : undefined,
    expiry: new Expiry(options.expirationJitterMaxSeconds),
    closeConnectionOnReadonlyError: options.closeConnectionOnReadonlyError,
    windowsInFlight,
    statistics: new PoolStatistics(options.statistics, poolName),
    backoff: (attempt) => backoff(attempt),
    log,
    needlessPassword: new StateLog(
      log,
      { bad: 'the counter store asks for no password, although one is configured', good: undefined },
      { store: name },
    ),
    name,
  });
  // Once the service runs, callers wait for no start-up interval.
  store.connected$
    .pipe(
      filter((isConnected) => isConnected),
      take(1),
    )
    .subscribe(() => {
      backoff = RECONNECT;
    });
  return store;
}

function storeAt({ place }: Deployment, context: StoreContext): Store {
  if (place.kind === 'single') return singleStore(place.server, context);
  if (place.kind === 'sentinel') return sentinelStore(place, context);
  return new ClusterStore(place.seeds, context);
}
