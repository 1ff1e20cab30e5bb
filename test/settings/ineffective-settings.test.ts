import { readSettings } from '../../src/settings/read-settings';
import { settingRows } from '../support/data/secret-settings';
import { env, problemsOf, rowOf, twoTexts } from './environments';

type Case = readonly [names: string, without: string, because: string, withEffect: string];

const TLS = 'GRPC_SERVER_USE_TLS=true GRPC_SERVER_TLS_CERT=/c GRPC_SERVER_TLS_KEY=/k';
const STORE = 'KVSTORE_URL=a:1';
const STORES = `${STORE} KVSTORE_PERSECOND=true KVSTORE_PERSECOND_URL=b:1`;
const STORES_TLS = `${STORES} KVSTORE_PERSECOND_TLS=true KVSTORE_TLS_CLIENT_CERT=/c KVSTORE_TLS_CLIENT_KEY=/k`;
const XDS = 'CONFIG_TYPE=GRPC_XDS_SOTW';
const XDS_PAIR = 'CONFIG_GRPC_XDS_CLIENT_TLS_CERT=/c CONFIG_GRPC_XDS_CLIENT_TLS_KEY=/k';
const XDS_TLS = `${XDS} CONFIG_GRPC_XDS_SERVER_USE_TLS=true ${XDS_PAIR}`;
const MEMCACHED = 'PLAINCACHE_HOST_PORT=a:1';
const MEMCACHED_TLS = `${MEMCACHED} PLAINCACHE_TLS=true PLAINCACHE_TLS_CLIENT_CERT=/c PLAINCACHE_TLS_CLIENT_KEY=/k`;
const MOGRIFIERS = ['FALSE', 'TRUE'].flatMap((name) =>
  ['PATTERN', 'NAME'].map((part) => `TAGGEDSTATS_MOGRIFIER_${name}_${part}=x`),
);
const NOT_TLS = 'it applies only with KVSTORE_TLS=true, KVSTORE_PERSECOND_TLS=true or a rediss:// URL';

/** Names of settings with a common beginning. */
function names(prefix: string, ...suffixes: readonly string[]): string {
  return suffixes.map((suffix) => prefix + suffix).join(' ');
}

/** The settings of one of the two key-value stores whose effect depends on its type and its pool. */
function storeCases(name: string, used: string): readonly Case[] {
  const sentinel = `${used.replace(`${name}_URL=`, `${name}_URL=main,`)} ${name}_TYPE=sentinel`;
  const waiting = `${used} ${name}_POOL_ON_EMPTY_BEHAVIOR=WAIT`;
  const parallel = `${name}_CLUSTER_PIPELINE_PARALLELISM`;
  return [
    [`${name}_SENTINEL_AUTH`, used, `${name}_TYPE is single by default`, sentinel],
    [`${name}_SOCKET_TYPE`, sentinel, `${name}_TYPE is sentinel`, used],
    [parallel, `${used} ${name}_TYPE=single`, `${name}_TYPE is single`, `${used} ${name}_TYPE=cluster`],
    [`${name}_POOL_ON_EMPTY_WAIT_DURATION`, waiting, `${name}_POOL_ON_EMPTY_BEHAVIOR is WAIT`, used],
  ];
}

const RUNTIME = names('RUNTIME_', 'ROOT', 'SUBDIRECTORY', 'APPDIRECTORY', 'IGNOREDOTFILES', 'WATCH_ROOT');
const XDS_SERVER = names('CONFIG_GRPC_XDS_SERVER_', 'URL', 'CONNECT_RETRY_INTERVAL', 'USE_TLS');
const XDS_NODE = names('CONFIG_GRPC_XDS_', 'NODE_ID', 'NODE_METADATA', 'CLIENT_ADDITIONAL_HEADERS');
const XDS_BACKOFF = names('XDS_CLIENT_BACKOFF_', 'INITIAL_INTERVAL', 'MAX_INTERVAL', 'RANDOM_FACTOR', 'JITTER');
const XDS_FILES = names('CONFIG_GRPC_XDS_', 'SERVER_TLS_CACERT', 'SERVER_TLS_SAN', 'CLIENT_TLS_CERT', 'CLIENT_TLS_KEY');
const HEADERS = names('LIMIT_', 'LIMIT_HEADER', 'REMAINING_HEADER', 'RESET_HEADER');
const OF_STORES = ['URL', 'TYPE', 'AUTH', 'POOL_SIZE', 'TIMEOUT', 'POOL_ON_EMPTY_BEHAVIOR', 'TLS'];
const STARTUP = names('KVSTORE_STARTUP_', 'INITIAL_INTERVAL', 'MAX_INTERVAL', 'MAX_ELAPSED_TIME');
const FIRST_STORE = names('KVSTORE_', ...OF_STORES, 'CLOSE_CONNECTION_ON_READONLY_ERROR');
const SECOND_STORE = names('KVSTORE_PERSECOND_', ...OF_STORES, 'PIPELINE_WINDOW');
const OF_TLS = ['CACERT', 'CLIENT_CERT', 'CLIENT_KEY', 'SKIP_HOSTNAME_VERIFICATION'];
const PULL = names('PULLMETRICS_', 'ADDR', 'PATH', 'MAPPER_YAML');
const PULL_UNIT = 'PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS';
const PULLED_MAPPED = 'USE_PROMETHEUS=true PROMETHEUS_MAPPER_YAML=/m.yaml';
const PUSHED = 'it applies only with USE_PUSHSTATS=true or USE_TAGGEDSTATS=true';
const TAGGED = `USE_DOG_STATSD=true ${MOGRIFIERS.join(' ')}`;
const METADATA = 'RESPONSE_DYNAMIC_METADATA';
const TRACING = names('TRACING_', 'EXPORTER_PROTOCOL', 'SERVICE_NAME', 'SERVICE_NAMESPACE', 'SERVICE_INSTANCE_ID');
const [HEADERS_ON, CACHE] = ['LIMIT_RESPONSE_HEADERS_ENABLED', 'LOCAL_CACHE_SIZE_IN_BYTES'];

