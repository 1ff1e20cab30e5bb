import { readSettings } from '../../src/settings/read-settings';
import { settingRows } from '../support/data/secret-settings';
import { env, parsed, problemsOf, rowOf } from './environments';

const MIB = 1024 * 1024;
const LONGEST_TIMER = 2 ** 31 - 1;
/** The largest size of the path of a Unix socket, in bytes. */
const LONGEST_PATH = process.platform === 'linux' ? 107 : 103;
/** Any number from 1. */
const NUMBER = 'PLAINCACHE_MAX_IDLE_CONNS';
/** Any duration. */
const DURATION = 'LOCAL_CACHE_MAX_AGE';

const HEADERS = 'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS';
const TARGET = 'CONFIG_GRPC_XDS_SERVER_URL';

type Accepted = readonly [name: string, value: unknown, ...texts: string[]];
type Rejected = readonly [name: string, problem: string | RegExp, ...texts: string[]];

/** The texts are the values. */
function same(name: string, ...texts: readonly string[]) {
  return texts.map((text) => [name, text, text] as const);
}

const ACCEPTED: readonly Accepted[] = [
  ['SHADOW_MODE', true, '1', 't', 'T', 'true', 'tRUE'],
  ['SHADOW_MODE', false, '0', 'f', 'F', 'false', 'False'],
  ['KVSTORE_TYPE', 'sentinel', 'sentinel', 'SENTINEL', 'Sentinel'],
  ['LOG_LEVEL', 'debug', 'DEBUG', 'trace'],
  ['LOG_LEVEL', 'warning', 'warning', 'WARN'],
  ['LOG_LEVEL', 'fatal', 'fatal', 'panic'],
  ['LOG_FORMAT', 'json', 'json', 'JSON'],
  // Like the Go service, with a warning.
  ['LOG_FORMAT', 'text', 'text', 'xml'],
  [NUMBER, 8080, '8080', '+8080', '8_080', '0x1f90', '0X1F90', '0x_1f_90', '0b1111110010000', '0o17620', '017620'],
  [NUMBER, Number.MAX_SAFE_INTEGER, '9007199254740991'],
  ['PORT', 0, '0', '00', '-0'],
  ['WORKERS', 256, '256'],
  ['WORKERS', 'auto', 'auto', 'AUTO'],
  ['XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES', 4 * MIB, '0'],
  ['NEAR_LIMIT_RATIO', 0.5, '.5', '0.5', '+0.5', '5e-1', '0.5_0', '0x1p-1', '0x.8p0'],
  ['NEAR_LIMIT_RATIO', 1, '1', '1.'],
  [DURATION, 0.15, '150us', '150\u00b5s', '150\u03bcs'],
  [DURATION, 5_400_000, '1.5h', '1h29m60.s', '30m1h', '45m45m'],
  [DURATION, 500, '.5s', '500ms', '+500ms'],
  [DURATION, 0, '0', '+0', '-0', '0s', '-0s', '0.9ns'],
  // What is longer than a timer can measure becomes that, with a warning.
  ['KVSTORE_TIMEOUT', LONGEST_TIMER, '720h'],
  // What is too short to be useful becomes what is, with a warning.
  ['OFFENDERS_WINDOW', 1000, '1ns', '999ms', '1s'],
  ['STATS_FLUSH_INTERVAL', 100, '1ns'],
  ['KVSTORE_TIMEOUT', 1, '1ns'],
  ['SHUTDOWN_DELAY', 3_600_000, '1h'],
  // Something less would be attempts without a pause.
  ['CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL', 100, '0', '1ns', '99ms', '100ms'],
  ['PLAINCACHE_HOST_PORT', ['a:1', 'b:2', '/c'], 'a:1, b:2 ,/c'],
  ['EXTRA_TAGS', { env: 'prod', url: 'http://a:1', a: '' }, 'env:prod, url : http://a:1,a:'],
  ['EXTRA_TAGS', { a: '2' }, 'a:1,a:2'],
  ['EXTRA_TAGS', Object.fromEntries([['__proto__', 'x']]), '__proto__:x'],
  [HEADERS, { authorization: 'Bearer a:b', 'x-a': 'c' }, 'authorization:Bearer a:b,x-a:c'],
  ...same(TARGET, 'localhost:18000', '[::1]:18000', 'dns://8.8.8.8/a:80', 'dns:a:80', 'unix:a'),
  ...same('HOST', 'localhost', 'statsd.monitoring.svc', '::', 'fe80::1%eth0'),
  ...same('GRPC_UDS', `/${'x'.repeat(LONGEST_PATH - 1)}`, 'relative.sock'),
  ['PUSHSTATS_HOST', { host: 'unix-01.example' }, 'unix-01.example'],
  ['PUSHSTATS_HOST', { socketPath: '/run/s', socketType: 'datagram' }, 'unix:///run/s', 'unixgram:///run/s'],
  ['PUSHSTATS_HOST', { socketPath: '/run/s', socketType: 'stream' }, 'unixstream:///run/s'],
  ['PULLMETRICS_ADDR', { host: '0.0.0.0', port: 9090 }, ':9090'],
  ['PULLMETRICS_ADDR', { host: '::1', port: 9090 }, '[::1]:9090'],
  ...same('LIMIT_LIMIT_HEADER', 'x-RateLimit-Limit'),
];

