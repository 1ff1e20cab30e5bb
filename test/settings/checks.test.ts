import type { Environment } from '../../src/settings/variables/environment';
import { readSettings } from '../../src/settings/read-settings';
import { problemsOf } from './problems-of';

/** Problems, but for those that the features of a later release give rise to. */
function contradictions(environment: Environment) {
  return problemsOf(environment).filter((problem) => !problem.includes('a later release brings'));
}

const refused: readonly (readonly [string, Environment, string])[] = [
  [
    'TLS without a certificate',
    { GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_KEY: '/key.pem' },
    'GRPC_SERVER_USE_TLS needs GRPC_SERVER_TLS_CERT.',
  ],
  [
    'TLS without a key',
    { GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_CERT: '/cert.pem' },
    'GRPC_SERVER_USE_TLS needs GRPC_SERVER_TLS_KEY.',
  ],
  [
    'mutual TLS without TLS',
    { GRPC_CLIENT_TLS_CACERT: '/ca.pem' },
    'GRPC_CLIENT_TLS_CACERT asks callers for certificates, which needs GRPC_SERVER_USE_TLS=true.',
  ],
  [
    'a name for callers that show no certificate',
    { GRPC_CLIENT_TLS_SAN: 'edge.example' },
    'GRPC_CLIENT_TLS_SAN needs GRPC_CLIENT_TLS_CACERT: without it no caller shows a certificate.',
  ],
  [
    'a certificate without its key',
    { REDIS_TLS: 'true', REDIS_TLS_CLIENT_CERT: '/cert.pem' },
    'REDIS_TLS_CLIENT_CERT is set without KVSTORE_TLS_CLIENT_KEY; a certificate and its key go together.',
  ],
  [
    'a key without its certificate',
    { CONFIG_GRPC_XDS_SERVER_USE_TLS: '1', CONFIG_GRPC_XDS_CLIENT_TLS_KEY: '/key.pem' },
    'CONFIG_GRPC_XDS_CLIENT_TLS_KEY is set without CONFIG_GRPC_XDS_CLIENT_TLS_CERT; a certificate and its key go together.',
  ],
  ['a key-value store without an address', { BACKEND_TYPE: 'redis' }, 'BACKEND_TYPE=kvstore needs KVSTORE_URL.'],
  [
    'a single store with several addresses',
    { REDIS_URL: 'a:1,b:2' },
    'REDIS_URL must be one host:port, one socket path, or one redis:// or rediss:// URL, since KVSTORE_TYPE is single.',
  ],
  [
    'a store without a port',
    { REDIS_URL: 'localhost' },
    'REDIS_URL must be one host:port, one socket path, or one redis:// or rediss:// URL, since KVSTORE_TYPE is single.',
  ],
  [
    'sentinel without a sentinel',
    { KVSTORE_URL: 'mymaster', KVSTORE_TYPE: 'SENTINEL' },
    'KVSTORE_URL must be the name of the master, then at least one sentinel, since KVSTORE_TYPE is sentinel.',
  ],
  [
    'a sentinel without a port',
    { KVSTORE_URL: 'mymaster,a:1,b', KVSTORE_TYPE: 'sentinel' },
    'KVSTORE_URL must have host:port as item 3, since KVSTORE_TYPE is sentinel.',
  ],
  [
    'a cluster by socket path',
    { KVSTORE_URL: '/run/a.sock', REDIS_TYPE: 'cluster' },
    'KVSTORE_URL must have host:port as item 1, since REDIS_TYPE is cluster.',
  ],
  [
    'a list that ends in a comma',
    { KVSTORE_URL: 'a:1,', KVSTORE_TYPE: 'cluster' },
    'KVSTORE_URL has an empty item, since KVSTORE_TYPE is cluster.',
  ],
  [
    'a second store without an address',
    { KVSTORE_URL: 'a:1', KVSTORE_PERSECOND: 'true' },
    'KVSTORE_PERSECOND needs KVSTORE_PERSECOND_URL.',
  ],
  [
    'a second store with a bad address',
    { KVSTORE_URL: 'a:1', KVSTORE_PERSECOND: 'true', REDIS_PERSECOND_URL: 'b' },
    'REDIS_PERSECOND_URL must be one host:port, one socket path, or one redis:// or rediss:// URL, since KVSTORE_PERSECOND_TYPE is single.',
  ],
  [
    'a memcache-type store without servers',
    { BACKEND_TYPE: 'memcache' },
    'BACKEND_TYPE=plaincache needs PLAINCACHE_HOST_PORT or PLAINCACHE_SRV.',
  ],
  [
    'servers from a list and from a record',
    { MEMCACHE_HOST_PORT: 'a:1', MEMCACHE_SRV: '_memcache._tcp.example' },
    'MEMCACHE_HOST_PORT and MEMCACHE_SRV both name the servers; keep one of them.',
  ],
  [
    'two listeners on one port',
    { PORT: '8081' },
    'PORT and GRPC_PORT are both port 8081; each listener needs its own.',
  ],
  [
    'two listeners on one port of one address',
    { HOST: '127.0.0.1', PORT: '6070', DEBUG_HOST: '127.0.0.1' },
    'PORT and DEBUG_PORT are both port 6070; each listener needs its own.',
  ],
  [
    'a page to scrape on the port of another listener',
    { USE_PROMETHEUS: 'true', PROMETHEUS_ADDR: 'localhost:6070' },
    'DEBUG_PORT and PROMETHEUS_ADDR are both port 6070; each listener needs its own.',
  ],
  [
    'one socket for two ways to write statistics',
    { STATSD_HOST: 'unixstream:///dsd.socket', USE_STATSD: 'true', USE_TAGGEDSTATS: 'true' },
    'STATSD_HOST is one socket, whose daemon would count everything twice, plain and with tags; keep one of USE_STATSD and USE_TAGGEDSTATS.',
  ],
];

