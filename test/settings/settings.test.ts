import { SettingsError, readSettings } from '../../src/settings/read-settings';
import { settingRows } from '../support/data/secret-settings';
import { env, problemsOf, rowOf, twoTexts, valueOf } from './environments';

const SECOND = 1000;
const HOUR = 3600 * SECOND;
const MIB = 1024 * 1024;

const CLIENT_TLS = 'GRPC_SERVER_USE_TLS=true GRPC_SERVER_TLS_CERT=/c GRPC_SERVER_TLS_KEY=/k GRPC_CLIENT_TLS_CACERT=/a';
const ON_BY_DEFAULT = ['RUNTIME_WATCH_ROOT', 'XDS_CLIENT_BACKOFF_JITTER', 'RESPONSE_DYNAMIC_METADATA_DECISIONS'];
ON_BY_DEFAULT.push('UNMATCHED_WARNINGS', 'USE_PUSHSTATS');

/** The defaults of the settings that are no switches; all others have none. */
const DEFAULTS: Readonly<Record<string, unknown>> = {
  ...{ HOST: '0.0.0.0', PORT: 8080, GRPC_HOST: '0.0.0.0', GRPC_PORT: 8081, DEBUG_HOST: '0.0.0.0', DEBUG_PORT: 6070 },
  ...{ GRPC_MAX_CONNECTION_AGE: 24 * HOUR, GRPC_MAX_CONNECTION_AGE_GRACE: HOUR, GRPC_MAX_CONNECTIONS: 16_384 },
  ...{ LOG_LEVEL: 'warning', LOG_FORMAT: 'text', WORKERS: 1, SHUTDOWN_DELAY: 0 },
  ...{ CONFIG_TYPE: 'FILE', RUNTIME_ROOT: '/srv/runtime_data/current', RUNTIME_SUBDIRECTORY: '' },
  RUNTIME_APPDIRECTORY: 'config',
  ...{ CONFIG_GRPC_XDS_SERVER_URL: 'localhost:18000', CONFIG_GRPC_XDS_NODE_ID: 'default' },
  ...{ CONFIG_GRPC_XDS_NODE_METADATA: {}, CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: {} },
  ...{ CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: 3 * SECOND, XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: 10 * SECOND },
  ...{ XDS_CLIENT_BACKOFF_MAX_INTERVAL: 60 * SECOND, XDS_CLIENT_BACKOFF_RANDOM_FACTOR: 0.5 },
  XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: 4 * MIB,
  ...{ NEAR_LIMIT_RATIO: 0.8, DECISION_LOG: 'off', DECISION_LOG_SAMPLE: 1, DECISION_LOG_OUTPUT: 'stdout' },
  ...{ OFFENDERS_SIZE: 1000, OFFENDERS_WINDOW: 600 * SECOND, OFFENDERS_METRICS: 0 },
  ...{ LIMIT_LIMIT_HEADER: 'RateLimit-Limit', LIMIT_REMAINING_HEADER: 'RateLimit-Remaining' },
  LIMIT_RESET_HEADER: 'RateLimit-Reset',
  ...{ BACKEND_TYPE: 'memory', MEMORY_MAX_KEYS: 1_000_000, CACHE_KEY_PREFIX: '', EXPIRATION_JITTER_MAX_SECONDS: 300 },
  ...{ LOCAL_CACHE_SIZE_IN_BYTES: 0, LOCAL_CACHE_MAX_AGE: 60 * SECOND },
  ...{ KVSTORE_TYPE: 'single', KVSTORE_SOCKET_TYPE: 'tcp', KVSTORE_POOL_SIZE: 10, KVSTORE_TIMEOUT: 10 * SECOND },
  ...{ KVSTORE_POOL_ON_EMPTY_BEHAVIOR: 'CREATE', KVSTORE_POOL_ON_EMPTY_WAIT_DURATION: SECOND },
  ...{ KVSTORE_PIPELINE_WINDOW: 0, KVSTORE_PIPELINE_LIMIT: 0, KVSTORE_CLUSTER_PIPELINE_PARALLELISM: 1 },
  ...{ KVSTORE_STARTUP_INITIAL_INTERVAL: SECOND, KVSTORE_STARTUP_MAX_INTERVAL: 30 * SECOND },
  KVSTORE_STARTUP_MAX_ELAPSED_TIME: 0,
  ...{ PLAINCACHE_HOST_PORT: [], PLAINCACHE_SRV_REFRESH: 0, PLAINCACHE_MAX_IDLE_CONNS: 2 },
  ...{ STATS_MAX_RUNTIME_KEYS: 10_000, STATS_FLUSH_INTERVAL: 10 * SECOND, EXTRA_TAGS: {} },
  ...{ PUSHSTATS_HOST: { host: 'localhost' }, PUSHSTATS_PORT: 8125, PUSHSTATS_PROTOCOL: 'tcp' },
  ...{ TAGGEDSTATS_MOGRIFIERS: [], PULLMETRICS_ADDR: { host: '0.0.0.0', port: 9090 }, PULLMETRICS_PATH: '/metrics' },
  ...{ TRACING_EXPORTER_PROTOCOL: 'http', TRACING_SERVICE_NAME: 'RateLimit', TRACING_SERVICE_NAMESPACE: '' },
  TRACING_SAMPLING_RATE: 1,
};

