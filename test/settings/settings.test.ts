import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readSettings } from '../../src/settings/read-settings';
import { INSTANCES, instanceSettings } from '../../src/settings/settings';
import { DerivedDefault } from '../../src/settings/table/setting';
import { settingRows } from '../support/data/secret-settings';
import { env, problemsOf, twoTexts, valueOf } from './environments';

const CLIENT_TLS = 'GRPC_SERVER_USE_TLS=true GRPC_SERVER_TLS_CERT=/c GRPC_SERVER_TLS_KEY=/k GRPC_CLIENT_TLS_CACERT=/a';
/** What settings of a prefix need. */
const NEEDED = [
  ['GRPC_CLIENT_TLS_', CLIENT_TLS],
  ['DEBUG_TLS_', 'DEBUG_TLS_CERT=/c DEBUG_TLS_KEY=/k'],
] as const;

/** Reads a setting, together with those without which any text of it would be rejected. */
function read(name: string, variables: Readonly<Record<string, string>>) {
  const needed = NEEDED.find(([prefix]) => name.startsWith(prefix))?.[1];
  const base = env(needed ?? 'BACKEND_TYPE=memory');
  const loaded = readSettings({ ...base, ...variables });
  return { value: valueOf(loaded, name), variables: [...loaded.given.values()] };
}

// docs/settings.md has the defaults, and docs.test.ts compares it.
test('every setting has its default when no variable is set, or the variables are blank', () => {
  const loaded = readSettings({});
  const rows = settingRows.filter((row) => !(row.default instanceof DerivedDefault));
  expect(rows.map(({ name }) => [name, valueOf(loaded, name)])).toEqual(rows.map((row) => [row.name, row.default]));
  expect([loaded.settings.mogrifiers, [...loaded.given], loaded.warnings]).toEqual([[], [], []]);
  const blank = settingRows.flatMap(({ name, alias = name }) => [
    [name, ''],
    [alias, ' '],
  ]);
  const { settings, given, warnings } = readSettings(Object.fromEntries(blank) as Record<string, string>);
  expect([settings, [...given], warnings]).toEqual([loaded.settings, [], []]);
});

test.each(settingRows.map((row) => [row.name, row] as const))('%s is read from its variables', (name, row) => {
  const { alias } = row;
  const [one, other] = twoTexts(row);
  const { value, variables } = read(name, { [name]: one });
  expect([value, variables]).toEqual([
    (row.type.parse(one) as { value: unknown }).value,
    expect.arrayContaining([name]),
  ]);
  expect(read(name, { [name]: ` ${one}\t` }).value).toEqual(value);
  if (alias === undefined) return;
  expect(read(name, { [alias]: one })).toEqual({ value, variables: expect.arrayContaining([alias]) });
  expect(read(name, { [name]: one, [alias]: one }).value).toEqual(value);
  expect(problemsOf({ [name]: one, [alias]: other })).toContainEqual(
    expect.stringMatching(/ are two names of one setting and have different values; remove one of them\.$/),
  );
});

describe('the table of settings', () => {
  test('contains every variable and every field once', () => {
    const names = settingRows.flatMap(({ name, alias = name }) => (alias === name ? [name] : [name, alias]));
    expect(names).toEqual([...new Set(names)]);
    expect(new Set(settingRows.map(({ field }) => field)).size).toBe(settingRows.length);
  });

  test('marks every variable that contains credentials as secret', () => {
    const secrets = settingRows.filter(({ type }) => type.secret === 'value').map(({ name }) => name);
    const named = settingRows
      .map(({ name }) => name)
      .filter((name) => /AUTH|PASSWORD|TOKENS?$|(?<!RESPONSE_)HEADERS$/.test(name));
    expect(secrets).toEqual(named);
    const addresses = settingRows.filter(({ type }) => type.secret === 'credentials').map(({ name }) => name);
    expect(addresses).toEqual(['KVSTORE_URL', 'KVSTORE_PERSECOND_URL']);
  });
});