test.each(refused)('%s is refused', (_, environment, problem) => {
  expect(contradictions(environment)).toContain(problem);
});

test.each<readonly [string, Environment]>([
  [
    'a whole TLS set-up',
    {
      GRPC_SERVER_USE_TLS: '1',
      GRPC_SERVER_TLS_CERT: '/c',
      GRPC_SERVER_TLS_KEY: '/k',
      GRPC_CLIENT_TLS_CACERT: '/ca',
      GRPC_CLIENT_TLS_SAN: 'a',
    },
  ],
  ['half a pair of files while TLS is off', { KVSTORE_TLS_CLIENT_CERT: '/c', PLAINCACHE_TLS_CLIENT_KEY: '/k' }],
  ['a single store by host and port', { KVSTORE_URL: 'localhost:6379' }],
  ['a single store by path', { KVSTORE_URL: '/run/redis.sock' }],
  ['a single store by URL', { KVSTORE_URL: 'rediss://user:secret@host:6379/1' }],
  ['a sentinel list', { KVSTORE_URL: 'mymaster, a:26379, redis://b:26379', KVSTORE_TYPE: 'sentinel' }],
  ['a cluster of one node', { KVSTORE_URL: 'a:7000', KVSTORE_TYPE: 'cluster' }],
  ['two stores', { KVSTORE_URL: 'a:1', KVSTORE_PERSECOND: '1', KVSTORE_PERSECOND_URL: '/b.sock' }],
  ['memory beside an address of a store', { BACKEND_TYPE: 'memory', KVSTORE_URL: 'anything' }],
  ['memcached by list', { PLAINCACHE_HOST_PORT: 'a:11211, /run/memcached.sock' }],
  ['memcached by record', { PLAINCACHE_SRV: '_memcache._tcp.example' }],
  ['two ports that the system chooses', { PORT: '0', GRPC_PORT: '0', DEBUG_PORT: '0' }],
  ['one port on two addresses', { PORT: '8000', HOST: '127.0.0.1', DEBUG_PORT: '8000', DEBUG_HOST: '127.0.0.2' }],
  ['the port of gRPC, where that listens on a socket', { PORT: '8081', GRPC_UDS: '/run/weir.sock' }],
  ['a stream socket for statistics with tags', { STATSD_HOST: 'unixstream:///dsd.socket', USE_TAGGEDSTATS: 'true' }],
  ['a datagram socket for statistics without tags', { STATSD_HOST: 'unix:///dsd.socket', USE_STATSD: 'true' }],
  ['one host for two ways to write statistics', { USE_STATSD: 'true', USE_TAGGEDSTATS: 'true' }],
  ['the port of a page to scrape that is off', { PORT: '9090' }],
])('%s is accepted', (_, environment) => {
  expect(contradictions(environment)).toEqual([]);
});