test.each(ACCEPTED.map(([name, value, ...texts]) => [name, value, texts] as const))('%s is %j as %j', (...row) => {
  const [name, value, texts] = row;
  for (const text of texts) expect([text, parsed(name, text)]).toStrictEqual([text, value]);
  // It is shown as it may be written.
  expect(parsed(name, rowOf(name).type.format(value))).toStrictEqual(value);
});

const HINTLESS = /is invalid; allowed: [^()]+\.$/;
const WITH_UNIT = '(add a unit, as in 500ms or 10s)';
const OTHER_DURATION = '(write it like 150us, 10s or 1h30m, at most 292 years)';
const NO_HOST = '(write it without port, scheme or brackets)';
const LONG_PATH = `(the path of a socket may have at most ${LONGEST_PATH} bytes on this system)`;
const BAD_SOCKET = '(write the absolute path of a socket after the scheme)';

const REJECTED: readonly Rejected[] = [
  ['SHADOW_MODE', 'allowed: true or false.', 'yes', 'on', '2', 'truthy', 'constructor'],
  ['BACKEND_TYPE', 'allowed: memory, kvstore (redis), plaincache (memcache).', 'mongo'],
  [NUMBER, 'allowed: whole number, 1 or more.', '0', '-1', '1.0', '1e3', '1 0', '٣', '0x', '0b2', '_1', '1_', '1__0'],
  [NUMBER, '(a leading 0 means octal)', '08', '089'],
  [NUMBER, '(the largest is 9007199254740991)', '9007199254740992'],
  ['PORT', 'allowed: whole number, 0 to 65535.', '65536', '-1'],
  ['PORT', '(it looks like a Kubernetes service link: set enableServiceLinks: false in the pod', 'tcp://10.0.0.1:80'],
  ['WORKERS', 'allowed: whole number, 1 to 256, or auto.', '0', '257', 'many'],
  ['NEAR_LIMIT_RATIO', 'allowed: number, 0 to 1.', '1.01', '-0.1', 'nan', '80%', '_1', '1e', '0x1'],
  ['XDS_CLIENT_BACKOFF_RANDOM_FACTOR', HINTLESS, '1e309'],
  [DURATION, WITH_UNIT, '10', '1.5', '-1'],
  [DURATION, '(the largest unit is h: write 1 day as 24h)', '1d', '1w'],
  [DURATION, OTHER_DURATION, 's', '.s', '1 s', '1e3s', '1mss', '--1s', '1s-1s', '1.2.3s'],
  // One more than Go can represent.
  [DURATION, OTHER_DURATION, '9223372036854775808ns', '2562047h48m'],
  [DURATION, HINTLESS, '-1s'],
  ['OFFENDERS_WINDOW', 'allowed: duration, above 0.', '0', '0.1ns'],
  ['SHUTDOWN_DELAY', 'allowed: duration, 0 to 1h.', '1h1ns'],
  ['PLAINCACHE_HOST_PORT', '(item 2 is empty)', 'a:1,'],
  ['PLAINCACHE_HOST_PORT', '(item 2 is invalid)', 'a:1,b'],
  ['EXTRA_TAGS', '(item 2 has no ":")', 'a:1,b'],
  ['EXTRA_TAGS', '(item 1 has no key before the ":")', ':1'],
  ['EXTRA_TAGS', '(item 2 is empty)', 'a:1,'],
  [HEADERS, 'characters other than letters', 'x team:a'],
  [HEADERS, 'which gRPC reserves', 'grpc-timeout:1S'],
  [HEADERS, 'HTTP/2 or gRPC reserves', 'Connection:close', 'te:trailers'],
  [HEADERS, 'other than printable ASCII', 'x-name:Zoë'],
  [TARGET, HINTLESS, 'localhost', ':18000', 'http://a:1', 'xds:///a:1', 'a:99999', 'unix:'],
  ['HOST', NO_HOST, 'localhost:8080', '1.2.3.4:80', '[::1]', 'http://a', 'a b', 'a/b'],
  ['GRPC_UDS', LONG_PATH, `/${'x'.repeat(LONGEST_PATH)}`, `/${'é'.repeat(LONGEST_PATH / 2)}x`],
  ['PUSHSTATS_HOST', NO_HOST, 'localhost:8125', 'udp://localhost:8125'],
  ['PUSHSTATS_HOST', BAD_SOCKET, 'unixstream://', 'unixstream://run/s', 'unixstream:///run/', 'unix:///'],
  ['PUSHSTATS_HOST', LONG_PATH, `unix:///${'é'.repeat(54)}`],
  ['PUSHSTATS_HOST', '(write a socket as unix:///path or unixstream:///path)', '/run/s', 'unix:/run/s'],
  ['PULLMETRICS_ADDR', HINTLESS, 'localhost', '::1:9090', ':65536', ':', 'http://a:1'],
  ['PULLMETRICS_ADDR', '(write a port alone as :port)', '9090'],
  ['PULLMETRICS_PATH', 'allowed: path that begins with /.', 'metrics', '/a b', '/a?b'],
  ['LIMIT_LIMIT_HEADER', 'allowed: HTTP header name.', 'X Limit', 'X-Limit:', 'X-Límit', 'X(1)'],
  ['OPERATOR_TOKEN', 'allowed: 16 to 1024 visible', 'x'.repeat(15), 'x'.repeat(1025), 'twenty characters..'],
];

