import type { Environment } from '../../src/settings/variables/environment';
import { readSettings } from '../../src/settings/read-settings';
import { problemsOf } from './problems-of';

const contradictory: readonly (readonly [string, Environment, string])[] = [
  [
    'TLS without a certificate',
    { GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_KEY: '/key.pem' },
    'GRPC_SERVER_USE_TLS is true, but GRPC_SERVER_TLS_CERT is not set; set it to the path of a PEM file.',
  ],
  [
    'TLS without a key',
    { GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_CERT: '/cert.pem' },
    'GRPC_SERVER_USE_TLS is true, but GRPC_SERVER_TLS_KEY is not set; set it to the path of a PEM file.',
  ],
  [
    'mutual TLS without TLS',
    { GRPC_CLIENT_TLS_CACERT: '/ca.pem' },
    'GRPC_CLIENT_TLS_CACERT is set, but TLS is off; set GRPC_SERVER_USE_TLS=true to verify client certificates, or remove GRPC_CLIENT_TLS_CACERT.',
  ],
  [
    'a DNS name for clients that present no certificate',
    { GRPC_CLIENT_TLS_SAN: 'edge.example' },
    'GRPC_CLIENT_TLS_SAN is set, but clients present no certificate unless GRPC_CLIENT_TLS_CACERT is set; set both or neither.',
  ],
  [
    'a certificate without its key',
    { REDIS_URL: 'a:1', REDIS_TLS: 'true', REDIS_TLS_CLIENT_CERT: '/cert.pem' },
    'REDIS_TLS_CLIENT_CERT is set, but KVSTORE_TLS_CLIENT_KEY is not; a certificate and its key must be set together.',
  ],
  [
    'a certificate without its key for the second store',
    {
      KVSTORE_URL: 'a:1',
      KVSTORE_PERSECOND: 'true',
      KVSTORE_PERSECOND_URL: 'b:1',
      KVSTORE_PERSECOND_TLS: 'true',
      KVSTORE_TLS_CLIENT_CERT: '/cert.pem',
    },
    'KVSTORE_TLS_CLIENT_CERT is set, but KVSTORE_TLS_CLIENT_KEY is not; a certificate and its key must be set together.',
  ],
  [
    'a key without its certificate for a store whose address requests TLS',
    { KVSTORE_URL: 'rediss://store:6379', KVSTORE_TLS_CLIENT_KEY: '/key.pem' },
    'KVSTORE_TLS_CLIENT_KEY is set, but KVSTORE_TLS_CLIENT_CERT is not; a certificate and its key must be set together.',
  ],
  [
    'a key without its certificate',
    {
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_SERVER_USE_TLS: '1',
      CONFIG_GRPC_XDS_CLIENT_TLS_KEY: '/key.pem',
    },
    'CONFIG_GRPC_XDS_CLIENT_TLS_KEY is set, but CONFIG_GRPC_XDS_CLIENT_TLS_CERT is not; a certificate and its key must be set together.',
  ],
  [
    'a key-value store without an address',
    { BACKEND_TYPE: 'redis' },
    'BACKEND_TYPE is kvstore, but KVSTORE_URL is not set; set it to the address of Redis or Valkey.',
  ],
  [
    'a single store with several addresses',
    { REDIS_URL: 'a:1,b:2' },
    'REDIS_URL is invalid with KVSTORE_TYPE=single: it is not the address of one server; allowed: one host:port, one socket path, or one redis:// or rediss:// URL.',
  ],
  [
    'a store without a port',
    { REDIS_URL: 'localhost' },
    'REDIS_URL is invalid with KVSTORE_TYPE=single: it is not the address of one server; allowed: one host:port, one socket path, or one redis:// or rediss:// URL.',
  ],
  [
    'a sentinel deployment without a sentinel',
    { KVSTORE_URL: 'mymaster', KVSTORE_TYPE: 'SENTINEL' },
    'KVSTORE_URL is invalid with KVSTORE_TYPE=sentinel: it contains no sentinel; allowed: the name of the master and the host:port or URL of at least one sentinel, separated by commas.',
  ],
  [
    'a sentinel without a port',
    { KVSTORE_URL: 'mymaster,a:1,b', KVSTORE_TYPE: 'sentinel' },
    'KVSTORE_URL is invalid with KVSTORE_TYPE=sentinel: item 3 is not a host:port or URL; allowed: the name of the master and the host:port or URL of at least one sentinel, separated by commas.',
  ],
  [
    'a cluster by socket path',
    { KVSTORE_URL: '/run/a.sock', REDIS_TYPE: 'cluster' },
    'KVSTORE_URL is invalid with REDIS_TYPE=cluster: item 1 is not a host:port or URL; allowed: the host:port or URL of at least one node, separated by commas.',
  ],
  [
    'a list that ends in a comma',
    { KVSTORE_URL: 'a:1,', KVSTORE_TYPE: 'cluster' },
    'KVSTORE_URL is invalid with KVSTORE_TYPE=cluster: item 2 is empty; allowed: the host:port or URL of at least one node, separated by commas.',
  ],
  [
    'a second store without an address',
    { KVSTORE_URL: 'a:1', KVSTORE_PERSECOND: 'true' },
    'KVSTORE_PERSECOND is true, but KVSTORE_PERSECOND_URL is not set; set it to the address of Redis or Valkey.',
  ],
  [
    'a second store with an invalid address',
    { KVSTORE_URL: 'a:1', KVSTORE_PERSECOND: 'true', REDIS_PERSECOND_URL: 'b' },
    'REDIS_PERSECOND_URL is invalid with KVSTORE_PERSECOND_TYPE=single: it is not the address of one server; allowed: one host:port, one socket path, or one redis:// or rediss:// URL.',
  ],
  [
    'a memcached store without servers',
    { BACKEND_TYPE: 'memcache' },
    'BACKEND_TYPE is plaincache, but neither PLAINCACHE_HOST_PORT nor PLAINCACHE_SRV is set; set one of them to the memcached servers.',
  ],
  [
    'memcached servers from a list and from a DNS record',
    { MEMCACHE_HOST_PORT: 'a:1', MEMCACHE_SRV: '_memcache._tcp.example' },
    'MEMCACHE_HOST_PORT and MEMCACHE_SRV are both set; remove one of them.',
  ],
  [
    'two listeners on one port',
    { PORT: '8081' },
    'PORT and GRPC_PORT both use port 8081; give each listener its own port.',
  ],
  [
    'two listeners on one port of one address',
    { HOST: '127.0.0.1', PORT: '6070', DEBUG_HOST: '127.0.0.1' },
    'PORT and DEBUG_PORT both use port 6070; give each listener its own port.',
  ],
  [
    'metrics on the port of another listener',
    { USE_PROMETHEUS: 'true', PROMETHEUS_ADDR: 'localhost:6070' },
    'DEBUG_PORT and PROMETHEUS_ADDR both use port 6070; give each listener its own port.',
  ],
  [
    'one socket for two statistics formats',
    { STATSD_HOST: 'unixstream:///dsd.socket', USE_STATSD: 'true', USE_TAGGEDSTATS: 'true' },
    'STATSD_HOST is a socket, whose daemon would receive every statistic twice, without and with tags; enable only one of USE_STATSD and USE_TAGGEDSTATS.',
  ],
];