describe('the kind of store, where BACKEND_TYPE is not set', () => {
  // A kind that a later release brings is refused with its name, so that both ways show which one was chosen.
  function storeOf(environment: Environment) {
    const problems = problemsOf(environment).filter((problem) => problem.startsWith('BACKEND_TYPE'));
    return problems[0]?.match(/therefore (\w+)/)?.[1] ?? readSettings(environment).settings.backendType;
  }

  test.each<readonly [string, Environment]>([
    ['memory', {}],
    ['kvstore', { KVSTORE_URL: 'a:1' }],
    ['kvstore', { REDIS_URL: 'a:1' }],
    ['plaincache', { PLAINCACHE_HOST_PORT: 'a:1' }],
    ['plaincache', { MEMCACHE_SRV: '_a._tcp.b' }],
    ['kvstore', { REDIS_URL: 'a:1', MEMCACHE_HOST_PORT: 'b:1' }],
    ['memory', { BACKEND_TYPE: 'memory', REDIS_URL: 'a:1' }],
  ])('is %s with %j', (store, environment) => {
    expect(storeOf(environment)).toBe(store);
  });
});

test('a store at a path is reached by a Unix socket, any other by TCP, unless KVSTORE_SOCKET_TYPE says otherwise', () => {
  function socketOf(environment: Environment) {
    return readSettings({ BACKEND_TYPE: 'memory', ...environment }).settings.kvstoreSocketType;
  }
  expect(socketOf({ KVSTORE_URL: '/run/redis.sock' })).toBe('unix');
  expect(socketOf({ KVSTORE_URL: 'unix:///run/redis.sock' })).toBe('unix');
  expect(socketOf({ KVSTORE_URL: 'a:1' })).toBe('tcp');
  expect(socketOf({ KVSTORE_URL: 'a:1', REDIS_SOCKET_TYPE: 'TCP6' })).toBe('tcp6');
});

test('a deprecated setting that is used gets a warning', () => {
  expect(readSettings({ REDIS_PIPELINE_LIMIT: '8' }).warnings).toContain(
    'REDIS_PIPELINE_LIMIT is deprecated and does nothing.',
  );
  expect(readSettings({ REDIS_PIPELINE_LIMIT: '0' }).warnings).not.toContainEqual(
    expect.stringContaining('deprecated'),
  );
});

test('a window of its own for the second store gets a warning: the one window serves both', () => {
  function ofWindows(environment: Environment) {
    return readSettings(environment).warnings.filter((warning) => warning.includes('PIPELINE_WINDOW'));
  }
  expect(ofWindows({ REDIS_PERSECOND_PIPELINE_WINDOW: '1ms' })).toEqual([
    'REDIS_PERSECOND_PIPELINE_WINDOW has no effect: the window of KVSTORE_PIPELINE_WINDOW serves both stores.',
  ]);
  expect(ofWindows({ REDIS_PERSECOND_PIPELINE_WINDOW: '0', REDIS_PIPELINE_WINDOW: '1ms' })).toEqual([]);
});