test('settings are deeply frozen, and names of variables case-sensitive, like in the Go service', () => {
  const loaded = readSettings(env('EXTRA_TAGS=a:b port=1 Port=2'));
  const parts = ['EXTRA_TAGS', 'PULLMETRICS_ADDR', 'TAGGEDSTATS_MOGRIFIERS'].map((name) => valueOf(loaded, name));
  expect([loaded.settings, ...parts].map((part) => Object.isFrozen(part))).toEqual([true, true, true, true]);
  expect(valueOf(loaded, 'PORT')).toBe(8080);
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
  ['KVSTORE_SOCKET_TYPE', 'unix', 'KVSTORE_URL=unix:///a'],
  ['KVSTORE_SOCKET_TYPE', 'tcp', 'KVSTORE_URL=a:1'],
  ['KVSTORE_PERSECOND_SOCKET_TYPE', 'tcp6', 'KVSTORE_PERSECOND_URL=/a REDIS_PERSECOND_SOCKET_TYPE=TCP6'],
  ['KVSTORE_PERSECOND_SOCKET_TYPE', 'unix', 'KVSTORE_PERSECOND_URL=/a'],
])('the default of %s follows from other settings: %s with "%s"', (name, value, text) => {
  expect(valueOf(readSettings(env(text)), name)).toBe(value);
});

test('each instance of the key-value store has its own settings, under names that both have', () => {
  const second = 'KVSTORE_PERSECOND=true REDIS_PERSECOND_URL=b:1 REDIS_PERSECOND_POOL_SIZE=7';
  const { settings } = readSettings(env(`KVSTORE_URL=a:1 KVSTORE_TIMEOUT=2s ${second}`));
  const common = { type: 'single', socketType: 'tcp', poolOnEmptyBehavior: 'CREATE', pipelineWindow: 0 };
  expect(instanceSettings(settings, INSTANCES.main)).toMatchObject({
    ...common,
    url: 'a:1',
    poolSize: 10,
    timeout: 2000,
  });
  const perSecond = { ...common, url: 'b:1', poolSize: 7, timeout: 10_000 };
  expect(instanceSettings(settings, INSTANCES.perSecond)).toMatchObject(perSecond);
  const names = Object.entries(INSTANCES.perSecond).map(([name, field]) => [
    name,
    field.replace('kvstorePersecond', 'kvstore'),
  ]);
  expect(Object.fromEntries(names)).toEqual(INSTANCES.main);
});

test('every setting with an effect can be found by its name where it is used', () => {
  const root = join(__dirname, '../../src');
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const used = new Set(files.flatMap((name) => readFileSync(join(root, name), 'utf8').match(/\w+/g) ?? []));
  const missing = settingRows.filter(({ field, isDeprecated }) => isDeprecated !== true && !used.has(field));
  // weir keeps within any value of it.
  expect(missing.map(({ field }) => field)).toEqual(['plaincacheMaxIdleConns']);
});

