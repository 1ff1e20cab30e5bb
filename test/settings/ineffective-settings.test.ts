import { conditionsOf } from '../../src/settings/checks/ineffective-settings';
import { readSettings } from '../../src/settings/read-settings';
import type { Setting, SettingGroup } from '../../src/settings/table/setting';
import { settingsTable } from '../../src/settings/table/settings-table';
import type { Environment } from '../../src/settings/variables/environment';
import { problemsOf } from './problems-of';
import { twoTexts } from './two-texts';

const groups: readonly SettingGroup[] = settingsTable;
const rows = groups.flatMap((group) => group.settings.map((setting) => ({ group, setting })));
const rowsByName = new Map(rows.map((row) => [row.setting.name, row] as const));

/** Under which environment a setting has no effect, why, and under which one it has. */
interface Case {
  readonly without: Environment;
  readonly because: string;
  readonly with: Environment;
}

function each(names: readonly string[], example: Case): readonly (readonly [string, Case])[] {
  return names.map((name) => [name, example] as const);
}

const STORE = { KVSTORE_URL: 'a:1' };
const BOTH_STORES = { ...STORE, KVSTORE_PERSECOND: 'true', KVSTORE_PERSECOND_URL: 'b:1' };
const TLS = { GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_CERT: '/c', GRPC_SERVER_TLS_KEY: '/k' };
const XDS_TLS = { CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true' };
const XDS_PAIR = { CONFIG_GRPC_XDS_CLIENT_TLS_CERT: '/c', CONFIG_GRPC_XDS_CLIENT_TLS_KEY: '/k' };
const MEMCACHED = { PLAINCACHE_HOST_PORT: 'a:1' };
const MEMCACHED_PAIR = { PLAINCACHE_TLS_CLIENT_CERT: '/c', PLAINCACHE_TLS_CLIENT_KEY: '/k' };
const STORE_PAIR = { KVSTORE_TLS_CLIENT_CERT: '/c', KVSTORE_TLS_CLIENT_KEY: '/k' };

/** The settings of an instance of the key-value store whose effect depends on its type or its pool. */
function instanceCases(name: string, common: Environment): readonly (readonly [string, Case])[] {
  const url = `${name}_URL`;
  const type = `${name}_TYPE`;
  const sentinel = { ...common, [type]: 'sentinel', [url]: 'main,a:1' };
  return [
    ...each([`${name}_SENTINEL_AUTH`], { without: common, because: `${type} is single by default`, with: sentinel }),
    ...each([`${name}_SOCKET_TYPE`], { without: sentinel, because: `${type} is sentinel`, with: common }),
    ...each([`${name}_CLUSTER_PIPELINE_PARALLELISM`], {
      without: { ...common, [type]: 'single' },
      because: `${type} is single`,
      with: { ...common, [type]: 'cluster' },
    }),
    ...each([`${name}_POOL_ON_EMPTY_WAIT_DURATION`], {
      without: { ...common, [`${name}_POOL_ON_EMPTY_BEHAVIOR`]: 'WAIT' },
      because: `${name}_POOL_ON_EMPTY_BEHAVIOR is WAIT`,
      with: common,
    }),
  ];
}

const CASES: readonly (readonly [string, Case])[] = [
  ...each(['GRPC_HOST', 'GRPC_PORT'], { without: { GRPC_UDS: '/s' }, because: 'GRPC_UDS is set', with: {} }),
  ...each(['GRPC_MAX_CONNECTION_AGE_GRACE'], {
    without: { GRPC_MAX_CONNECTION_AGE: '0' },
    because: 'GRPC_MAX_CONNECTION_AGE is 0',
    with: {},
  }),
  ...each(['GRPC_SERVER_TLS_CERT', 'GRPC_SERVER_TLS_KEY'], {
    without: {},
    because: 'GRPC_SERVER_USE_TLS is false by default',
    with: TLS,
  }),
  ...each(['RUNTIME_ROOT', 'RUNTIME_SUBDIRECTORY', 'RUNTIME_APPDIRECTORY', 'RUNTIME_IGNOREDOTFILES'], {
    without: { CONFIG_TYPE: 'GRPC_XDS_SOTW' },
    because: 'CONFIG_TYPE is GRPC_XDS_SOTW',
    with: {},
  }),
  ...each(['RUNTIME_WATCH_ROOT'], {
    without: { CONFIG_TYPE: 'GRPC_XDS_SOTW' },
    because: 'CONFIG_TYPE is GRPC_XDS_SOTW',
    with: {},
  }),
  ...each(namesIn('Rules from an xDS server', /^(?!.*(?:TLS_CACERT|TLS_SAN|CLIENT_TLS))/), {
    without: {},
    because: 'CONFIG_TYPE is FILE by default',
    with: { CONFIG_TYPE: 'GRPC_XDS_SOTW' },
  }),
  ...each(namesIn('Rules from an xDS server', /TLS_CACERT|TLS_SAN|CLIENT_TLS/), {
    without: { CONFIG_TYPE: 'GRPC_XDS_SOTW' },
    because: 'CONFIG_GRPC_XDS_SERVER_USE_TLS is false by default',
    with: { ...XDS_TLS, ...XDS_PAIR },
  }),
  ...each(['LIMIT_LIMIT_HEADER', 'LIMIT_REMAINING_HEADER', 'LIMIT_RESET_HEADER'], {
    without: { LIMIT_RESPONSE_HEADERS_ENABLED: 'false' },
    because: 'LIMIT_RESPONSE_HEADERS_ENABLED is false',
    with: { LIMIT_RESPONSE_HEADERS_ENABLED: 'true' },
  }),
  ...each(['MEMORY_MAX_KEYS', 'MEMORY_MAX_BYTES'], {
    without: STORE,
    because: 'BACKEND_TYPE is kvstore by default',
    with: {},
  }),
  ...each(['EXPIRATION_JITTER_MAX_SECONDS', 'KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION'], {
    without: {},
    because: 'BACKEND_TYPE is memory by default',
    with: STORE,
  }),
  ...each(
    namesIn('Key-value store', /^KVSTORE_(?:URL|TYPE|AUTH|POOL_SIZE|TIMEOUT|TLS|POOL_ON_EMPTY_BEHAVIOR|WINDOW)$/),
    {
      without: { BACKEND_TYPE: 'memory' },
      because: 'BACKEND_TYPE is memory',
      with: { ...STORE, BACKEND_TYPE: 'redis' },
    },
  ),
  ...each(namesIn('Key-value store', /^KVSTORE_(?:CLOSE|STARTUP)/), {
    without: { BACKEND_TYPE: 'memory' },
    because: 'BACKEND_TYPE is memory',
    with: STORE,
  }),
  ...instanceCases('KVSTORE', STORE),
  ...each(namesIn('Key-value store', /^KVSTORE_TLS_/), {
    without: STORE,
    because: 'it applies only with KVSTORE_TLS=true, KVSTORE_PERSECOND_TLS=true or a rediss:// URL',
    with: { ...BOTH_STORES, KVSTORE_PERSECOND_URL: 'rediss://b:1', ...STORE_PAIR },
  }),
  ...each(['KVSTORE_PERSECOND'], {
    without: { BACKEND_TYPE: 'memory' },
    because: 'BACKEND_TYPE is memory',
    with: BOTH_STORES,
  }),
  ...each(
    namesIn('Second key-value store', /_(?:URL|TYPE|AUTH|POOL_SIZE|TIMEOUT|TLS|BEHAVIOR|WINDOW)$/, /SOCKET|SENTINEL/),
    {
      without: STORE,
      because: 'KVSTORE_PERSECOND is false by default',
      with: BOTH_STORES,
    },
  ),
  ...instanceCases('KVSTORE_PERSECOND', BOTH_STORES),
  ...each(['PLAINCACHE_HOST_PORT', 'PLAINCACHE_SRV'], {
    without: { BACKEND_TYPE: 'memory' },
    because: 'BACKEND_TYPE is memory',
    with: { BACKEND_TYPE: 'memcache' },
  }),
  ...each(['PLAINCACHE_MAX_IDLE_CONNS', 'PLAINCACHE_TLS'], {
    without: {},
    because: 'BACKEND_TYPE is memory by default',
    with: MEMCACHED,
  }),
  ...each(['PLAINCACHE_SRV_REFRESH'], {
    without: MEMCACHED,
    because: 'PLAINCACHE_SRV is not set',
    with: { PLAINCACHE_SRV: '_memcache._tcp.example' },
  }),
  ...each(namesIn('Plain cache', /TLS_/), {
    without: MEMCACHED,
    because: 'PLAINCACHE_TLS is false by default',
    with: { ...MEMCACHED, PLAINCACHE_TLS: 'true', ...MEMCACHED_PAIR },
  }),
  ...each(['STATS_FLUSH_INTERVAL'], {
    without: { USE_PULLMETRICS: 'true' },
    because: 'it applies only with an output other than USE_PULLMETRICS',
    with: {},
  }),
  ...each(['EXTRA_TAGS', 'USE_PUSHSTATS', 'USE_TAGGEDSTATS', 'USE_PULLMETRICS'], {
    without: { DISABLE_STATS: 'true' },
    because: 'DISABLE_STATS is true',
    with: {},
  }),
  ...each(['PUSHSTATS_HOST'], {
    without: { USE_PULLMETRICS: 'true' },
    because: 'it applies only with USE_PUSHSTATS=true or USE_TAGGEDSTATS=true',
    with: {},
  }),
  ...each(['PUSHSTATS_PORT', 'PUSHSTATS_PROTOCOL'], {
    without: { STATSD_HOST: 'unix:///s' },
    because: 'STATSD_HOST is a socket',
    with: {},
  }),
  ...each(['TAGGEDSTATS_MOGRIFIERS'], {
    without: { USE_DOG_STATSD: 'false' },
    because: 'USE_DOG_STATSD is false',
    with: {
      USE_DOG_STATSD: 'true',
      ...Object.fromEntries(
        twoTexts(settingOf('TAGGEDSTATS_MOGRIFIERS')).flatMap((name) =>
          ['PATTERN', 'NAME'].map((part) => [`TAGGEDSTATS_MOGRIFIER_${name.toUpperCase()}_${part}`, 'x']),
        ),
      ),
    },
  }),
  ...each(['PULLMETRICS_ADDR', 'PULLMETRICS_PATH', 'PULLMETRICS_MAPPER_YAML'], {
    without: {},
    because: 'USE_PULLMETRICS is false by default',
    with: { USE_PROMETHEUS: 'true' },
  }),
  ...each(['PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS'], {
    without: { USE_PROMETHEUS: 'true', PROMETHEUS_MAPPER_YAML: '/m.yaml' },
    because: 'PROMETHEUS_MAPPER_YAML is set',
    with: { USE_PROMETHEUS: 'true' },
  }),
  ...each(['RESPONSE_DYNAMIC_METADATA_DECISIONS'], {
    without: {},
    because: 'RESPONSE_DYNAMIC_METADATA is false by default',
    with: { RESPONSE_DYNAMIC_METADATA: 'true' },
  }),
  ...each(['DECISION_LOG_SAMPLE', 'DECISION_LOG_OUTPUT'], {
    without: {},
    because: 'DECISION_LOG is off by default',
    with: { DECISION_LOG: 'denied' },
  }),
  ...each(['LOCAL_CACHE_MAX_AGE'], {
    without: { LOCAL_CACHE_SIZE_IN_BYTES: '0' },
    because: 'LOCAL_CACHE_SIZE_IN_BYTES is 0',
    with: { LOCAL_CACHE_SIZE_IN_BYTES: '1000' },
  }),
  ...each(['OFFENDERS_WINDOW', 'OFFENDERS_METRICS'], {
    without: { OFFENDERS_SIZE: '0', USE_PULLMETRICS: 'true' },
    because: 'OFFENDERS_SIZE is 0',
    with: { USE_PULLMETRICS: 'true' },
  }),
  ...each(namesIn('Traces', /^TRACING_(?!ENABLED)/), {
    without: {},
    because: 'TRACING_ENABLED is false by default',
    with: { TRACING_ENABLED: 'true' },
  }),
];

/** Not in {@link CASES}: they have an effect on their own, or are rejected when they have none, or are deprecated. */
const OTHERS: readonly (readonly [string, readonly string[]])[] = [
  [
    'has an effect with every other setting',
    [
      ...['HOST', 'PORT', 'GRPC_UDS', 'GRPC_MAX_CONNECTION_AGE', 'DEBUG_HOST', 'DEBUG_PORT', 'GRPC_SERVER_USE_TLS'],
      ...['OPERATOR_TOKEN', 'OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'],
      ...['GRPC_MAX_CONNECTIONS', 'LOG_LEVEL', 'LOG_FORMAT', 'CONFIG_TYPE', 'FORCE_START_WITHOUT_INITIAL_CONFIG'],
      ...['HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED', 'MERGE_DOMAIN_CONFIG', 'NEAR_LIMIT_RATIO', 'SHADOW_MODE'],
      ...['QUOTA_MODE', 'RESPONSE_DYNAMIC_METADATA', 'LIMIT_RESPONSE_HEADERS_ENABLED', 'BACKEND_TYPE'],
      ...['CACHE_KEY_PREFIX', 'KVSTORE_PIPELINE_WINDOW', 'LOCAL_CACHE_SIZE_IN_BYTES'],
      ...['STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT', 'STATS_MAX_RUNTIME_KEYS', 'DISABLE_STATS', 'TRACING_ENABLED'],
      ...['DECISION_LOG', 'UNMATCHED_WARNINGS', 'OFFENDERS_SIZE', 'LIMIT_NAME_FROM_RULE', 'SHUTDOWN_DELAY', 'WORKERS'],
    ],
  ],
  ['is rejected without TLS', ['GRPC_CLIENT_TLS_CACERT', 'GRPC_CLIENT_TLS_SAN']],
  ['is deprecated', ['KVSTORE_PIPELINE_LIMIT', 'KVSTORE_PERSECOND_PIPELINE_LIMIT']],
];

function settingOf(name: string): Setting {
  const row = rowsByName.get(name);
  if (row === undefined) throw new Error(`no setting is named ${name}`);
  return row.setting;
}

function namesIn(title: string, pattern: RegExp, except = /^$/): readonly string[] {
  const names = groups.find((group) => group.title.startsWith(title))?.settings.map(({ name }) => name) ?? [];
  return names.filter((name) => pattern.test(name) && !except.test(name));
}

/** A value that switches nothing off, and that the environment accepts. */
function withValue(name: string, environment: Environment): Environment {
  if (environment[name] !== undefined) return environment;
  const text = twoTexts(settingOf(name)).find((candidate) => !isOff(name, candidate) && isAccepted(name, candidate));
  function isAccepted(variable: string, candidate: string) {
    return problemsOf({ ...environment, [variable]: candidate }).length === 0;
  }
  return { ...environment, [name]: text };
}

function isOff(name: string, text: string): boolean {
  return text === 'false' && settingOf(name).default !== true;
}

function ineffective(environment: Environment) {
  return readSettings(environment).warnings.filter((warning) => warning.includes('has no effect, because'));
}

test('each setting is in one of the lists of this file', () => {
  const listed = [...CASES.map(([name]) => name), ...OTHERS.flatMap(([, names]) => names)];
  expect([...listed].sort()).toEqual(rows.map(({ setting }) => setting.name).sort());
});

test.each(CASES)('%s causes one warning where another setting makes it ineffective', (name, { without, because }) => {
  expect(ineffective(withValue(name, without))).toContain(`${name} has no effect, because ${because}.`);
  expect(ineffective(without).filter((warning) => warning.startsWith(`${name} `))).toEqual([]);
});

test.each(CASES)('%s causes no warning where it has an effect', (name, { with: environment }) => {
  const warnings = ineffective(withValue(name, environment));
  expect(warnings.filter((warning) => warning.startsWith(`${name} `))).toEqual([]);
});

test.each(
  CASES.flatMap(([name, example]) => {
    const { alias } = settingOf(name);
    return alias === undefined ? [] : [[alias, name, example] as const];
  }),
)('the warning names %s when it is set, and not %s', (alias, name, { without, because }) => {
  const { [name]: text, ...others } = withValue(name, without);
  expect(ineffective({ ...others, [alias]: text })).toContain(`${alias} has no effect, because ${because}.`);
});

test.each(CASES)('%s has conditions in the table', (name) => {
  const { group, setting } = rowsByName.get(name) ?? rows[0]!;
  const conditions = conditionsOf(setting, group);
  expect(conditions).not.toEqual([]);
  expect(conditions.flatMap(({ names }) => names).filter((other) => !rowsByName.has(other))).toEqual([]);
});

test('a switch that is off causes no warning', () => {
  expect(ineffective({ DISABLE_STATS: 'true', USE_STATSD: 'false', KVSTORE_TLS: 'false' })).toEqual([]);
  expect(ineffective({ CONFIG_TYPE: 'GRPC_XDS_SOTW', RUNTIME_WATCH_ROOT: 'false' })).toHaveLength(1);
});

test('no warning contains the value of a secret', () => {
  const secret = 'hunter2';
  const warnings = ineffective({ BACKEND_TYPE: 'memory', REDIS_URL: `redis://:${secret}@a:1`, REDIS_AUTH: secret });
  expect(warnings).toHaveLength(2);
  expect(warnings.join('\n')).not.toContain(secret);
});
