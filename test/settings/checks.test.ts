import { readSettings } from '../../src/settings/read-settings';
import { env, problemsOf } from './environments';

/** Problems with settings that contradict each other, each with an environment that has it. */
const PROBLEMS: Readonly<Record<string, string>> = {
  'GRPC_SERVER_USE_TLS is true, but GRPC_SERVER_TLS_CERT is not set; set it to the path of a PEM file.':
    'GRPC_SERVER_USE_TLS=true GRPC_SERVER_TLS_KEY=/key.pem',
  'GRPC_SERVER_USE_TLS is true, but GRPC_SERVER_TLS_KEY is not set; set it to the path of a PEM file.':
    'GRPC_SERVER_USE_TLS=true GRPC_SERVER_TLS_CERT=/cert.pem',
  ['GRPC_CLIENT_TLS_CACERT is set, but TLS is off; set GRPC_SERVER_USE_TLS=true to verify client ' +
  'certificates, or remove GRPC_CLIENT_TLS_CACERT.']: 'GRPC_CLIENT_TLS_CACERT=/ca.pem',
  ['GRPC_CLIENT_TLS_SAN is set, but clients present no certificate unless GRPC_CLIENT_TLS_CACERT ' +
  'is set; set both or neither.']: 'GRPC_CLIENT_TLS_SAN=edge.example',
  'REDIS_TLS_CLIENT_CERT is set, but KVSTORE_TLS_CLIENT_KEY is not; a certificate and its key must be set together.':
    'REDIS_URL=a:1 REDIS_TLS=true REDIS_TLS_CLIENT_CERT=/cert.pem',
  'DEBUG_TLS_KEY is set, but DEBUG_TLS_CERT is not; a certificate and its key must be set together.':
    'DEBUG_TLS_KEY=/k',
  'KVSTORE_TLS_CLIENT_CERT is set, but KVSTORE_TLS_CLIENT_KEY is not; a certificate and its key must be set together.':
    'KVSTORE_URL=a:1 KVSTORE_PERSECOND=1 KVSTORE_PERSECOND_URL=b:1 KVSTORE_PERSECOND_TLS=1 KVSTORE_TLS_CLIENT_CERT=/c',
  'KVSTORE_TLS_CLIENT_KEY is set, but KVSTORE_TLS_CLIENT_CERT is not; a certificate and its key must be set together.':
    'KVSTORE_URL=rediss://store:6379 KVSTORE_TLS_CLIENT_KEY=/key.pem',
  ['CONFIG_GRPC_XDS_CLIENT_TLS_KEY is set, but CONFIG_GRPC_XDS_CLIENT_TLS_CERT is not; a ' +
  'certificate and its key must be set together.']:
    'CONFIG_TYPE=GRPC_XDS_SOTW CONFIG_GRPC_XDS_SERVER_USE_TLS=1 CONFIG_GRPC_XDS_CLIENT_TLS_KEY=/key.pem',
  ['PLAINCACHE_TLS_CLIENT_KEY is set, but PLAINCACHE_TLS_CLIENT_CERT is not; a certificate and its ' +
  'key must be set together.']: 'PLAINCACHE_HOST_PORT=a:1 PLAINCACHE_TLS=true PLAINCACHE_TLS_CLIENT_KEY=/key.pem',
  'BACKEND_TYPE is kvstore, but KVSTORE_URL is not set; set it to the address of Redis or Valkey.':
    'BACKEND_TYPE=redis',
  'KVSTORE_PERSECOND is true, but KVSTORE_PERSECOND_URL is not set; set it to the address of Redis or Valkey.':
    'KVSTORE_URL=a:1 KVSTORE_PERSECOND=true',
  ['BACKEND_TYPE is plaincache, but neither PLAINCACHE_HOST_PORT nor PLAINCACHE_SRV is set; set ' +
  'one of them to the memcached servers.']: 'BACKEND_TYPE=memcache',
  'MEMCACHE_HOST_PORT and MEMCACHE_SRV are both set; remove one of them.':
    'MEMCACHE_HOST_PORT=a:1 MEMCACHE_SRV=_memcache._tcp.example',
  'STORE_DECISION_TIMEOUT is longer than REDIS_TIMEOUT; set it to at most 50ms.':
    'REDIS_URL=a:1 REDIS_TIMEOUT=50ms STORE_DECISION_TIMEOUT=51ms',
  'STORE_DECISION_TIMEOUT is longer than KVSTORE_PERSECOND_TIMEOUT; set it to at most 50ms.':
    'KVSTORE_URL=a:1 KVSTORE_PERSECOND=1 KVSTORE_PERSECOND_URL=b:1 KVSTORE_PERSECOND_TIMEOUT=50ms ' +
    'STORE_DECISION_TIMEOUT=51ms',
  'LIMIT_RESPONSE_HEADERS=structured contradicts LIMIT_RESPONSE_HEADERS_ENABLED=false; remove one of them.':
    'LIMIT_RESPONSE_HEADERS=structured LIMIT_RESPONSE_HEADERS_ENABLED=false',
  'LIMIT_RESPONSE_HEADERS=off contradicts LIMIT_RESPONSE_HEADERS_ENABLED=true; remove one of them.':
    'LIMIT_RESPONSE_HEADERS=off LIMIT_RESPONSE_HEADERS_ENABLED=true',
  'CACHE_KEY_PREFIX contains white space, which keys of memcached may not have; remove it.':
    'MEMCACHE_HOST_PORT=a:1 CACHE_KEY_PREFIX=a\u00a0b',
  'CACHE_KEY_PREFIX has more than 235 bytes, so that no key has the at most 250 bytes of memcached; shorten it.': `MEMCACHE_HOST_PORT=a:1 CACHE_KEY_PREFIX=${'é'.repeat(118)}`,
  ['KVSTORE_PIPELINE_WINDOW is not shorter than REDIS_TIMEOUT, so that no call could be answered; ' +
  '150us to 5ms are usual.']: 'REDIS_URL=a:1 REDIS_TIMEOUT=50ms KVSTORE_PIPELINE_WINDOW=50ms',
  ['KVSTORE_PERSECOND_PIPELINE_WINDOW is not shorter than KVSTORE_PERSECOND_TIMEOUT, so that no ' +
  'call could be answered; 150us to 5ms are usual.']:
    'KVSTORE_URL=a:1 KVSTORE_PERSECOND=1 KVSTORE_PERSECOND_URL=b:1 KVSTORE_PERSECOND_PIPELINE_WINDOW=11s',
  ['REDIS_PIPELINE_WINDOW is not shorter than STORE_DECISION_TIMEOUT, so that no call could be ' +
  'answered; 150us to 5ms are usual.']: 'MEMCACHE_HOST_PORT=a:1 STORE_DECISION_TIMEOUT=20ms REDIS_PIPELINE_WINDOW=21ms',
  'LIMIT_LIMIT_HEADER and LIMIT_RESET_HEADER are the same header, X-Limit; give each its own name.':
    'LIMIT_RESPONSE_HEADERS_ENABLED=true LIMIT_LIMIT_HEADER=X-Limit LIMIT_RESET_HEADER=x-limit',
  ['EXTRA_TAGS contains the tag key1, which the metrics of Prometheus and OTLP have a label for ' +
  'already; rename the tag.']: 'USE_PROMETHEUS=true EXTRA_TAGS=env:a,key1:b',
  'EXTRA_TAGS contains the tag le, which the metrics of Prometheus and OTLP have a label for already; rename the tag.':
    'USE_OTLP_METRICS=true EXTRA_TAGS=le:b',
  'EXTRA_TAGS contains the tags a-b and a.b, which are one label of Prometheus and OTLP; rename one of them.':
    'USE_PROMETHEUS=true EXTRA_TAGS=a-b:1,a.b:2',
  'DOG_STATSD_MOGRIFIER_A_PATTERN is not a valid regular expression: invalid or unsupported Perl syntax: (?=.':
    'USE_DOG_STATSD=true USE_DOG_STATSD_MOGRIFIERS=a DOG_STATSD_MOGRIFIER_A_NAME=x ' +
    'DOG_STATSD_MOGRIFIER_A_PATTERN=(?=x)',
  'PORT and GRPC_PORT both use port 8081; give each listener its own port.': 'PORT=8081',
  'DEBUG_PORT and PROMETHEUS_ADDR both use port 6070; give each listener its own port.':
    'USE_PROMETHEUS=true PROMETHEUS_ADDR=localhost:6070',
  ['STATSD_HOST is a socket, whose daemon would receive every statistic twice, without and with ' +
  'tags; enable only one of USE_STATSD and USE_TAGGEDSTATS.']:
    'STATSD_HOST=unixstream:///dsd.socket USE_STATSD=true USE_TAGGEDSTATS=true',
  ['DECISION_LOG=all would write to standard output, as the statistics do when USE_STATSD is false ' +
  'and no other output is on; set DECISION_LOG_OUTPUT to stderr or to a file, or enable another ' +
  'output of the statistics, or set DISABLE_STATS=true.']: 'DECISION_LOG=all USE_STATSD=false',
};