describe('invalid settings', () => {
  test('are all listed in one error, each with its value and what is allowed', () => {
    const problems = [
      'GRPC_PORT="99999" is invalid; allowed: whole number, 0 to 65535.',
      'REDIS_TIMEOUT="10" is invalid; allowed: duration, 0 or more (add a unit, as in 500ms or 10s).',
    ];
    const message = ['The settings are invalid (weir --help describes them):', ...problems].join('\n  ');
    const environment = env('GRPC_PORT=99999 REDIS_TIMEOUT=10 LOG_FORMAT=json');
    expect(() => readSettings(environment)).toThrow(expect.objectContaining({ message, problems, logFormat: 'json' }));
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
      'KVSTORE_PIPELINE_WINDOW="1ms" and REDIS_PIPELINE_WINDOW="2ms" are two names of one setting ' +
        'and have different values; remove one of them.',
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
  ['TAGGEDSTATS_MOGRIFIER', 'TAGGEDSTATS_MOGRIFIERS'],
  ['REDIS_AUHT_FILE', 'REDIS_AUTH_FILE'],
  ['MERGE_DOMAIN_CONFGI', 'MERGE_DOMAIN_CONFIG'],
  // Too short to be compared without the prefix of a setting.
  ['REDIS_TYP', 'REDIS_TYPE'],
  ['GRPC_PROT', 'GRPC_PORT'],
])('a variable that is not a setting, %s, causes a warning that suggests %s', (name, suggestion) => {
  expect(readSettings({ [name]: '1' }).warnings).toEqual([
    `${name} is not a setting and has no effect; did you mean ${suggestion}?`,
  ]);
});

test.each([
  ...['REDIS_HOST', 'REDIS_PASSWORD', 'KVSTORE_DB', 'MEMCACHE_SERVERS', 'PLAINCACHE_TIMEOUT', 'GRPC_LOG', 'XDS_SERVER'],
  ...['CONFIG_FILE', 'TRACING_URL', 'STATSD_PREFIX', 'PUSHSTATS_ADDR', 'PROMETHEUS_TOKEN', 'RUNTIME_DIR'],
  // A number, unlike in a service link.
  'REDIS_PORT',
  // Neither a secret nor a part of a mogrifier.
  ...['REDIS_POOL_SIZE_FILE', 'TAGGEDSTATS_MOGRIFIER_A_REGEX', 'DOG_STATSD_MOGRIFIERS_A_NAME'],
])('a variable with the prefix of settings that resembles none, %s, causes a warning', (name) => {
  expect(readSettings({ [name]: '6379' }).warnings).toEqual([`${name} is not a setting and has no effect.`]);
});

test.each([
  ['other programs', ['PATH', 'HOSTNAME', 'PORTS', 'NAME', 'TAGS', 'NODE_OPTIONS', 'REDISCLI_AUTH', 'MEMORY_LIMIT']],
  ['libraries', ['OTEL_SERVICE_NAME', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'HTTPS_PROXY', 'GRPC_TRACE', 'GRPC_VERBOSITY']],
  ['grpc-js', ['GRPC_SSL_CIPHER_SUITES', 'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH', 'GRPC_NODE_USE_ALTERNATIVE_RESOLVER']],
  ['grpc-js in trials', ['GRPC_NODE_TRACE', 'GRPC_NODE_VERBOSITY', 'GRPC_EXPERIMENTAL_ENABLE_OUTLIER_DETECTION']],
  ['the libraries of the Go service', ['GRPC_GO_LOG_SEVERITY_LEVEL', 'GRPC_GO_LOG_VERBOSITY_LEVEL', 'DD_ENV']],
  ['the Go service, read by accident', ['GOSTATS_FLUSH_INTERVAL_SECONDS', 'REDISTLSCONFIG_SERVERNAME']],
  ['service links', ['REDIS_SERVICE_HOST', 'REDIS_SERVICE_PORT', 'REDIS_SERVICE_PORT_TCP_REDIS', 'REDIS_PORT']],
  ['a port in service links', ['REDIS_PORT_6379_TCP', 'REDIS_PORT_6379_TCP_ADDR', 'STATSD_PORT_8125_UDP_PROTO']],
  ['a service with a longer name', ['GRPC_GATEWAY_PORT', 'GRPC_GATEWAY_SERVICE_HOST', 'XDS_A_PORT_80_SCTP_PORT']],
])('a variable of %s causes no warning: %j', (_, names) => {
  const link = 'tcp://10.0.0.1:6379';
  expect(readSettings(Object.fromEntries(names.map((name) => [name, link]))).warnings).toEqual([]);
});

test('a default that follows from a setting without a value follows from its absence', () => {
  const names = ['LIMIT_RESPONSE_HEADERS_ENABLED', 'LIMIT_RESPONSE_HEADERS'];
  function valuesIn(text: string) {
    const loaded = readSettings(env(text));
    return names.map((name) => valueOf(loaded, name));
  }
  expect(valuesIn('')).toEqual([false, undefined]);
  expect(valuesIn('LIMIT_RESPONSE_HEADERS=both')).toEqual([true, 'both']);
});

test('a deprecated setting causes one warning', () => {
  const warning = 'REDIS_PIPELINE_LIMIT is deprecated and has no effect; remove it.';
  expect(readSettings(env('REDIS_PIPELINE_LIMIT=8')).warnings).toEqual([warning]);
  expect(readSettings(env('REDIS_PIPELINE_LIMIT=0')).warnings.join()).not.toContain('deprecated');
});