/** The default of a setting; those of the second key-value store are those of the first. */
function defaultOf(name: string): unknown {
  if (rowOf(name).type.allowed === 'true or false') return ON_BY_DEFAULT.includes(name);
  return DEFAULTS[name.replace('KVSTORE_PERSECOND_', 'KVSTORE_')];
}

test('every setting has its documented default when no variable is set', () => {
  const loaded = readSettings({});
  const defaults = settingRows.map(({ name }) => [name, valueOf(loaded, name)]);
  expect(defaults).toEqual(settingRows.map(({ name }) => [name, defaultOf(name)]));
  expect(Object.keys(DEFAULTS).filter((name) => !settingRows.some((row) => row.name === name))).toEqual([]);
  expect([loaded.settings.mogrifiers, [...loaded.given], loaded.warnings]).toEqual([[], [], []]);
});

describe('the table of settings', () => {
  test('contains every variable and every field once', () => {
    const names = settingRows.flatMap(({ name, alias = name }) => (alias === name ? [name] : [name, alias]));
    expect(names).toEqual([...new Set(names)]);
    expect(new Set(settingRows.map(({ field }) => field)).size).toBe(settingRows.length);
  });

  test('marks every variable that contains credentials as secret', () => {
    const secrets = settingRows.filter(({ secret }) => secret === 'value').map(({ name }) => name);
    const named = settingRows.map(({ name }) => name).filter((name) => /AUTH|PASSWORD|TOKEN$|HEADERS$/.test(name));
    expect(secrets).toEqual(named);
    const addresses = settingRows.filter(({ secret }) => secret === 'credentials').map(({ name }) => name);
    expect(addresses).toEqual(['KVSTORE_URL', 'KVSTORE_PERSECOND_URL']);
  });
});

describe.each(settingRows.map((row) => [row.name, row] as const))('%s', (name, row) => {
  const { alias } = row;
  const [one, other] = twoTexts(row);
  /** Settings without which any text would be rejected. */
  const base = env(name.startsWith('GRPC_CLIENT_TLS_') ? CLIENT_TLS : 'BACKEND_TYPE=memory');

  function read(variables: Readonly<Record<string, string>>) {
    return valueOf(readSettings({ ...base, ...variables }), name);
  }

  test('is read without surrounding blanks, and counts as not set when it is blank', () => {
    expect(read({ [name]: ` ${one}\t` })).toEqual(read({ [name]: one }));
    const { settings, given, warnings } = readSettings({ [name]: '', ...(alias !== undefined && { [alias]: ' ' }) });
    expect([settings, [...given], warnings]).toEqual([readSettings({}).settings, [], []]);
  });

  if (alias === undefined) return;
  test(`is read from ${alias} too, and both are accepted only with the same value`, () => {
    expect(read({ [alias]: one })).toEqual(read({ [name]: one }));
    expect(read({ [name]: one, [alias]: one })).toEqual(read({ [name]: one }));
    expect([...readSettings({ ...base, [alias]: one }).given.values()]).toContain(alias);
    expect(problemsOf({ [name]: one, [alias]: other })).toContainEqual(
      expect.stringMatching(/ are two names of one setting and have different values; remove one of them\.$/),
    );
  });
});

describe('readSettings', () => {
  test('returns deeply frozen settings', () => {
    const loaded = readSettings(env('EXTRA_TAGS=a:b'));
    const parts = ['EXTRA_TAGS', 'PULLMETRICS_ADDR', 'TAGGEDSTATS_MOGRIFIERS'].map((name) => valueOf(loaded, name));
    expect([loaded.settings, ...parts].map((part) => Object.isFrozen(part))).toEqual([true, true, true, true]);
  });

  test('returns which variables are set', () => {
    const { given } = readSettings({ REDIS_PIPELINE_WINDOW: '1ms', PORT: '8080', HOST: '', OTHER: 'x' });
    expect([...given.values()]).toEqual(['PORT', 'REDIS_PIPELINE_WINDOW']);
  });

  test('treats names of variables as case-sensitive, like the Go service', () => {
    expect(valueOf(readSettings(env('port=1 Port=2')), 'PORT')).toBe(8080);
  });
});

test.each([
  ['BACKEND_TYPE', 'memory', ''],
  ['BACKEND_TYPE', 'kvstore', 'KVSTORE_URL=a:1'],
  ['BACKEND_TYPE', 'kvstore', 'REDIS_URL=a:1 MEMCACHE_HOST_PORT=b:1'],
  ['BACKEND_TYPE', 'plaincache', 'PLAINCACHE_HOST_PORT=a:1'],
  ['BACKEND_TYPE', 'plaincache', 'MEMCACHE_SRV=_a._tcp.b'],
  ['BACKEND_TYPE', 'memory', 'BACKEND_TYPE=memory REDIS_URL=a:1'],
  ['USE_PUSHSTATS', true, ''],
  ['USE_PUSHSTATS', false, 'USE_DOG_STATSD=true'],
  ['USE_PUSHSTATS', false, 'USE_PROMETHEUS=true'],
  ['USE_PUSHSTATS', true, 'USE_PROMETHEUS=true USE_STATSD=true'],
  ['USE_PUSHSTATS', false, 'USE_STATSD=false'],
])('the default of %s follows from other settings: %s with "%s"', (name, value, text) => {
  expect(valueOf(readSettings(env(text)), name)).toBe(value);
});

