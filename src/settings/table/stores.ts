import { isServer, isSocketPath } from '../values/addresses';
import { atLeast, delay, interval, span, timeout } from '../values/duration';
import { list } from '../values/lists';
import { count, orAuto, positive, wholeNumber } from '../values/numbers';
import { anyText, boolean, choice, credentials, filePath, storeAddress, textLike } from '../values/value-type';
import { anyOf, is, isNot, isSet, matches } from './condition';
import { deprecated, derived, group, noDefault, setting } from './setting';

/** The longest time to live that every store accepts, in seconds. */
const LONGEST_JITTER = 2_147_483_647;
/** What a map of V8 can hold. */
const MOST_KEYS = 2 ** 24;
/** A server has no more ports for the connections of a machine. */
const MOST_CONNECTIONS = 65_535;
const MOST_INSTANCES = 1_000_000;
/** Less would hold too few counters to limit anything, and is probably meant in another unit. In bytes. */
const SMALLEST_MEMORY = 1_048_576;

const IN_TIME = '100 ms for calls whose limits all have another policy than error, otherwise that of the store';
const A_QUARTER = 'a quarter of the memory that the process may use';

const IN_MEMORY = is('BACKEND_TYPE', 'memory');
const SHARED = is('BACKEND_TYPE', 'kvstore', 'plaincache');
const LEASING = isNot('BACKEND_TYPE', 'plaincache');
const EXACT = isNot('STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', 'true');

const backend = choice({ memory: [], kvstore: ['redis'], plaincache: ['memcache'] });

/** Falling back to memory instead of the shared store would let every process grant the full limit. */
const backendDefault = derived(
  'kvstore if KVSTORE_URL is set, plaincache if PLAINCACHE_HOST_PORT or PLAINCACHE_SRV is set, else memory',
  (stateOf) => {
    if (stateOf('KVSTORE_URL').isGiven) return 'kvstore';
    return stateOf('PLAINCACHE_HOST_PORT').isGiven || stateOf('PLAINCACHE_SRV').isGiven ? 'plaincache' : 'memory';
  },
);

const counterSettings = group({
  title: 'Counters',
  settings: [
    setting('BACKEND_TYPE', backend, backendDefault)`
      Where counters are: in this process, in Redis or Valkey (kvstore), or in memcached (plaincache).`,
    setting('MEMORY_MAX_KEYS', wholeNumber({ min: 1, max: MOST_KEYS }), 1_000_000, IN_MEMORY)`
      Maximum number of counters in memory.`,
    setting('MEMORY_MAX_BYTES', wholeNumber({ min: SMALLEST_MEMORY }), noDefault(A_QUARTER), IN_MEMORY)`
      Maximum memory for them, in bytes.`,
    setting('CACHE_KEY_PREFIX', anyText(), '')`Prefix of the keys of counters, in every store.`,
    setting('KVSTORE_PIPELINE_WINDOW', delay, 0)`
      How long hits of concurrent requests are collected into one batch, in every store; below 1ms: one turn of the
      event loop; 0 in memory: not at all.`,
    setting('EXPIRATION_JITTER_MAX_SECONDS', wholeNumber({ min: 0, max: LONGEST_JITTER }), 300, SHARED)`
      Counters expire after their window and a random delay below this.`,
    setting('KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION', boolean, false, SHARED)`
      Unhealthy while there is no connection to the store.`,
    setting('STORE_FAILURE_POLICY', choice({ error: [], allow: [], deny: [], local: [] }), 'error', SHARED)`
      The answer to calls that the store cannot count: an error, OK, OVER_LIMIT, or by counts of this instance. If it is
      not set, counters of memcached count as 0.`,
    setting('STORE_FAILURE_LOCAL_SHARE', orAuto(wholeNumber({ min: 1, max: MOST_INSTANCES })), 1, SHARED)`
      With local: by how many instances what is left of a limit is divided; auto: the most that OPERATOR_PEERS had in
      the last ten minutes.`,
    setting('STORE_FAILURE_RECONCILE', boolean, true, SHARED)`
      Adds the hits that the instance counted meanwhile to the store when it answers again.`,
    setting('STORE_DECISION_TIMEOUT', interval(1), noDefault(IN_TIME), SHARED)`
      How long a call waits for the store before STORE_FAILURE_POLICY answers it.`,
    setting('STORE_BREAKER_FAILURES', count, 5, is('BACKEND_TYPE', 'kvstore'))`
      Failed batches in a row after which calls to their server fail immediately, until a probe succeeds; 0: never.`,
    setting('LEASES', choice({ off: [], rules: [], auto: [] }), 'rules', LEASING, EXACT)`
      Limits whose hits a process may take before they are used: those with lease: true (rules), all but those with
      lease: false (auto), or none. See docs/leases.md.`,
    setting('LOCAL_CACHE_SIZE_IN_BYTES', count, 0)`
      Memory for keys over their limit, which are answered without the store; 0: none.`,
    setting('LOCAL_CACHE_MAX_AGE', span, 60_000, isNot('LOCAL_CACHE_SIZE_IN_BYTES', '0'))`
      Time after which such a key is read from the store again, in whole seconds; 0: when its window ends.`,
    setting('STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', boolean, false)`
      While one key of a request is over its limit, the other keys are not counted.`,
  ],
});

