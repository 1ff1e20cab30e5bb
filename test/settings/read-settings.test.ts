import { SettingsError, readSettings } from '../../src/settings/read-settings';
import { problemsOf } from './problems-of';

describe('readSettings', () => {
  test('parses the variables into typed values', () => {
    const { settings } = readSettings({
      PORT: '0x1f90',
      KVSTORE_PIPELINE_WINDOW: '150us',
      SHADOW_MODE: 'T',
      LIMIT_LIMIT_HEADER: 'x-RateLimit-Limit',
      LOG_LEVEL: 'TRACE',
    });
    const port: number = settings.port;
    const window: number = settings.kvstorePipelineWindow;
    const shadowMode: boolean = settings.shadowMode;
    const header: string = settings.limitLimitHeader;
    const level: 'fatal' | 'error' | 'warning' | 'info' | 'debug' = settings.logLevel;
    // @ts-expect-error: a setting without a default may be undefined, and its type includes undefined
    const url: string = settings.kvstoreUrl;
    // @ts-expect-error: a field needs a row in the table
    const unknown: unknown = settings.kvstoreColour;
    expect([port, window, shadowMode, header, level, url, unknown]).toEqual([
      8080,
      0.15,
      true,
      'x-RateLimit-Limit',
      'debug',
      undefined,
      undefined,
    ]);
  });

  test('returns a deeply frozen object', () => {
    const { settings } = readSettings({ EXTRA_TAGS: 'a:b' });
    expect(() => Object.assign(settings, { port: 1 })).toThrow(TypeError);
    expect(() => Object.assign(settings.extraTags, { a: 'c' })).toThrow(TypeError);
    expect(() => Object.assign(settings.pullmetricsAddr, { port: 1 })).toThrow(TypeError);
    expect(() => Object.assign(settings.taggedstatsMogrifiers, ['x'])).toThrow(TypeError);
  });

  test('returns which settings the environment sets, with their variables', () => {
    const { given } = readSettings({ REDIS_PIPELINE_WINDOW: '1ms', PORT: '8080', HOST: '', OTHER: 'x' });
    expect([...given]).toEqual([
      ['port', 'PORT'],
      ['kvstorePipelineWindow', 'REDIS_PIPELINE_WINDOW'],
    ]);
  });

  test('treats names of variables as case-sensitive, like the Go service', () => {
    expect(readSettings({ port: '1', Port: '2' }).settings.port).toBe(8080);
  });

  test('accepts LOG_LEVEL in any case, and maps the levels that only the Go service has to the nearest one', () => {
    function levelOf(text: string) {
      return readSettings({ LOG_LEVEL: text }).settings.logLevel;
    }
    expect(['DEBUG', 'trace', 'Info', 'warning', 'WARN', 'error', 'fatal', 'panic'].map(levelOf)).toEqual([
      'debug',
      'debug',
      'info',
      'warning',
      'warning',
      'error',
      'fatal',
      'fatal',
    ]);
  });

  describe('usePushstats', () => {
    test.each([
      [{}, true],
      [{ USE_DOG_STATSD: 'true' }, false],
      [{ USE_PROMETHEUS: 'true' }, false],
      [{ USE_PROMETHEUS: 'true', USE_STATSD: 'true' }, true],
      [{ USE_STATSD: 'false' }, false],
    ])('with %j is %s', (environment, push) => {
      expect(readSettings(environment).settings.usePushstats).toBe(push);
    });
  });
});