test.each(Object.entries(PROBLEMS))('rejects with "%s": %s', (problem, text) => {
  expect(problemsOf(env(text))).toEqual([problem]);
});

const ONE =
  'it is not the address of one server; allowed: one host:port, one socket path, or one redis:// or rediss:// URL.';
const SENTINELS =
  'allowed: the name of the master and the host:port or URL of at least one sentinel, separated by commas.';
const NODES = 'allowed: the host:port or URL of at least one node, separated by commas.';

test.each([
  ['single', ONE, ['a:1,b:2', 'localhost', ':1', 'a:0', 'a:65536', 'http://a:1', 'redis://']],
  ['sentinel', `it contains no sentinel; ${SENTINELS}`, ['mymaster']],
  ['sentinel', `item 3 is not a host:port or URL; ${SENTINELS}`, ['mymaster,a:1,b']],
  ['cluster', `item 1 is not a host:port or URL; ${NODES}`, ['/run/a.sock', 'a']],
  ['cluster', `item 2 is empty; ${NODES}`, ['a:1,', 'a:1,,b:1']],
])('an address is rejected with KVSTORE_TYPE=%s: %s', (type, problem, addresses) => {
  for (const address of addresses) {
    const wrong = `REDIS_URL is invalid with KVSTORE_TYPE=${type}: ${problem}`;
    expect(problemsOf({ KVSTORE_TYPE: type, REDIS_URL: address })).toEqual([wrong]);
    const second = { KVSTORE_URL: 'a:1', REDIS_PERSECOND: 'true', REDIS_PERSECOND_URL: address };
    const wrongSecond = `REDIS_PERSECOND_URL is invalid with REDIS_PERSECOND_TYPE=${type}: ${problem}`;
    expect(problemsOf({ ...second, REDIS_PERSECOND_TYPE: type })).toEqual([wrongSecond]);
  }
});

