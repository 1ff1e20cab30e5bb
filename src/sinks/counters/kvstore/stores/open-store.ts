import { type Server, nameOf } from '../../server-address';
import type { InstanceOptions, KvstoreOptions } from '../connections/options';
import { PoolStatistics } from '../connections/pool-statistics';
import { StartupDelay, connectBackoff } from '../connections/retry-delay';
import { ConditionLog } from '../../../../streams/condition-log';
import type { TlsMaterial } from '../../tls-material';
import { Expiry } from '../../expiry';
import { KnownExpiries } from '../counting/known-expiries';
import { ClusterStore } from './cluster/cluster-store';
import { type Deployment, currentDeployment, readDeployment, sentinelCredentials } from './deployment';
import { PooledStore } from './pooled-store';
import { SentinelStore } from './sentinel/sentinel-store';
import type { Store } from './store';
import type { BatchesInFlight } from './store-lane';
import { type StoreContext, openConnection } from './store-context';

/** The two instances: their name in log lines, and in statistics. */
const INSTANCES = {
  main: { name: 'main', poolName: 'redis_pool' },
  perSecond: { name: 'per second', poolName: 'redis_per_second_pool' },
} as const;

/** One of the two instances, its settings read. */
export interface Instance {
  readonly options: InstanceOptions;
  readonly deployment: Deployment;
  readonly name: string;
  readonly poolName: string;
}

/** @throws Error that names the setting that cannot be used */
export function readInstance(options: InstanceOptions, instance: keyof typeof INSTANCES): Instance {
  return { options, deployment: readDeployment(options), ...INSTANCES[instance] };
}

/** What the stores of both instances share. */
export interface SharedOptions {
  readonly options: KvstoreOptions;
  /** Undefined when no instance uses TLS. */
  readonly tls: TlsMaterial | undefined;
  readonly inFlight: BatchesInFlight;
}

/** Starts to connect to an instance. */
export function openStore(instance: Instance, { options, tls, inFlight }: SharedOptions): Store {
  const { deployment, name, poolName } = instance;
  const { log, startup } = options;
  const { initialInterval, maxInterval } = startup;
  const current = currentDeployment(instance.options, deployment);
  return storeAt(deployment, {
    instance: instance.options,
    credentials: () => current().credentials,
    sentinelCredentials: () => sentinelCredentials(current()),
    db: deployment.db,
    tls: deployment.tls ? tls : undefined,
    expiry: new Expiry(options.expirationJitterMaxSeconds),
    knownExpiries: new KnownExpiries(),
    closeConnectionOnReadonlyError: options.closeConnectionOnReadonlyError,
    inFlight,
    statistics: new PoolStatistics(options.statistics, poolName),
    startupDelay: new StartupDelay(connectBackoff(initialInterval, Math.max(initialInterval, maxInterval))),
    log,
    unusedPasswordLog: new ConditionLog(log, {
      begins: 'the counter store requires no password, but one is configured; continuing without authentication',
      fields: { store: name },
    }),
    name,
  });
}

function storeAt({ servers }: Deployment, context: StoreContext): Store {
  if (servers.kind === 'single') return singleStore(servers.server, context);
  if (servers.kind === 'sentinel') return new SentinelStore(servers, context);
  return new ClusterStore(servers.seeds, context);
}

/** Counters on one server. */
function singleStore(server: Server, context: StoreContext): Store {
  return new PooledStore(context, {
    name: nameOf(server),
    connect: () => openConnection(server, context),
    // No other server is configured to connect to.
    onReadonly: () => undefined,
  });
}
