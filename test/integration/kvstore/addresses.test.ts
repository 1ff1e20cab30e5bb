import { isServer, isSocketPath } from '../../../src/settings/values/addresses';
import { kvstoreOptions } from '../../../src/main/options';
import { readSettings } from '../../../src/settings/read-settings';
import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/connections/options';
import {
  type Deployment,
  describeDeployment,
  readDeployment,
  replacementProblem,
} from '../../../src/sinks/counters/kvstore/stores/deployment';
import { nameOf, parseServer } from '../../../src/sinks/counters/server-address';
import { RecordedLog } from '../../support/data/recorded-log';
import { instance } from './options';

function read(url: string, more: Partial<InstanceOptions> = {}): Deployment {
  return readDeployment(instance(url, more));
}

function tcp(host: string, port: number, family = 0): object {
  return { kind: 'tcp', host, port, family };
}

function user(username: string | undefined, password: string): object {
  return { username, password };
}

describe('the address of a single server', () => {
  it.each([
    ['store:6379', {}, tcp('store', 6379)],
    [' 10.0.0.1:7000 ', {}, tcp('10.0.0.1', 7000)],
    ['[::1]:6379', {}, tcp('::1', 6379)],
    ['redis://store', {}, tcp('store', 6379)],
    ['rediss://[::1]:7000', {}, tcp('::1', 7000)],
    ['unix:///run/redis.sock', {}, { kind: 'unix', path: '/run/redis.sock' }],
    ['store:1', { socketType: 'tcp6' }, tcp('store', 1, 6)],
    ['store:1', { socketType: 'tcp4' }, tcp('store', 1, 4)],
    ['[::1]:1', { socketType: 'tcp6' }, tcp('::1', 1, 6)],
  ] as const)('%s with %j is accepted', (url, more, server) => {
    expect(read(url, more).servers).toEqual({ kind: 'single', server });
  });

  it.each(['/run/x.sock', 'unix:/run/x.sock', 'unix:///run/x.sock', '10.0.0.1:1', '[::1]:11211'])(
    '%s is accepted by the settings and by every store, with the name of log lines',
    (text) => {
      expect(isServer(text) || isSocketPath(text)).toBe(true);
      expect(nameOf(parseServer(text))).toBe(text.replace(/^unix:(\/\/)?/, ''));
    },
  );

  it.each<readonly [url: string, more: Partial<InstanceOptions>, expected: object]>([
    ['redis://ann:s%40cret%3A@store:1/2', {}, { credentials: user('ann', 's@cret:'), db: 2, tls: false }],
    ['redis://store?username=ann&password=x&db=4', {}, { credentials: user('ann', 'x'), db: 4 }],
    ['rediss://:x@store', {}, { credentials: user(undefined, 'x'), tls: true }],
    // KVSTORE_AUTH takes precedence, and is split at the first colon.
    ['redis://ann:old@store', { auth: 'bob:a:b' }, { credentials: user('bob', 'a:b') }],
    ['redis://ann:old@store', { auth: 'alone' }, { credentials: user(undefined, 'alone') }],
    ['store:1', { tls: true }, { credentials: undefined, db: 0, tls: true }],
  ])('%s with %j has credentials, a database and TLS', (url, more, expected) => {
    expect(read(url, more)).toMatchObject(expected);
  });

  it.each([
    ['store:1', 'unix', 'REDIS_SOCKET_TYPE is unix, but REDIS_URL is host and port'],
    ['/run/x', 'tcp', 'REDIS_SOCKET_TYPE is tcp, but REDIS_URL is a socket path'],
    ['10.0.0.1:1', 'tcp6', 'REDIS_SOCKET_TYPE is tcp6, but REDIS_URL is an IPv4 address'],
    ['[::1]:1', 'tcp4', 'REDIS_SOCKET_TYPE is tcp4, but REDIS_URL is an IPv6 address'],
  ] as const)('%s contradicts KVSTORE_SOCKET_TYPE=%s', (url, socketType, problem) => {
    expect(() => read(url, { socketType })).toThrow(problem);
  });

  it.each([
    ['', 'the address is not host:port'],
    ['store', 'the address is not host:port'],
    ['store:0', 'the address is not host:port'],
    ['store:65536', 'the address is not host:port'],
    ['secret@store:1', 'the address is not host:port'],
    [
      'redis://ann:se#cret@store',
      'the address is not a valid URL; percent-encode the special characters of its password',
    ],
    ['redis://ann:%zz@store', 'the address has a % that is not followed by two hexadecimal digits'],
    ['redis://secret@store/x', 'the address has a database that is not an integer'],
  ])('%p is rejected with a message that does not quote it', (url, problem) => {
    expect(() => read(url)).toThrow(`REDIS_URL: ${problem}`);
    expect(() => read(url)).not.toThrow(/secret|se#cret/);
  });
});

const SENTINEL = { type: 'sentinel' } as const;
const CLUSTER = { type: 'cluster' } as const;

describe('the addresses of several servers', () => {
  it('are the name of the master and at least one sentinel, with the credentials of sentinels and the database', () => {
    const deployment = read('counters, a:1 ,b:2', { ...SENTINEL, sentinelAuth: 'watch:x', auth: 'y' });
    expect(deployment).toEqual({
      servers: {
        kind: 'sentinel',
        masterName: 'counters',
        sentinels: [tcp('a', 1), tcp('b', 2)],
        sentinelCredentials: user('watch', 'x'),
      },
      credentials: user(undefined, 'y'),
      db: 0,
      tls: false,
    });
    expect(describeDeployment(deployment)).toBe('sentinel counters at a:1,b:2');
    expect(read('counters,redis://s:x@a:1/2', SENTINEL)).toMatchObject({
      servers: { sentinelCredentials: user('s', 'x') },
      credentials: undefined,
      db: 2,
    });
  });

  it('are the nodes to read the topology of a cluster from', () => {
    const deployment = read('a:1,b:2', { ...CLUSTER, tls: true });
    expect(deployment.servers).toEqual({ kind: 'cluster', seeds: [tcp('a', 1), tcp('b', 2)] });
    expect(describeDeployment(deployment)).toBe('cluster a:1,b:2 over TLS');
  });

  const MASTER = 'REDIS_URL must be the name of the master, then at least one sentinel as host:port';
  it.each([
    ['counters', SENTINEL, MASTER],
    ['counters,', SENTINEL, 'REDIS_URL: item 2 is not host:port'],
    [',a:1', SENTINEL, MASTER],
    ['', SENTINEL, MASTER],
    ['a:1,', CLUSTER, 'REDIS_URL: item 2 is not host:port'],
    ['a:1,/run/x', CLUSTER, 'REDIS_URL: item 2 is a socket path; host:port is required'],
    ['redis://a:1/3', CLUSTER, 'REDIS_URL names a database; a cluster has only database 0'],
    ['redis://a:1,rediss://b:1', CLUSTER, 'REDIS_URL has items with different schemes'],
    ['redis://x:y@a:1,redis://x:z@b:1', CLUSTER, 'REDIS_URL has items with different credentials'],
  ])('%p of %j are rejected', (url, more, problem) => {
    expect(() => read(url, more)).toThrow(problem);
  });
});

describe('an address replaces that at start', () => {
  const cluster = 'a:1,b:2';
  const single = 'redis://:one@h:1/2';
  const DIFFERS = /^more than its credentials differs/;

  it.each([
    [single, 'redis://:two@h:1/2', undefined],
    [single, 'redis://ann:two@h:1/2', undefined],
    [cluster, 'redis://:two@a:1,redis://:two@b:2', undefined],
    [single, 'redis://:one@h:2/2', DIFFERS],
    [single, 'redis://:one@h:1/3', DIFFERS],
    [single, 'rediss://:one@h:1/2', DIFFERS],
    [cluster, 'redis://:two@a:1', DIFFERS],
    [single, 'redis://:hidden%zz@h:1/2', /^REDIS_URL: the address has a % that is not followed by/],
  ])('%s with %s only if nothing but the credentials differs', (first, url, problem) => {
    const found = replacementProblem(instance(first, { type: first === cluster ? 'cluster' : 'single' }), url);
    if (problem === undefined) expect(found).toBeUndefined();
    else expect(found).toMatch(problem);
    expect(found ?? '').not.toContain('hidden');
  });
});

describe('the options of an instance', () => {
  it.each(['KVSTORE', 'KVSTORE_PERSECOND'])('are those of the settings that begin with %s', (prefix) => {
    const other = prefix === 'KVSTORE' ? 'KVSTORE_PERSECOND' : 'KVSTORE';
    const env = {
      ...{ BACKEND_TYPE: 'kvstore', KVSTORE_PERSECOND: 'true', [`${other}_URL`]: 'other:1' },
      [`${prefix}_URL`]: 'counters,a:1',
      [`${prefix}_TYPE`]: 'sentinel',
      [`${prefix}_SOCKET_TYPE`]: 'tcp4',
      [`${prefix}_AUTH`]: 'ann:x',
      [`${prefix}_SENTINEL_AUTH`]: 'watch',
      [`${prefix}_TLS`]: 'true',
      [`${prefix}_POOL_SIZE`]: '7',
      [`${prefix}_TIMEOUT`]: '8ms',
      [`${prefix}_PIPELINE_WINDOW`]: '9ms',
      [`${prefix}_POOL_ON_EMPTY_BEHAVIOR`]: 'ERROR',
      [`${prefix}_POOL_ON_EMPTY_WAIT_DURATION`]: '11ms',
      [`${prefix}_CLUSTER_PIPELINE_PARALLELISM`]: '12',
    };
    const { main, perSecond } = kvstoreOptions(readSettings(env), new RecordedLog());
    const [own, unchanged] = prefix === 'KVSTORE' ? [main, perSecond] : [perSecond, main];
    expect(own).toEqual({
      ...{ type: 'sentinel', url: 'counters,a:1', socketType: 'tcp4', auth: 'ann:x', sentinelAuth: 'watch', tls: true },
      ...{ poolSize: 7, timeout: 8, pipelineWindow: 9, poolOnEmptyBehavior: 'ERROR', poolOnEmptyWaitDuration: 11 },
      clusterPipelineParallelism: 12,
      variables: { url: `${prefix}_URL`, socketType: `${prefix}_SOCKET_TYPE` },
    });
    expect(unchanged).toMatchObject({ type: 'single', url: 'other:1', auth: undefined, tls: false, poolSize: 10 });
  });

  it('are the same for both where there is one setting', () => {
    const env = {
      ...{ BACKEND_TYPE: 'redis', REDIS_URL: 'a:1', KVSTORE_TLS_CACERT: '/ca', KVSTORE_TLS_CLIENT_CERT: '/cert' },
      ...{ KVSTORE_TLS_CLIENT_KEY: '/key', KVSTORE_TLS_SKIP_HOSTNAME_VERIFICATION: 'true', KVSTORE_TLS: 'true' },
      ...{ KVSTORE_STARTUP_INITIAL_INTERVAL: '1ms', KVSTORE_STARTUP_MAX_INTERVAL: '2ms' },
      ...{ KVSTORE_STARTUP_MAX_ELAPSED_TIME: '3ms', KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR: 'true' },
      EXPIRATION_JITTER_MAX_SECONDS: '4',
    };
    expect(kvstoreOptions(readSettings(env), new RecordedLog())).toMatchObject({
      main: { url: 'a:1', variables: { url: 'REDIS_URL' } },
      perSecond: undefined,
      tlsFiles: { caFile: '/ca', certFile: '/cert', keyFile: '/key', skipHostnameVerification: true },
      startup: { initialInterval: 1, maxInterval: 2, maxElapsedTime: 3 },
      closeConnectionOnReadonlyError: true,
      expirationJitterMaxSeconds: 4,
    });
  });
});
