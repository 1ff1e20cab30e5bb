import { SettingsError, readSettings } from '../../src/settings/read-settings';
import { problemsOf } from './problems-of';

describe('reading the settings', () => {
  test('makes typed values of the variables', () => {
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
    // @ts-expect-error: a setting without a default may be undefined, and the type says so
    const url: string = settings.kvstoreUrl;
    // @ts-expect-error: what has no row in the table is no field
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

  test('gives an object that nobody can change, not even in its depths', () => {
    const { settings } = readSettings({ EXTRA_TAGS: 'a:b' });
    expect(() => Object.assign(settings, { port: 1 })).toThrow(TypeError);
    expect(() => Object.assign(settings.extraTags, { a: 'c' })).toThrow(TypeError);
    expect(() => Object.assign(settings.pullmetricsAddr, { port: 1 })).toThrow(TypeError);
    expect(() => Object.assign(settings.taggedstatsMogrifiers, ['x'])).toThrow(TypeError);
  });

  test('tells which settings the environment gave, and under which name', () => {
    const { given } = readSettings({ REDIS_PIPELINE_WINDOW: '1ms', PORT: '8080', HOST: '', OTHER: 'x' });
    expect([...given]).toEqual([
      ['port', 'PORT'],
      ['kvstorePipelineWindow', 'REDIS_PIPELINE_WINDOW'],
    ]);
  });

  test('knows a variable by its exact name only, as the Go service does', () => {
    expect(readSettings({ port: '1', Port: '2' }).settings.port).toBe(8080);
  });

  test('takes LOG_LEVEL in any case, and the words of the Go service for the nearest level', () => {
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

  describe('pushes statistics by default', () => {
    test.each([
      [{}, true],
      [{ USE_DOG_STATSD: 'true' }, false],
      [{ USE_PROMETHEUS: 'true' }, false],
      [{ USE_PROMETHEUS: 'true', USE_STATSD: 'true' }, true],
      [{ USE_STATSD: 'false' }, false],
    ])('with %j: %s', (environment, push) => {
      expect(readSettings(environment).settings.usePushstats).toBe(push);
    });
  });
});

describe('settings that cannot be used', () => {
  test('are all named in one error, each with what was given and what is allowed', () => {
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
        'These settings cannot be used:',
        '  PORT="tcp://10.0.0.1:80" cannot be used; allowed: whole number, 0 to 65535 (a Kubernetes service link seems to have set it: give the pod enableServiceLinks: false, or its own value for the variable).',
        '  GRPC_PORT="99999" cannot be used; allowed: whole number, 0 to 65535.',
        '  NEAR_LIMIT_RATIO="1.5" cannot be used; allowed: number, 0 to 1.',
        '  SHADOW_MODE="yes" cannot be used; allowed: true or false.',
        '  LIMIT_RESET_HEADER="X Reset" cannot be used; allowed: HTTP header name.',
        '  REDIS_TIMEOUT="10" cannot be used; allowed: duration, 0 or more (a number needs a unit, as in 500ms or 10s).',
        '  STATS_FLUSH_INTERVAL="0" cannot be used; allowed: duration, above 0.',
        '  PROMETHEUS_PATH="metrics" cannot be used; allowed: path that begins with /.',
      ].join('\n'),
    );
  });

  test('are shown on one line and not without end', () => {
    const [problem = ''] = problemsOf({ PORT: `1\n2${'x'.repeat(10_000)}` });
    expect(problem).toMatch(/^PORT="1\\n2x+…" cannot be used/);
    expect(problem.length).toBeLessThan(250);
  });

  test('draw no further complaint from the checks that look at them', () => {
    expect(problemsOf({ GRPC_SERVER_USE_TLS: 'maybe', GRPC_CLIENT_TLS_CACERT: '/ca.pem' })).toEqual([
      'GRPC_SERVER_USE_TLS="maybe" cannot be used; allowed: true or false.',
    ]);
  });

  test('under one name are named even where the other name is good', () => {
    expect(problemsOf({ KVSTORE_TIMEOUT: '5s', REDIS_TIMEOUT: '5' })).toEqual([
      expect.stringContaining('REDIS_TIMEOUT="5" cannot be used'),
    ]);
  });

  test('with two names and two values are shown with both', () => {
    expect(problemsOf({ KVSTORE_PIPELINE_WINDOW: '1ms', REDIS_PIPELINE_WINDOW: '2ms' })).toEqual([
      'KVSTORE_PIPELINE_WINDOW="1ms" and REDIS_PIPELINE_WINDOW="2ms" are one setting with two different values; keep one of them.',
    ]);
  });

  test('are compared by what they mean', () => {
    expect(readSettings({ KVSTORE_PIPELINE_WINDOW: '1ms', REDIS_PIPELINE_WINDOW: '1000us' }).settings).toMatchObject({
      kvstorePipelineWindow: 1,
    });
  });
});

describe('a secret never stands in a message', () => {
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

  test.each(environments)('of an error: %j', (environment) => {
    const problems = problemsOf(environment);
    expect(problems).not.toEqual([]);
    expect(problems.join('\n')).not.toContain(SECRET);
  });

  test('of a warning', () => {
    const { warnings } = readSettings({
      CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: `a:${SECRET},a:${SECRET}`,
      REDIS_AUTH: SECRET,
      BACKEND_TYPE: 'memory',
      REDIS_URL: `redis://:${SECRET}@a:1`,
    });
    expect(warnings).toContainEqual(expect.stringContaining('item 2 repeats a key'));
    expect(warnings.join('\n')).not.toContain(SECRET);
  });

  test('while the rest of an address does', () => {
    expect(problemsOf({ KVSTORE_URL: 'redis://u:p@a:1/2', REDIS_URL: 'b:2' })).toContain(
      'KVSTORE_URL="redis://***@a:1/2" and REDIS_URL="b:2" are one setting with two different values; keep one of them.',
    );
  });
});

describe('a variable that is no setting', () => {
  test.each([
    ['RUNTIME_WATCHROOT', 'RUNTIME_WATCH_ROOT'],
    ['REDIS_POOLSIZE', 'REDIS_POOL_SIZE'],
    ['KVSTORE_PIPELINE_WINDOWS', 'KVSTORE_PIPELINE_WINDOW'],
    ['NEAR_LIMIT_RAITO', 'NEAR_LIMIT_RATIO'],
    ['LOG_FROMAT', 'LOG_FORMAT'],
    ['TAGGEDSTATS_MOGRIFIER', 'TAGGEDSTATS_MOGRIFIERS'],
  ])('%s gets a warning that asks whether %s was meant', (name, meant) => {
    expect(readSettings({ [name]: '1' }).warnings).toEqual([`${name} is no setting; did you mean ${meant}?`]);
  });

  test('of another program, of Kubernetes or of a library is left alone', () => {
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