const deployment = choice({ single: [], sentinel: [], cluster: [] });
const socketType = choice({ tcp: [], tcp4: [], tcp6: [], unix: [] });

/**
 * The settings that the main and the per-second instance of the key-value store have: its connections, and what is sent
 * on them.
 */
function instanceSettings<const Prefix extends 'KVSTORE' | 'KVSTORE_PERSECOND'>(prefix: Prefix) {
  const byAddress = derived(`unix if ${prefix}_URL is a path, else tcp`, (stateOf) =>
    isSocketPath(stateOf(`${prefix}_URL`).value ?? '') ? 'unix' : 'tcp',
  );
  const notWaiting = isNot(`${prefix}_POOL_ON_EMPTY_BEHAVIOR`, 'WAIT');
  const connections = [
    setting(`${prefix}_TYPE`, deployment, 'single')`
      One server, servers monitored by Sentinel, or a cluster.`,
    setting(`${prefix}_URL`, storeAddress, undefined)`
      Address of the server; of sentinels and clusters, a list.`,
    setting(`${prefix}_SOCKET_TYPE`, socketType, byAddress, is(`${prefix}_TYPE`, 'single'))`
      Socket type of connections.`,
    setting(`${prefix}_AUTH`, credentials, undefined)`Credentials for the servers; override those in ${prefix}_URL.`,
    setting(`${prefix}_SENTINEL_AUTH`, credentials, undefined, is(`${prefix}_TYPE`, 'sentinel'))`
      Credentials for the sentinels.`,
    setting(`${prefix}_POOL_SIZE`, wholeNumber({ min: 1, max: MOST_CONNECTIONS }), 10)`
      Connections to keep open to each server.`,
    setting(`${prefix}_TIMEOUT`, timeout, 10_000)`Timeout of connecting and of each command batch; 0: none.`,
    setting(`${prefix}_POOL_ON_EMPTY_BEHAVIOR`, choice({ CREATE: [], ERROR: [], WAIT: [] }), 'CREATE')`
      While all connections are busy: open another one, fail the request, or wait.`,
    setting(`${prefix}_POOL_ON_EMPTY_WAIT_DURATION`, delay, 1000, notWaiting)`
      Wait for a free connection before CREATE or ERROR applies.`,
  ] as const;
  const batches = [
    deprecated(setting(`${prefix}_PIPELINE_LIMIT`, count, 0)`Deprecated, has no effect.`),
    setting(`${prefix}_CLUSTER_PIPELINE_PARALLELISM`, count, 1, is(`${prefix}_TYPE`, 'cluster'))`
      Nodes to send to concurrently, at most the pool size; 0: the pool size.`,
    // The files are common to both instances.
    setting(`${prefix}_TLS`, boolean, false)`Connects to the servers with TLS.`,
  ] as const;
  return { connections, batches };
}

/** The instance that holds all counters, or all but those of per-second limits. */
const main = instanceSettings('KVSTORE');
/** The instance that holds the counters of per-second limits. */
const perSecond = instanceSettings('KVSTORE_PERSECOND');