/** Settings, an environment in which they have no effect, the reason, and one in which they have an effect. */
const CASES: readonly Case[] = [
  ['GRPC_HOST GRPC_PORT', 'GRPC_UDS=/s', 'GRPC_UDS is set', ''],
  ['GRPC_MAX_CONNECTION_AGE_GRACE', 'GRPC_MAX_CONNECTION_AGE=0', 'GRPC_MAX_CONNECTION_AGE is 0', ''],
  ['GRPC_SERVER_TLS_CERT GRPC_SERVER_TLS_KEY', '', 'GRPC_SERVER_USE_TLS is false by default', TLS],
  [RUNTIME, XDS, 'CONFIG_TYPE is GRPC_XDS_SOTW', ''],
  [`${XDS_SERVER} ${XDS_NODE} ${XDS_BACKOFF}`, '', 'CONFIG_TYPE is FILE by default', XDS],
  ['XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES', '', 'CONFIG_TYPE is FILE by default', XDS],
  [XDS_FILES, XDS, 'CONFIG_GRPC_XDS_SERVER_USE_TLS is false by default', XDS_TLS],
  [HEADERS, `${HEADERS_ON}=false`, `${HEADERS_ON} is false`, `${HEADERS_ON}=true`],
  ['MEMORY_MAX_KEYS MEMORY_MAX_BYTES', STORE, 'BACKEND_TYPE is kvstore by default', ''],
  ['EXPIRATION_JITTER_MAX_SECONDS', '', 'BACKEND_TYPE is memory by default', STORE],
  ['KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION', '', 'BACKEND_TYPE is memory by default', STORE],
  [`${FIRST_STORE} ${STARTUP}`, 'BACKEND_TYPE=memory', 'BACKEND_TYPE is memory', `BACKEND_TYPE=redis ${STORE}`],
  ...storeCases('KVSTORE', STORE),
  [names('KVSTORE_TLS_', ...OF_TLS), STORE, NOT_TLS, STORES_TLS],
  ['KVSTORE_TLS_CACERT', STORE, NOT_TLS, 'KVSTORE_URL=rediss://a:1'],
  ['KVSTORE_PERSECOND', 'BACKEND_TYPE=memory', 'BACKEND_TYPE is memory', STORES],
  [SECOND_STORE, STORE, 'KVSTORE_PERSECOND is false by default', STORES],
  ...storeCases('KVSTORE_PERSECOND', STORES),
  ['PLAINCACHE_HOST_PORT', 'BACKEND_TYPE=memory', 'BACKEND_TYPE is memory', 'BACKEND_TYPE=memcache'],
  ['PLAINCACHE_SRV', 'BACKEND_TYPE=memory', 'BACKEND_TYPE is memory', 'BACKEND_TYPE=memcache'],
  ['PLAINCACHE_MAX_IDLE_CONNS PLAINCACHE_TLS', '', 'BACKEND_TYPE is memory by default', MEMCACHED],
  ['PLAINCACHE_SRV_REFRESH', MEMCACHED, 'PLAINCACHE_SRV is not set', 'PLAINCACHE_SRV=_memcache._tcp.example'],
  [names('PLAINCACHE_TLS_', ...OF_TLS), MEMCACHED, 'PLAINCACHE_TLS is false by default', MEMCACHED_TLS],
  ['STATS_FLUSH_INTERVAL', 'USE_PULLMETRICS=true', 'it applies only with an output other than USE_PULLMETRICS', ''],
  ['EXTRA_TAGS USE_PUSHSTATS USE_TAGGEDSTATS USE_PULLMETRICS', 'DISABLE_STATS=true', 'DISABLE_STATS is true', ''],
  ['PUSHSTATS_HOST', 'USE_PULLMETRICS=true', PUSHED, 'USE_TAGGEDSTATS=true'],
  ['PUSHSTATS_PORT PUSHSTATS_PROTOCOL', 'STATSD_HOST=unix:///s', 'STATSD_HOST is a socket', ''],
  ['TAGGEDSTATS_MOGRIFIERS', 'USE_DOG_STATSD=false', 'USE_DOG_STATSD is false', TAGGED],
  [PULL, '', 'USE_PULLMETRICS is false by default', 'USE_PROMETHEUS=true'],
  [PULL_UNIT, PULLED_MAPPED, 'PROMETHEUS_MAPPER_YAML is set', 'USE_PROMETHEUS=true'],
  [`${METADATA}_DECISIONS`, '', `${METADATA} is false by default`, `${METADATA}=true`],
  ['DECISION_LOG_SAMPLE DECISION_LOG_OUTPUT', '', 'DECISION_LOG is off by default', 'DECISION_LOG=denied'],
  ['LOCAL_CACHE_MAX_AGE', `${CACHE}=0`, `${CACHE} is 0`, `${CACHE}=1000`],
  ['OFFENDERS_WINDOW', 'OFFENDERS_SIZE=0', 'OFFENDERS_SIZE is 0', ''],
  ['OFFENDERS_METRICS', 'OFFENDERS_SIZE=0 USE_PULLMETRICS=true', 'OFFENDERS_SIZE is 0', 'USE_PULLMETRICS=true'],
  [`${TRACING} TRACING_SAMPLING_RATE`, '', 'TRACING_ENABLED is false by default', 'TRACING_ENABLED=true'],
];

