import { isServer } from '../../../src/settings/values/addresses';
import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/deployment';
import { describeDeployment, readDeployment, replacementProblem } from '../../../src/sinks/counters/kvstore/deployment';
import { nameOf, parseServer } from '../../../src/sinks/counters/server-address';
import { instance } from './options';

type Rows = readonly (readonly [url: string, more: Partial<InstanceOptions>, expected: object])[];

function read(url: string, more: Partial<InstanceOptions> = {}) {
  return readDeployment(instance(url, more));
}

function tcp(host: string, port: number, family = 0): object {
  return { kind: 'tcp', host, port, family };
}

function user(username: string | undefined, password: string): object {
  return { credentials: { username, password } };
}

const SENTINEL = { type: 'sentinel' } as const;
const CLUSTER = { type: 'cluster' } as const;

describe('the address of an instance', () => {
  it.each<Rows[number]>([
    [' 10.0.0.1:7000 ', {}, tcp('10.0.0.1', 7000)],
    ['redis://store', {}, tcp('store', 6379)],
    ['rediss://[::1]:7000', {}, tcp('::1', 7000)],
    ['unix:///run/redis.sock', {}, { kind: 'unix', path: '/run/redis.sock' }],
    ['store:1', { socketType: 'tcp' }, tcp('store', 1)],
    ['store:1', { socketType: 'tcp4' }, tcp('store', 1, 4)],
    ['[::1]:1', { socketType: 'tcp6' }, tcp('::1', 1, 6)],
  ])('%s with %j is that of a single server', (url, more, server) => {
    expect(read(url, more).servers).toEqual({ kind: 'single', server });
  });

  it.each(['/run/x.sock', 'unix:/run/x.sock', 'unix:///run/x.sock', '10.0.0.1:1', '[::1]:11211'])(
    '%s is accepted by the settings and by every store, with the name of log lines',
    (text) => {
      expect(isServer(text)).toBe(true);
      expect(nameOf(parseServer(text))).toBe(text.replace(/^unix:(\/\/)?/, ''));
    },
  );

  it.each<Rows[number]>([
    ['redis://ann:s%40cret%3A@store:1/2', {}, { ...user('ann', 's@cret:'), db: 2, tls: false }],
    ['redis://store?username=ann&password=x&db=4', {}, { ...user('ann', 'x'), db: 4 }],
    ['rediss://:x@store', {}, { ...user(undefined, 'x'), tls: true }],
    // KVSTORE_AUTH takes precedence, and is split at the first colon.
    ['redis://ann:old@store', { auth: 'bob:a:b' }, user('bob', 'a:b')],
    ['redis://ann:old@store', { auth: 'alone' }, user(undefined, 'alone')],
    ['store:1', { tls: true }, { credentials: undefined, db: 0, tls: true }],
    ['counters,redis://s:x@a:1/2', { ...SENTINEL, auth: 'y' }, { ...user(undefined, 'y'), db: 2, tls: false }],
    ['rediss://s:x@a:1,b:2', CLUSTER, { ...user('s', 'x'), db: 0, tls: true }],
  ])('%s with %j has credentials, a database and TLS', (url, more, expected) => {
    expect(read(url, more)).toMatchObject(expected);
  });

  it('is the name of the master and the sentinels with their credentials, or the nodes of a cluster', () => {
    const sentinels = read('counters, a:1 ,redis://s:x@b:2', SENTINEL);
    const { credentials: sentinelCredentials } = user('s', 'x') as { credentials: object };
    const masterName = 'counters';
    const servers = [tcp('a', 1), tcp('b', 2)];
    expect(sentinels.servers).toEqual({ kind: 'sentinel', masterName, sentinels: servers, sentinelCredentials });
    expect(read('counters,a:1', { ...SENTINEL, sentinelAuth: 's:x' }).servers).toMatchObject({ sentinelCredentials });
    const cluster = read('a:1,b:2', { ...CLUSTER, tls: true });
    expect(cluster.servers).toEqual({ kind: 'cluster', seeds: servers });
    const descriptions = ['sentinel counters at a:1,b:2', 'cluster a:1,b:2 over TLS'];
    expect([sentinels, cluster].map(describeDeployment)).toEqual(descriptions);
  });

  const NO_HOST_PORT = 'REDIS_URL: the address is not host:port';
  const MASTER = 'REDIS_URL must be the name of the master, then at least one sentinel as host:port';
  it.each<readonly [url: string, more: Partial<InstanceOptions>, problem: string]>([
    ['', {}, NO_HOST_PORT],
    ['store:0', {}, NO_HOST_PORT],
    ['store:65536', {}, NO_HOST_PORT],
    ['secret@store:1', {}, NO_HOST_PORT],
    ['redis://ann:se#cret@store', {}, 'is not a valid URL; percent-encode the special characters of its password'],
    ['redis://ann:%zz@store', {}, 'the address has a % that is not followed by two hexadecimal digits'],
    ['redis://secret@store/x', {}, 'the address has a database that is not an integer'],
    ['store:1', { socketType: 'unix' }, 'REDIS_SOCKET_TYPE is unix, but REDIS_URL is host and port'],
    ['/run/x', { socketType: 'tcp' }, 'REDIS_SOCKET_TYPE is tcp, but REDIS_URL is a socket path'],
    ['10.0.0.1:1', { socketType: 'tcp6' }, 'REDIS_SOCKET_TYPE is tcp6, but REDIS_URL is an IPv4 address'],
    ['counters', SENTINEL, MASTER],
    ['counters,', SENTINEL, 'REDIS_URL: item 2 is not host:port'],
    [',a:1', SENTINEL, MASTER],
    ['a:1,/run/x', CLUSTER, 'REDIS_URL: item 2 is a socket path; host:port is required'],
    ['redis://a:1/3', CLUSTER, 'REDIS_URL names a database; a cluster has only database 0'],
    ['redis://a:1,rediss://b:1', CLUSTER, 'REDIS_URL has items with different schemes'],
    ['redis://secret:y@a:1,redis://x:z@b:1', CLUSTER, 'REDIS_URL has items with different credentials'],
  ])('%p with %j is rejected with a message that does not quote it', (url, more, problem) => {
    expect(() => read(url, more)).toThrow(problem);
    expect(() => read(url, more)).not.toThrow(/secret|se#cret/);
  });

  const single = 'redis://:one@h:1/2';
  const cluster = 'a:1,b:2';
  const DIFFERS = /^more than its credentials differs/;
  it.each([
    [single, 'redis://ann:two@h:1/2', undefined],
    [cluster, 'redis://:two@a:1,redis://:two@b:2', undefined],
    [single, 'redis://:one@h:2/2', DIFFERS],
    [single, 'redis://:one@h:1/3', DIFFERS],
    [single, 'rediss://:one@h:1/2', DIFFERS],
    [single, 'redis://:hidden%zz@h:1/2', /^REDIS_URL: (?!.*hidden)the address has a % that is not followed by/],
  ])('that is %s at start is replaced by %s only if nothing but the credentials differs', (first, url, problem) => {
    const found = replacementProblem(instance(first, { type: first === cluster ? 'cluster' : 'single' }), url);
    expect(found).toEqual(problem && expect.stringMatching(problem));
  });
});