describe('invalid settings', () => {
  test('are all listed in one error, each with its value and what is allowed', () => {
    function read() {
      return readSettings({
        PORT: 'tcp://10.0.0.1:80',
        GRPC_PORT: '99999',
        SHADOW_MODE: 'yes',
        REDIS_TIMEOUT: '10',
        STATS_FLUSH_INTERVAL: '0',
        NEAR_LIMIT_RATIO: '1.5',
        LIMIT_RESET_HEADER: 'X Reset',
        PROMETHEUS_PATH: 'metrics',
      });
    }
    expect(read).toThrow(SettingsError);
    expect(read).toThrow(
      [
        'The settings are invalid (weir --help describes them):',
        '  PORT="tcp://10.0.0.1:80" is invalid; allowed: whole number, 0 to 65535 (it looks like a Kubernetes service link: set enableServiceLinks: false in the pod, or set the variable explicitly).',
        '  GRPC_PORT="99999" is invalid; allowed: whole number, 0 to 65535.',
        '  NEAR_LIMIT_RATIO="1.5" is invalid; allowed: number, 0 to 1.',
        '  SHADOW_MODE="yes" is invalid; allowed: true or false.',
        '  LIMIT_RESET_HEADER="X Reset" is invalid; allowed: HTTP header name.',
        '  REDIS_TIMEOUT="10" is invalid; allowed: duration, 0 or more (add a unit, as in 500ms or 10s).',
        '  STATS_FLUSH_INTERVAL="0" is invalid; allowed: duration, above 0.',
        '  PROMETHEUS_PATH="metrics" is invalid; allowed: path that begins with /.',
      ].join('\n'),
    );
  });

  test('are shown on one line and truncated', () => {
    const [problem = ''] = problemsOf({ PORT: `1\n2${'x'.repeat(10_000)}` });
    expect(problem).toMatch(/^PORT="1\\n2x+…" is invalid/);
    expect(problem.length).toBeLessThan(250);
  });

  test('are not reported again by the checks that concern them', () => {
    expect(problemsOf({ GRPC_SERVER_USE_TLS: 'maybe', GRPC_CLIENT_TLS_CACERT: '/ca.pem' })).toEqual([
      'GRPC_SERVER_USE_TLS="maybe" is invalid; allowed: true or false.',
    ]);
  });

  test('are reported under one name even when the other name has a valid value', () => {
    expect(problemsOf({ KVSTORE_TIMEOUT: '5s', REDIS_TIMEOUT: '5' })).toEqual([
      expect.stringContaining('REDIS_TIMEOUT="5" is invalid'),
    ]);
  });

  test('include a name and its alias with different values, and show both', () => {
    expect(problemsOf({ KVSTORE_PIPELINE_WINDOW: '1ms', REDIS_PIPELINE_WINDOW: '2ms' })).toEqual([
      'KVSTORE_PIPELINE_WINDOW="1ms" and REDIS_PIPELINE_WINDOW="2ms" are two names of one setting and have different values; remove one of them.',
    ]);
  });

  test('do not include a name and its alias with the same value in different spellings', () => {
    expect(readSettings({ KVSTORE_PIPELINE_WINDOW: '1ms', REDIS_PIPELINE_WINDOW: '1000us' }).settings).toMatchObject({
      kvstorePipelineWindow: 1,
    });
  });
});

