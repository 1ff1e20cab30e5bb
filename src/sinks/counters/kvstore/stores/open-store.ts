import { type Server, nameOf } from '../connections/address';
import { type StoreContext, openConnection } from './store-context';
import { PooledStore } from './pooled-store';
import type { Store } from './store';
import { filter, take } from 'rxjs';
import { type RetryDelay, RECONNECT, exponentialBackoff } from '../connections/backoff';
import { ClusterStore } from './cluster/cluster-store';
import { type Deployment, readDeployment } from './deployment';
import { Expiry } from '../counting/expiry';
import type { InstanceOptions, KvstoreOptions } from '../connections/options';
import { PoolStatistics } from '../connections/pool-statistics';
import { sentinelStore } from './sentinel/sentinel-store';
import { StateLog } from '../connections/state-log';
import type { TlsMaterial } from '../connections/tls-material';

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
  let backoff: RetryDelay = exponentialBackoff(initialInterval, Math.max(initialInterval, maxInterval));
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

/** Counters on one server. */
export function singleStore(server: Server, context: StoreContext): Store {
  return new PooledStore(context, {
    name: nameOf(server),
    connect: () => openConnection(server, context),
    // The operator named this server and no other.
    onReadonly: () => undefined,
  });
}
