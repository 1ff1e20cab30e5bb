import { startChecks } from '../../src/main/start-checks';
import { SettingsError, readSettings } from '../../src/settings/read-settings';
import { settingRows } from '../support/data/secret-settings';

/** A small one, on which extreme sizes are too large. */
const MACHINE = { files: 1024, memory: 2 ** 31 };

/** Environments in each of which some settings have an effect. */
const CONTEXTS = [
  { BACKEND_TYPE: 'memory' },
  { KVSTORE_URL: 'a:1', KVSTORE_PERSECOND: 'true', KVSTORE_PERSECOND_URL: 'b:1', KVSTORE_TYPE: 'cluster' },
  { PLAINCACHE_SRV: '_a._tcp.b' },
  { CONFIG_TYPE: 'GRPC_XDS_SOTW', BACKEND_TYPE: 'memory' },
].map((store) => ({
  ...store,
  ...{ USE_PULLMETRICS: 'true', USE_PUSHSTATS: 'true', LIMIT_RESPONSE_HEADERS_ENABLED: 'true', DECISION_LOG: 'all' },
  ...{ LOCAL_CACHE_SIZE_IN_BYTES: '1000', DECISION_LOG_OUTPUT: 'stderr', TRACING_ENABLED: 'true' },
}));

/**
 * Whether a text is accepted without a word wherever the setting has an effect: neither a problem nor a warning names
 * it.
 */
function isSilent(name: string, text: string): boolean {
  return CONTEXTS.every((context) => {
    try {
      const { warnings } = readSettings({ ...context, [name]: text }, undefined, startChecks(MACHINE));
      return !warnings.some((warning) => warning.startsWith(name) && !warning.includes('has no effect, because'));
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      return !error.problems.some((problem) => problem.includes(name));
    }
  });
}

/**
 * The settings whose type is described by a pattern, apart from those that need no word. @param harmless why not, by
 * name
 */
function silent(kind: RegExp, text: string, harmless: Readonly<Record<string, string>>): readonly string[] {
  const names = settingRows.filter(({ type }) => kind.test(type.allowed)).map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(Object.keys(harmless)));
  return names.filter((name) => isSilent(name, text) !== name in harmless);
}

describe('every setting that is accepted with an extreme value has a warning, or a reason why it does no harm', () => {
  const NUMBER = /^(?:whole )?number/;
  const DURATION = /^duration/;
  const OFF = 'documented: off, none or the default';

  test('a number of 0', () => {
    expect(
      silent(NUMBER, '0', {
        PORT: 'any free port',
        GRPC_PORT: 'any free port',
        DEBUG_PORT: 'any free port',
        NEAR_LIMIT_RATIO: 'every hit is near the limit',
        DECISION_LOG_SAMPLE: 'no line is written',
        TRACING_SAMPLING_RATE: 'no trace is begun here',
        OFFENDERS_SIZE: OFF,
        OFFENDERS_METRICS: OFF,
        EXPIRATION_JITTER_MAX_SECONDS: 'no jitter',
        STORE_BREAKER_FAILURES: OFF,
        LOCAL_CACHE_SIZE_IN_BYTES: OFF,
        STATS_MAX_RUNTIME_KEYS: 'all are counted under their rules',
        KVSTORE_CLUSTER_PIPELINE_PARALLELISM: OFF,
        KVSTORE_PERSECOND_CLUSTER_PIPELINE_PARALLELISM: OFF,
        KVSTORE_PIPELINE_LIMIT: OFF,
        KVSTORE_PERSECOND_PIPELINE_LIMIT: OFF,
        XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: OFF,
        XDS_CLIENT_BACKOFF_RANDOM_FACTOR: 'every wait is the first one',
      }),
    ).toEqual([]);
  });

  test('a number of 2^53 - 1', () => {
    expect(
      silent(NUMBER, '9007199254740991', {
        GRPC_MAX_CONNECTIONS: 'file descriptors bound them',
        GRPC_MAX_STREAMING_CALLS_PER_CONNECTION: 'a connection has at most 1,024 streams',
        GRPC_MAX_STREAMING_CALLS: 'connections and their streams bound them',
        STORE_BREAKER_FAILURES: 'the breaker never opens',
        KVSTORE_CLUSTER_PIPELINE_PARALLELISM: 'at most the pool size',
        KVSTORE_PERSECOND_CLUSTER_PIPELINE_PARALLELISM: 'at most the pool size',
        PLAINCACHE_MAX_IDLE_CONNS: 'one connection keeps within any maximum',
      }),
    ).toEqual([]);
  });

  test('a duration of 1 ns', () => {
    expect(
      silent(DURATION, '1ns', {
        KVSTORE_PIPELINE_WINDOW: 'documented: a turn of the event loop',
        KVSTORE_PERSECOND_PIPELINE_WINDOW: 'as that',
        KVSTORE_POOL_ON_EMPTY_WAIT_DURATION: 'the policy applies at once',
        KVSTORE_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION: 'as that',
        CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: 'documented: at least 100ms',
        GRPC_MAX_CONNECTION_AGE_GRACE: 'a connection closes with its age',
        LOCAL_CACHE_MAX_AGE: 'documented: whole seconds',
        SHUTDOWN_DELAY: 'none',
      }),
    ).toEqual([]);
  });

  test('a duration of 10 years', () => {
    expect(
      silent(DURATION, '87600h', {
        GRPC_MAX_CONNECTION_AGE: 'as never',
        GRPC_MAX_CONNECTION_AGE_GRACE: 'as never',
        EVENT_LOOP_TIMEOUT: 'as 0, which is for ever',
        LOCAL_CACHE_MAX_AGE: 'a key is kept for its window at most',
      }),
    ).toEqual([]);
  });

  const TEXT = /^(?!whole|number|duration|true|list of)/;
  const SECRETS = { KVSTORE_AUTH: 'a password', KVSTORE_PERSECOND_AUTH: 'a password' };
  const ALL_SECRETS = {
    ...SECRETS,
    KVSTORE_SENTINEL_AUTH: 'a password',
    KVSTORE_PERSECOND_SENTINEL_AUTH: 'a password',
  };

  test('a text with a control character', () => {
    expect(silent(TEXT, 'a\u0007b', ALL_SECRETS)).toEqual([]);
  });

  test('a text of 5,000 characters', () => {
    expect(silent(TEXT, 'x'.repeat(5_000), ALL_SECRETS)).toEqual([]);
  });

  test('a text with a blank', () => {
    const free = settingRows
      .filter(({ type }) => /^(?:file path|text$|stdout)/.test(type.allowed) && type.secret === undefined)
      .map(({ name }) => [name, 'a path, or a name that is only shown'])
      // These are problems anyway: a key of memcached, and files that are needed or do not exist.
      .filter(
        ([name = '']) =>
          !['CACHE_KEY_PREFIX', 'GRPC_CLIENT_TLS_CACERT', 'PULLMETRICS_MAPPER_YAML'].includes(name) &&
          !name.startsWith('DEBUG_TLS_'),
      );
    expect(silent(TEXT, 'a b', { ...ALL_SECRETS, ...(Object.fromEntries(free) as Record<string, string>) })).toEqual(
      [],
    );
  });
});
