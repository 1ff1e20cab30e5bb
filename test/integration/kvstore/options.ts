import { firstValueFrom } from 'rxjs';
import {
  type InstanceOptions,
  type KvstoreOptions,
  readDeployment,
} from '../../../src/sinks/counters/kvstore/deployment';
import { type KvstoreCounters, kvstoreCounters, openStore } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { type Store, StoreClient } from '../../../src/sinks/counters/kvstore/store-client';
import type { StoreTlsFiles } from '../../../src/sinks/counters/tls-material';
import { turnScheduler } from '../../../src/main/turn-scheduler';
import { Statistics } from '../../../src/statistics/statistics';
import { RecordedLog } from '../../support/data/recorded-log';
import { serverStates } from '../../support/data/server-states';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';

export const NO_TLS_FILES: StoreTlsFiles = {
  ca: undefined,
  cert: undefined,
  key: undefined,
  skipHostnameVerification: false,
};

/** The options of one instance for tests: a small pool, and a timeout that only a store that hangs exceeds. */
export function instance(url: string, more: Partial<InstanceOptions> = {}): InstanceOptions {
  return {
    type: 'single',
    url,
    variables: { url: 'REDIS_URL', socketType: 'REDIS_SOCKET_TYPE' },
    socketType: undefined,
    auth: undefined,
    sentinelAuth: undefined,
    tls: false,
    poolSize: 2,
    timeout: 60_000,
    pipelineWindow: 0,
    poolOnEmptyBehavior: 'CREATE',
    poolOnEmptyWaitDuration: 1000,
    clusterPipelineParallelism: 0,
    ...more,
  };
}

export function options(main: InstanceOptions, more: Partial<KvstoreOptions> = {}): KvstoreOptions {
  const { statistics = new Statistics(100), log = new RecordedLog() } = more;
  return {
    main,
    perSecond: undefined,
    tlsFiles: NO_TLS_FILES,
    startup: { initialInterval: 50, maxInterval: 200, maxElapsedTime: 0 },
    closeConnectionOnReadonlyError: false,
    expirationJitterMaxSeconds: 300,
    dueReservationsKey: 'weir:reservation:due',
    scheduler: turnScheduler,
    ...{ statistics, log, servers: serverStates({ statistics, log }) },
    ...more,
  };
}

const opened: KvstoreCounters[] = [];
// A file that imports this one has its counters closed before its own hooks stop the servers.
afterEach(() => Promise.all(opened.splice(0).map((counters) => counters.close())));

/** Opens counters, which are closed after the test. */
export function openKvstore(main: InstanceOptions, more: Partial<KvstoreOptions> = {}): KvstoreCounters {
  const counters = kvstoreCounters(options(main, more));
  opened.push(counters);
  return counters;
}

/** The same, once they are connected. Rejects when the store gives up. */
export async function connected(main: InstanceOptions, more: Partial<KvstoreOptions> = {}): Promise<KvstoreCounters> {
  const counters = openKvstore(main, more);
  await firstValueFrom(counters.ready$);
  return counters;
}

/** The store below such counters, once it is connected; the caller closes it. */
export async function connectedStore(main: InstanceOptions, more: Partial<KvstoreOptions> = {}): Promise<Store> {
  const deployment = readDeployment(main);
  const parts = { options: main, deployment, store: options(main, more), tls: undefined };
  const store = openStore(new StoreClient({ ...parts, name: 'main', poolName: 'redis_pool' }));
  let isConnected = false;
  store.connected$.subscribe((state) => (isConnected = state));
  await until('it is connected', () => isConnected);
  return store;
}

/** For the start: counters that give up soon when they cannot connect. */
export const GIVE_UP = { initialInterval: 10, maxInterval: 20, maxElapsedTime: 200 };

/** The count of the first call that succeeds: those of the time without a connection fail. */
export function nextCount(counters: KvstoreCounters, key: string): Promise<number> {
  return until('a call succeeds', async () => {
    const [count] = await apply(counters, operation(key, 1)).catch(() => []);
    return typeof count === 'number' && count;
  });
}