/** They always have an effect, or are rejected when they have none (CLIENT_TLS), or are deprecated (PIPELINE_LIMIT). */
const OTHERS = [
  ...['HOST', 'PORT', 'GRPC_UDS', 'GRPC_MAX_CONNECTION_AGE', 'GRPC_MAX_CONNECTIONS', 'DEBUG_HOST', 'DEBUG_PORT'],
  ...['GRPC_SERVER_USE_TLS', 'GRPC_CLIENT_TLS_CACERT', 'GRPC_CLIENT_TLS_SAN', 'OPERATOR_TOKEN', 'LOG_LEVEL'],
  ...['LOG_FORMAT', 'WORKERS', 'SHUTDOWN_DELAY', 'CONFIG_TYPE', 'FORCE_START_WITHOUT_INITIAL_CONFIG'],
  ...['HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED', 'MERGE_DOMAIN_CONFIG', 'NEAR_LIMIT_RATIO', 'SHADOW_MODE'],
  ...['QUOTA_MODE', 'RESPONSE_DYNAMIC_METADATA', 'LIMIT_NAME_FROM_RULE', 'LIMIT_RESPONSE_HEADERS_ENABLED'],
  ...['DECISION_LOG', 'UNMATCHED_WARNINGS', 'OFFENDERS_SIZE', 'BACKEND_TYPE', 'CACHE_KEY_PREFIX'],
  ...['KVSTORE_PIPELINE_WINDOW', 'LOCAL_CACHE_SIZE_IN_BYTES', 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT'],
  ...['STATS_MAX_RUNTIME_KEYS', 'DISABLE_STATS', 'TRACING_ENABLED', 'OTEL_EXPORTER_OTLP_HEADERS'],
  ...['OTEL_EXPORTER_OTLP_TRACES_HEADERS', 'KVSTORE_PIPELINE_LIMIT', 'KVSTORE_PERSECOND_PIPELINE_LIMIT'],
];

const BY_NAME = CASES.flatMap(([list, ...texts]) => list.split(' ').map((name) => [name, ...texts] as const));

/** The environment with a value of the setting, under one of its names, that switches nothing off and is accepted. */
function including(name: string, environment: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const row = rowOf(name);
  if (environment[row.name] !== undefined) return environment;
  const texts = twoTexts(row).filter((text) => text !== 'false' || row.default === true);
  const environments = texts.map((text) => ({ ...environment, [name]: text }));
  const accepted = environments.find((candidate) => problemsOf(candidate).length === 0);
  if (accepted === undefined) throw new Error(`no value of ${name} is accepted with ${JSON.stringify(environment)}`);
  return accepted;
}

function ineffective(environment: Readonly<Record<string, string>>): readonly string[] {
  return readSettings(environment).warnings.filter((warning) => warning.includes(' has no effect, because '));
}

test('each setting is in one of the lists of this file', () => {
  const listed = new Set([...BY_NAME.map(([name]) => name), ...OTHERS]);
  expect([...listed].sort()).toEqual(settingRows.map(({ name }) => name).sort());
});

test.each(BY_NAME)('%s causes, with "%s", the one warning that %s, and none with "%s"', (...row) => {
  const [name, without, because, withEffect] = row;
  for (const used of [name, rowOf(name).alias ?? name]) {
    expect(ineffective(including(used, env(without)))).toContain(`${used} has no effect, because ${because}.`);
  }
  for (const text of [without, withEffect]) {
    const environment = text === without ? env(text) : including(name, env(text));
    expect(ineffective(environment).filter((warning) => warning.startsWith(`${name} `))).toEqual([]);
  }
});

test('a switch that is off causes no warning', () => {
  expect(ineffective(env('DISABLE_STATS=true USE_STATSD=false KVSTORE_TLS=false'))).toEqual([]);
  expect(ineffective(env('CONFIG_TYPE=GRPC_XDS_SOTW RUNTIME_WATCH_ROOT=false'))).toHaveLength(1);
});