test.each([
  ['single', ['localhost:6379', '[::1]:6379', '/run/redis.sock', 'unix:///run/redis.sock', 'redis://localhost']],
  ['single', ['redis://user:secret@host:6379/1', 'rediss://:secret@host']],
  ['sentinel', ['mymaster,a:26379,redis://b:26379']],
  ['cluster', ['a:7000', 'a:7000,b:7000']],
])('an address is accepted with KVSTORE_TYPE=%s: %j', (type, addresses) => {
  for (const address of addresses) expect(problemsOf({ KVSTORE_TYPE: type, KVSTORE_URL: address })).toEqual([]);
});

test.each([
  'GRPC_SERVER_USE_TLS=1 GRPC_SERVER_TLS_CERT=/c GRPC_SERVER_TLS_KEY=/k GRPC_CLIENT_TLS_CACERT=/ca ' +
    'GRPC_CLIENT_TLS_SAN=a',
  'KVSTORE_TLS_CLIENT_CERT=/c PLAINCACHE_TLS_CLIENT_KEY=/k',
  'KVSTORE_URL=a:1 KVSTORE_PERSECOND=1 KVSTORE_PERSECOND_URL=/b.sock',
  'BACKEND_TYPE=memory KVSTORE_URL=anything',
  'PLAINCACHE_HOST_PORT=a:11211,/run/memcached.sock',
  'PORT=0 GRPC_PORT=0 DEBUG_PORT=0',
  'PORT=8000 HOST=127.0.0.1 DEBUG_PORT=8000 DEBUG_HOST=127.0.0.2',
  'PORT=8081 GRPC_UDS=/run/weir.sock',
  'KVSTORE_URL=a:1 CACHE_KEY_PREFIX=a\u00a0b KVSTORE_TIMEOUT=0 KVSTORE_PIPELINE_WINDOW=1m',
  'USE_PROMETHEUS=true EXTRA_TAGS=version:1,env:a',
  'DECISION_LOG=all USE_STATSD=false USE_OTLP_METRICS=true',
  'EXTRA_TAGS=le:b,key1:c LIMIT_LIMIT_HEADER=a LIMIT_RESET_HEADER=a',
  'STATSD_HOST=unixstream:///dsd.socket USE_TAGGEDSTATS=true',
  'DECISION_LOG=all USE_STATSD=false DISABLE_STATS=true',
])('accepts %s', (text) => {
  expect(problemsOf(env(text))).toEqual([]);
});