function requestsTls(name: string) {
  return matches(name, /rediss:\/\//i, [`with a rediss:// URL in ${name}`, 'has no rediss:// URL']);
}

/** The files are common to both stores; a URL can request TLS too. */
const STORE_TLS = anyOf('with KVSTORE_TLS=true, KVSTORE_PERSECOND_TLS=true or a rediss:// URL', [
  is('KVSTORE_TLS', 'true'),
  is('KVSTORE_PERSECOND_TLS', 'true'),
  requestsTls('KVSTORE_URL'),
  requestsTls('KVSTORE_PERSECOND_URL'),
]);

const kvstoreSettings = group({
  title: 'Key-value store (Redis or Valkey)',
  note: 'KVSTORE_PIPELINE_WINDOW is listed under Counters.',
  requires: [is('BACKEND_TYPE', 'kvstore')],
  settings: [
    ...main.connections,
    ...main.batches,
    setting('KVSTORE_TLS_CACERT', filePath, undefined, STORE_TLS)`
      CA of the servers, in addition to those of the system; for both stores.`,
    setting('KVSTORE_TLS_CLIENT_CERT', filePath, undefined, STORE_TLS)`
      Client certificate, for both stores.`,
    setting('KVSTORE_TLS_CLIENT_KEY', filePath, undefined, STORE_TLS)`Private key of that certificate.`,
    setting('KVSTORE_TLS_SKIP_HOSTNAME_VERIFICATION', boolean, false, STORE_TLS)`
      Verifies the certificate of a server, but not the host name in it.`,
    setting('KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR', boolean, false)`
      Closes a connection to a read-only replica; for both stores.`,
    setting('KVSTORE_STARTUP_INITIAL_INTERVAL', interval(10), 1000)`
      Delay before the first retry of connecting at startup.`,
    setting('KVSTORE_STARTUP_MAX_INTERVAL', interval(10), 30_000)`
      Longest delay between two attempts to connect at startup.`,
    setting('KVSTORE_STARTUP_MAX_ELAPSED_TIME', timeout, 0)`
      Time after which weir exits if it cannot connect at startup; 0: never.`,
  ],
});

const kvstorePersecondSettings = group({
  title: 'Second key-value store (Redis or Valkey), for per-second limits',
  note: 'The KVSTORE_* settings of TLS files, health and startup apply to both stores.',
  requires: [is('BACKEND_TYPE', 'kvstore'), is('KVSTORE_PERSECOND', 'true')],
  settings: [
    setting('KVSTORE_PERSECOND', boolean, false)`Stores the counters of per-second limits in a second Redis or Valkey.`,
    ...perSecond.connections,
    setting('KVSTORE_PERSECOND_PIPELINE_WINDOW', delay, 0)`As KVSTORE_PIPELINE_WINDOW, for the per-second instance.`,
    ...perSecond.batches,
  ],
});

const servers = list('host:port or socket path', isServer);
const PLAINCACHE_TLS = is('PLAINCACHE_TLS', 'true');

const plaincacheSettings = group({
  title: 'Plain cache (memcached)',
  note: 'Every instance of weir needs the same servers in the same order.',
  requires: [is('BACKEND_TYPE', 'plaincache')],
  settings: [
    setting('PLAINCACHE_HOST_PORT', servers, [])`Servers, over which the keys are distributed.`,
    setting('PLAINCACHE_SRV', textLike(/^_[^.\s]+\._[^.\s]+\.\S+$/, '_service._protocol.name'), undefined)`
      DNS SRV record of the servers, in place of PLAINCACHE_HOST_PORT.`,
    setting('PLAINCACHE_SRV_REFRESH', atLeast(delay, 100), 0, isSet('PLAINCACHE_SRV'))`
      Interval between lookups of that record; 0: only at startup.`,
    setting('PLAINCACHE_MAX_IDLE_CONNS', positive, 2)`
      For compatibility: weir has one connection to each server.`,
    setting('PLAINCACHE_TLS', boolean, false)`Connects to the servers with TLS.`,
    setting('PLAINCACHE_TLS_CACERT', filePath, undefined, PLAINCACHE_TLS)`
      CA of the servers, in addition to those of the system.`,
    setting('PLAINCACHE_TLS_CLIENT_CERT', filePath, undefined, PLAINCACHE_TLS)`Client certificate.`,
    setting('PLAINCACHE_TLS_CLIENT_KEY', filePath, undefined, PLAINCACHE_TLS)`Private key of that certificate.`,
    setting('PLAINCACHE_TLS_SKIP_HOSTNAME_VERIFICATION', boolean, false, PLAINCACHE_TLS)`
      Verifies the certificate of a server, but not the host name in it.`,
  ],
});

export const storeGroups = [counterSettings, kvstoreSettings, kvstorePersecondSettings, plaincacheSettings] as const;