test.each(contradictory)('rejects %s', (_, environment, problem) => {
  expect(problemsOf(environment)).toContain(problem);
});

test.each<readonly [string, Environment]>([
  [
    'complete TLS settings',
    {
      GRPC_SERVER_USE_TLS: '1',
      GRPC_SERVER_TLS_CERT: '/c',
      GRPC_SERVER_TLS_KEY: '/k',
      GRPC_CLIENT_TLS_CACERT: '/ca',
      GRPC_CLIENT_TLS_SAN: 'a',
    },
  ],
  [
    'a certificate without its key while TLS is off',
    { KVSTORE_TLS_CLIENT_CERT: '/c', PLAINCACHE_TLS_CLIENT_KEY: '/k' },
  ],
  ['a single store by host and port', { KVSTORE_URL: 'localhost:6379' }],
  ['a single store by path', { KVSTORE_URL: '/run/redis.sock' }],
  ['a single store by URL', { KVSTORE_URL: 'rediss://user:secret@host:6379/1' }],
  ['a sentinel list', { KVSTORE_URL: 'mymaster, a:26379, redis://b:26379', KVSTORE_TYPE: 'sentinel' }],
  ['a cluster of one node', { KVSTORE_URL: 'a:7000', KVSTORE_TYPE: 'cluster' }],
  ['two stores', { KVSTORE_URL: 'a:1', KVSTORE_PERSECOND: '1', KVSTORE_PERSECOND_URL: '/b.sock' }],
  ['memory together with the address of a store', { BACKEND_TYPE: 'memory', KVSTORE_URL: 'anything' }],
  ['memcached by list', { PLAINCACHE_HOST_PORT: 'a:11211, /run/memcached.sock' }],
  ['memcached by DNS record', { PLAINCACHE_SRV: '_memcache._tcp.example' }],
  ['several ports that the system chooses', { PORT: '0', GRPC_PORT: '0', DEBUG_PORT: '0' }],
  ['one port on two addresses', { PORT: '8000', HOST: '127.0.0.1', DEBUG_PORT: '8000', DEBUG_HOST: '127.0.0.2' }],
  ['the gRPC port for HTTP while gRPC listens on a socket', { PORT: '8081', GRPC_UDS: '/run/weir.sock' }],
  ['a stream socket for statistics with tags', { STATSD_HOST: 'unixstream:///dsd.socket', USE_TAGGEDSTATS: 'true' }],
  ['a datagram socket for statistics without tags', { STATSD_HOST: 'unix:///dsd.socket', USE_STATSD: 'true' }],
  ['one host for two statistics formats', { USE_STATSD: 'true', USE_TAGGEDSTATS: 'true' }],
  ['the port of the metrics while they are off', { PORT: '9090' }],
])('accepts %s', (_, environment) => {
  expect(problemsOf(environment)).toEqual([]);
});