describe('messages never contain a secret', () => {
  const SECRET = 'hunter2';
  const environments = [
    { KVSTORE_AUTH: SECRET, REDIS_AUTH: `user:${SECRET}` },
    { KVSTORE_SENTINEL_AUTH: SECRET, REDIS_SENTINEL_AUTH: `${SECRET}:${SECRET}` },
    { KVSTORE_PERSECOND_AUTH: SECRET, REDIS_PERSECOND_AUTH: `x${SECRET}` },
    { KVSTORE_URL: `redis://user:${SECRET}@a:1`, REDIS_URL: `redis://user:${SECRET}@b:1` },
    { KVSTORE_URL: `redis://:p@${SECRET}@a:1`, REDIS_URL: `rediss://:${SECRET}/?,x@b:1,redis://:${SECRET}@c:1` },
    { KVSTORE_URL: `redis://a:1?password=${SECRET}`, REDIS_URL: `user:${SECRET}@a:1` },
    { KVSTORE_URL: `redis://user:${SECRET}`, REDIS_URL: `redis://a:1,redis://user:${SECRET}` },
    { PORT: `tcp://:${SECRET}`, PUSHSTATS_HOST: `redis://user:${SECRET}`, LOG_LEVEL: `x://y:1/?p=${SECRET}` },
    { KVSTORE_TYPE: 'sentinel', KVSTORE_URL: `redis://:${SECRET}@a:1` },
    { KVSTORE_TYPE: 'cluster', KVSTORE_URL: `redis://:${SECRET}@a:1,,` },
    { KVSTORE_URL: `http://:${SECRET}@a:1`, KVSTORE_PERSECOND: 'true', KVSTORE_PERSECOND_URL: `${SECRET}@a` },
    { PORT: `http://user:${SECRET}@host`, PUSHSTATS_HOST: `redis://:${SECRET}@a`, LOG_LEVEL: `x://u:${SECRET}@y` },
    { CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: `authorization ${SECRET}` },
    { CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: `bad name ${SECRET}:${SECRET}` },
    { CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: `a:${SECRET},a:${SECRET},:` },
  ];

  test.each(environments)('in an error: %j', (environment) => {
    const problems = problemsOf(environment);
    expect(problems).not.toEqual([]);
    expect(problems.join('\n')).not.toContain(SECRET);
  });

  test('in a warning', () => {
    const { warnings } = readSettings({
      CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: `a:${SECRET},a:${SECRET}`,
      REDIS_AUTH: SECRET,
      BACKEND_TYPE: 'memory',
      REDIS_URL: `redis://:${SECRET}@a:1`,
    });
    expect(warnings).toContainEqual(expect.stringContaining('item 2 repeats a key'));
    expect(warnings.join('\n')).not.toContain(SECRET);
  });

  test('but show the rest of an address', () => {
    expect(problemsOf({ KVSTORE_URL: 'redis://u:p@a:1/2', REDIS_URL: 'b:2' })).toContain(
      'KVSTORE_URL="redis://***@a:1/2" and REDIS_URL="b:2" are two names of one setting and have different values; remove one of them.',
    );
  });
});

describe('a variable that is not a setting', () => {
  test.each([
    ['RUNTIME_WATCHROOT', 'RUNTIME_WATCH_ROOT'],
    ['REDIS_POOLSIZE', 'REDIS_POOL_SIZE'],
    ['KVSTORE_PIPELINE_WINDOWS', 'KVSTORE_PIPELINE_WINDOW'],
    ['NEAR_LIMIT_RAITO', 'NEAR_LIMIT_RATIO'],
    ['LOG_FROMAT', 'LOG_FORMAT'],
    ['TAGGEDSTATS_MOGRIFIER', 'TAGGEDSTATS_MOGRIFIERS'],
  ])('%s causes a warning that suggests %s', (name, suggestion) => {
    expect(readSettings({ [name]: '1' }).warnings).toEqual([
      `${name} is not a setting and has no effect; did you mean ${suggestion}?`,
    ]);
  });

  test('of another program, of Kubernetes or of a library causes no warning', () => {
    const others = [
      'PATH',
      'HOME',
      'HOSTNAME',
      'PORTS',
      'NAME',
      'TAGS',
      'NODE_OPTIONS',
      'GRPC_TRACE',
      'GRPC_VERBOSITY',
      'REDIS_PORT',
      'REDIS_HOST',
      'REDIS_PASSWORD',
      'REDIS_SERVICE_HOST',
      'REDIS_SERVICE_PORT',
      'REDIS_PORT_6379_TCP_ADDR',
      'STATSD_SERVICE_HOST',
      'STATSD_PORT_8125_UDP_PROTO',
      'MEMCACHE_PORT',
      'PROMETHEUS_PORT',
      'OTEL_SERVICE_NAME',
      'OTEL_EXPORTER_OTLP_ENDPOINT',
      'HTTPS_PROXY',
      'DD_SERVICE',
      'SSL_CERT_FILE',
    ];
    const environment = Object.fromEntries(others.map((name) => [name, 'x']));
    expect(readSettings(environment).warnings).toEqual([]);
  });
});