test.each(REJECTED.map(([name, problem, ...texts]) => [name, problem, texts] as const))('%s: %s with %j', (...row) => {
  const [name, problem, texts] = row;
  for (const text of texts) {
    const [found] = problemsOf({ [name]: text });
    expect([text, found]).toEqual([
      text,
      typeof problem === 'string' ? expect.stringContaining(problem) : expect.stringMatching(problem),
    ]);
  }
});

test.each([
  ['LOG_FORMAT="xml": every value other than json means text.', 'LOG_FORMAT=xml'],
  ['EXTRA_TAGS="a:1,a:2": item 2 repeats a key; its last value is used.', 'EXTRA_TAGS=a:1,a:2'],
  [
    'KVSTORE_TIMEOUT="720h": longer than a timer can measure; 24.8 days are used.',
    'KVSTORE_URL=a:1 KVSTORE_TIMEOUT=720h',
  ],
])('a value that may be a mistake is accepted with the warning: %s', (warning, environment) => {
  expect(readSettings(env(environment)).warnings).toEqual([warning]);
});

test('every default is accepted as a value, as it is shown', () => {
  const texts = settingRows.flatMap(({ name, default: value, type }) => {
    const text = value === undefined || typeof value === 'object' ? '' : type.format(value);
    return text === '' ? [] : [{ name, value, result: type.parse(text) }];
  });
  expect(texts).toEqual(texts.map(({ name, value }) => ({ name, value, result: { value } })));
});