test.each([
  'BACKEND_TYPE=redis REDIS_URL=a:1 !MEMCACHE_HOST_PORT=a:1 !MEMCACHE_SRV=_memcache._tcp.example',
  'DISABLE_STATS=true !USE_PROMETHEUS=true !PROMETHEUS_ADDR=:8080',
  'DISABLE_STATS=true !USE_STATSD=true !STATSD_HOST=unix:///dsd.socket !USE_TAGGEDSTATS=true',
  '!CONFIG_GRPC_XDS_SERVER_USE_TLS=true !CONFIG_GRPC_XDS_CLIENT_TLS_CERT=/c',
  'BACKEND_TYPE=memory !REDIS_URL=rediss://a:1 !REDIS_TLS=true !REDIS_TLS_CLIENT_CERT=/c',
  // TLS only of the second store, which is off.
  'REDIS_URL=a:1 !REDIS_PERSECOND_TLS=true REDIS_TLS_CLIENT_CERT=/c',
  'BACKEND_TYPE=redis REDIS_URL=a:1 !MEMCACHE_TLS=true !MEMCACHE_TLS_CLIENT_KEY=/k',
])('accepts a contradiction between settings without effect, and warns about those marked with "!": %s', (text) => {
  const { warnings } = readSettings(env(text.replaceAll('!', '')));
  const ineffective = warnings
    .filter((warning) => warning.includes(' has no effect, '))
    .map((line) => line.split(' ')[0]);
  expect(new Set(ineffective)).toEqual(new Set([...text.matchAll(/!(\w+)/g)].map(([, name]) => name)));
});

const XDS = 'CONFIG_TYPE=GRPC_XDS_SOTW';
const SECOND = 'KVSTORE_URL=a:1 KVSTORE_PERSECOND=true KVSTORE_PERSECOND_URL=b:1';
const NOT_TLS = 'it applies only with KVSTORE_TLS=true, KVSTORE_PERSECOND_TLS=true or a rediss:// URL';

// docs/settings.md has the condition of each setting; here is one of each kind.
test.each([
  ['CONFIG_GRPC_XDS_NODE_ID=a', '', 'CONFIG_TYPE is FILE by default', XDS],
  ['REDIS_POOL_SIZE=2', 'BACKEND_TYPE=memory', 'BACKEND_TYPE is memory', 'REDIS_URL=a:1'],
  ['REDIS_PERSECOND=true', 'BACKEND_TYPE=memory', 'BACKEND_TYPE is memory', SECOND],
  ['KVSTORE_PERSECOND_TIMEOUT=7s', 'KVSTORE_URL=a:1', 'KVSTORE_PERSECOND is false by default', SECOND],
  ['GRPC_MAX_CONNECTION_AGE_GRACE=7s', 'GRPC_MAX_CONNECTION_AGE=0', 'GRPC_MAX_CONNECTION_AGE is 0', ''],
  ['MEMCACHE_SRV_REFRESH=7s', 'MEMCACHE_HOST_PORT=a:1', 'PLAINCACHE_SRV is not set', 'MEMCACHE_SRV=_a._tcp.b'],
  ['GRPC_PORT=1', 'GRPC_UDS=/s', 'GRPC_UDS is set', ''],
  ['PUSHSTATS_PORT=1', 'STATSD_HOST=unix:///s', 'STATSD_HOST is a socket', ''],
  ['KVSTORE_TLS_CACERT=/c', 'KVSTORE_URL=a:1', NOT_TLS, 'KVSTORE_URL=rediss://a:1'],
])('%s causes, with "%s", the one warning that %s, and none with "%s"', (text, without, because, withEffect) => {
  const [name] = text.split('=');
  expect(readSettings(env(`${without} ${text}`)).warnings).toEqual([`${name} has no effect, because ${because}.`]);
  expect(readSettings(env(`${text} ${withEffect}`)).warnings).toEqual([]);
});

test('variables that deployments of the Go service set anyway are ignored by name, and misspelled ones are not', () => {
  const names = ['GRPC_SERVER_TLS_CA_CERT', 'RUNTIME_ROOT', 'RUNTIME_WATCH_ROOT'];
  const text = names.map((name) => `${name}=true`).join(' ');
  expect(readSettings(env(`${XDS} ${text}`))).toMatchObject({ ignored: names, warnings: [] });
  expect(readSettings(env(text))).toMatchObject({ ignored: names.slice(0, 1), warnings: [] });
  const misspelled = readSettings(env(`${XDS} RUNTIME_ROOTS=true GRPC_SERVER_TLS_CACERT=/c`));
  expect([misspelled.ignored, misspelled.warnings.length]).toEqual([[], 2]);
});

test('a switch that is off anyway causes no warning', () => {
  expect(readSettings(env('DISABLE_STATS=true USE_STATSD=false KVSTORE_TLS=false')).warnings).toEqual([]);
});