describe('invalid settings', () => {
  test('are all listed in one error, each with its value and what is allowed', () => {
    function read() {
      return readSettings({
        ...env('GRPC_PORT=99999 SHADOW_MODE=yes REDIS_TIMEOUT=10'),
        LIMIT_RESET_HEADER: 'X Reset',
      });
    }
    expect(read).toThrow(SettingsError);
    expect(read).toThrow(
      [
        'The settings are invalid (weir --help describes them):',
        '  GRPC_PORT="99999" is invalid; allowed: whole number, 0 to 65535.',
        '  SHADOW_MODE="yes" is invalid; allowed: true or false.',
        '  LIMIT_RESET_HEADER="X Reset" is invalid; allowed: HTTP header name.',
        '  REDIS_TIMEOUT="10" is invalid; allowed: duration, 0 or more (add a unit, as in 500ms or 10s).',
      ].join('\n'),
    );
  });

  test('are shown on one line and truncated', () => {
    const [problem = ''] = problemsOf({ PORT: `1\n2${'x'.repeat(10_000)}` });
    expect(problem).toMatch(/^PORT="1\\n2x+…" is invalid/);
    expect(problem.length).toBeLessThan(250);
  });

  test.each([
    [
      'GRPC_SERVER_USE_TLS=maybe GRPC_CLIENT_TLS_CACERT=/a',
      'GRPC_SERVER_USE_TLS="maybe" is invalid; allowed: true or false.',
    ],
    ['KVSTORE_TIMEOUT=5s REDIS_TIMEOUT=no', expect.stringContaining('REDIS_TIMEOUT="no" is invalid')],
    [
      'KVSTORE_PIPELINE_WINDOW=1ms REDIS_PIPELINE_WINDOW=2ms',
      'KVSTORE_PIPELINE_WINDOW="1ms" and REDIS_PIPELINE_WINDOW="2ms" are two names of one setting and have different values; remove one of them.',
    ],
  ])('are reported once, and not again by checks that concern them: %s', (text, problem) => {
    expect(problemsOf(env(text))).toEqual([problem]);
  });

  test('do not include a name and its alias with the same value in different spellings', () => {
    const loaded = readSettings(env('KVSTORE_PIPELINE_WINDOW=1ms REDIS_PIPELINE_WINDOW=1000us'));
    expect(valueOf(loaded, 'KVSTORE_PIPELINE_WINDOW')).toBe(1);
  });
});

test.each([
  ['RUNTIME_WATCHROOT', 'RUNTIME_WATCH_ROOT'],
  ['REDIS_POOLSIZE', 'REDIS_POOL_SIZE'],
  ['NEAR_LIMIT_RAITO', 'NEAR_LIMIT_RATIO'],
  ['TAGGEDSTATS_MOGRIFIER', 'TAGGEDSTATS_MOGRIFIERS'],
  ['REDIS_AUHT_FILE', 'REDIS_AUTH_FILE'],
])('a variable that is not a setting, %s, causes a warning that suggests %s', (name, suggestion) => {
  expect(readSettings({ [name]: '1' }).warnings).toEqual([
    `${name} is not a setting and has no effect; did you mean ${suggestion}?`,
  ]);
});

test('a variable of another program, of Kubernetes or of a library causes no warning', () => {
  const others = [
    ...['PATH', 'HOME', 'HOSTNAME', 'PORTS', 'NAME', 'TAGS', 'NODE_OPTIONS', 'GRPC_TRACE', 'GRPC_VERBOSITY'],
    ...['REDIS_PORT', 'REDIS_HOST', 'REDIS_PASSWORD', 'REDIS_SERVICE_HOST', 'REDIS_PORT_6379_TCP_ADDR', 'DD_SERVICE'],
    ...['STATSD_SERVICE_HOST', 'STATSD_PORT_8125_UDP_PROTO', 'MEMCACHE_PORT', 'PROMETHEUS_PORT', 'OTEL_SERVICE_NAME'],
    ...['OTEL_EXPORTER_OTLP_ENDPOINT', 'HTTPS_PROXY', 'SSL_CERT_FILE'],
  ];
  expect(readSettings(Object.fromEntries(others.map((name) => [name, 'x']))).warnings).toEqual([]);
});

test('a deprecated setting causes one warning', () => {
  const warning = 'REDIS_PIPELINE_LIMIT is deprecated and has no effect; remove it.';
  expect(readSettings(env('REDIS_PIPELINE_LIMIT=8')).warnings).toEqual([warning]);
  expect(readSettings(env('REDIS_PIPELINE_LIMIT=0')).warnings.join()).not.toContain('deprecated');
});