test.each<readonly [what: string, environment: Environment, unused: readonly string[]]>([
  [
    'memcached servers from a list and from a DNS record with another store',
    { BACKEND_TYPE: 'redis', REDIS_URL: 'a:1', MEMCACHE_HOST_PORT: 'a:1', MEMCACHE_SRV: '_memcache._tcp.example' },
    ['MEMCACHE_HOST_PORT', 'MEMCACHE_SRV'],
  ],
  [
    'metrics on the port of another listener while statistics are off',
    { DISABLE_STATS: 'true', USE_PROMETHEUS: 'true', PROMETHEUS_ADDR: ':8080' },
    ['USE_PROMETHEUS', 'PROMETHEUS_ADDR'],
  ],
  [
    'one socket for two statistics formats while statistics are off',
    { DISABLE_STATS: 'true', STATSD_HOST: 'unix:///dsd.socket', USE_STATSD: 'true', USE_TAGGEDSTATS: 'true' },
    ['USE_STATSD', 'STATSD_HOST', 'USE_TAGGEDSTATS'],
  ],
  [
    'a certificate without its key for an xDS server while the rules are in files',
    { CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true', CONFIG_GRPC_XDS_CLIENT_TLS_CERT: '/c' },
    ['CONFIG_GRPC_XDS_SERVER_USE_TLS', 'CONFIG_GRPC_XDS_CLIENT_TLS_CERT'],
  ],
  [
    'a certificate without its key for a key-value store that is not used',
    { BACKEND_TYPE: 'memory', REDIS_URL: 'rediss://a:1', REDIS_TLS: 'true', REDIS_TLS_CLIENT_CERT: '/c' },
    ['REDIS_URL', 'REDIS_TLS', 'REDIS_TLS_CLIENT_CERT'],
  ],
  [
    'a certificate without its key while the only store with TLS is the second one, which is off',
    { REDIS_URL: 'a:1', REDIS_PERSECOND_TLS: 'true', REDIS_TLS_CLIENT_CERT: '/c' },
    ['REDIS_PERSECOND_TLS'],
  ],
  [
    'a key without its certificate for memcached while it is not used',
    { BACKEND_TYPE: 'redis', REDIS_URL: 'a:1', MEMCACHE_TLS: 'true', MEMCACHE_TLS_CLIENT_KEY: '/k' },
    ['MEMCACHE_TLS', 'MEMCACHE_TLS_CLIENT_KEY'],
  ],
])('accepts %s, with a warning about each setting without effect', (_, environment, unused) => {
  const warnings = readSettings(environment).warnings.filter((warning) => warning.includes(' has no effect, '));
  expect(warnings.map((warning) => warning.split(' ', 1)[0])).toEqual(unused);
});

describe('the type of store without BACKEND_TYPE', () => {
  // A type that is planned is rejected with its name, so that the problem shows the default too.
  function storeOf(environment: Environment) {
    const problems = problemsOf(environment).filter((problem) => problem.startsWith('BACKEND_TYPE'));
    return problems[0]?.match(/defaults to (\w+)/)?.[1] ?? readSettings(environment).settings.backendType;
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

test('the socket type of the store is unix for a path and tcp otherwise, unless KVSTORE_SOCKET_TYPE is set', () => {
  function socketOf(environment: Environment) {
    return readSettings({ BACKEND_TYPE: 'memory', ...environment }).settings.kvstoreSocketType;
  }
  expect(socketOf({ KVSTORE_URL: '/run/redis.sock' })).toBe('unix');
  expect(socketOf({ KVSTORE_URL: 'unix:///run/redis.sock' })).toBe('unix');
  expect(socketOf({ KVSTORE_URL: 'a:1' })).toBe('tcp');
  expect(socketOf({ KVSTORE_URL: 'a:1', REDIS_SOCKET_TYPE: 'TCP6' })).toBe('tcp6');
});

test('a deprecated setting causes one warning', () => {
  expect(readSettings({ REDIS_PIPELINE_LIMIT: '8' }).warnings).toEqual([
    'REDIS_PIPELINE_LIMIT is deprecated and has no effect; remove it.',
  ]);
  expect(readSettings({ REDIS_PIPELINE_LIMIT: '0' }).warnings).not.toContainEqual(
    expect.stringContaining('deprecated'),
  );
});
