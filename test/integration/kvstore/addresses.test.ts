import { type Deployment, readDeployment } from '../../../src/sinks/counters/kvstore/stores/deployment';
import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/connections/options';
import { instance } from './options';

function read(url: string, more: Partial<InstanceOptions> = {}): Deployment {
  return readDeployment(instance(url, more));
}

function tcp(host: string, port: number, family = 0): object {
  return { kind: 'tcp', host, port, family };
}

describe('the address of a single server', () => {
  it.each([
    ['store:6379', tcp('store', 6379)],
    [' 10.0.0.1:7000 ', tcp('10.0.0.1', 7000)],
    ['[::1]:6379', tcp('::1', 6379)],
    ['redis://store', tcp('store', 6379)],
    ['rediss://[::1]:7000', tcp('::1', 7000)],
    ['/run/redis.sock', { kind: 'unix', path: '/run/redis.sock' }],
    ['unix:/run/redis.sock', { kind: 'unix', path: '/run/redis.sock' }],
    ['unix:///run/redis.sock', { kind: 'unix', path: '/run/redis.sock' }],
  ])('%s is accepted', (url, server) => {
    expect(read(url).servers).toEqual({ kind: 'single', server });
  });

  it('may contain user, password and database, percent-encoded or as query parameters', () => {
    expect(read('redis://ann:s%40cret%3A@store:1/2')).toMatchObject({
      credentials: { username: 'ann', password: 's@cret:' },
      db: 2,
      tls: false,
    });
    expect(read('redis://store?username=ann&password=x&db=4')).toMatchObject({
      credentials: { username: 'ann', password: 'x' },
      db: 4,
    });
    expect(read('rediss://:x@store')).toMatchObject({ credentials: { username: undefined, password: 'x' }, tls: true });
  });

  it('is overridden by KVSTORE_AUTH, which is split at the first colon', () => {
    expect(read('redis://ann:old@store', { auth: 'bob:a:b' }).credentials).toEqual({
      username: 'bob',
      password: 'a:b',
    });
    expect(read('redis://ann:old@store', { auth: 'alone' }).credentials).toEqual({
      username: undefined,
      password: 'alone',
    });
  });

  it('must agree with KVSTORE_SOCKET_TYPE, which also selects the IP version', () => {
    expect(read('store:1', { socketType: 'tcp6' }).servers).toMatchObject({ server: tcp('store', 1, 6) });
    expect(() => read('store:1', { socketType: 'unix' })).toThrow(
      'REDIS_SOCKET_TYPE is unix, but REDIS_URL is host and port',
    );
    expect(() => read('/run/x', { socketType: 'tcp' })).toThrow(
      'REDIS_SOCKET_TYPE is tcp, but REDIS_URL is a socket path',
    );
    expect(() => read('10.0.0.1:1', { socketType: 'tcp6' })).toThrow(
      'REDIS_SOCKET_TYPE is tcp6, but REDIS_URL is an IPv4 address',
    );
    expect(() => read('[::1]:1', { socketType: 'tcp4' })).toThrow(
      'REDIS_SOCKET_TYPE is tcp4, but REDIS_URL is an IPv6 address',
    );
    expect(read('[::1]:1', { socketType: 'tcp6' }).servers).toMatchObject({ server: tcp('::1', 1, 6) });
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

describe('the addresses of sentinels', () => {
  const sentinel = { type: 'sentinel' } as const;

  it('consist of the name of the master and at least one sentinel', () => {
    expect(read('counters, a:1 ,b:2', { ...sentinel, sentinelAuth: 'watch:x', auth: 'y' })).toEqual({
      servers: {
        kind: 'sentinel',
        masterName: 'counters',
        sentinels: [tcp('a', 1), tcp('b', 2)],
        sentinelCredentials: { username: 'watch', password: 'x' },
      },
      credentials: { username: undefined, password: 'y' },
      db: 0,
      tls: false,
    });
  });

  it('contain the credentials of the sentinels and the database of the master', () => {
    expect(read('counters,redis://s:x@a:1/2', sentinel)).toMatchObject({
      servers: { sentinelCredentials: { username: 's', password: 'x' } },
      credentials: undefined,
      db: 2,
    });
  });

  it.each(['counters', 'counters,', ',a:1', ''])('%p is rejected', (url) => {
    expect(() => read(url, sentinel)).toThrow(/REDIS_URL/);
  });
});

describe('the addresses of a cluster', () => {
  const cluster = { type: 'cluster' } as const;

  it('are the nodes to read the topology from', () => {
    expect(read('a:1,b:2', cluster).servers).toEqual({ kind: 'cluster', seeds: [tcp('a', 1), tcp('b', 2)] });
  });

  it.each([
    ['a:1,', 'REDIS_URL: item 2 is not host:port'],
    ['a:1,/run/x', 'REDIS_URL: item 2 is a socket path; host:port is required'],
    ['redis://a:1/3', 'REDIS_URL names a database; a cluster has only database 0'],
    ['redis://a:1,rediss://b:1', 'REDIS_URL has items with different schemes'],
    ['redis://x:y@a:1,redis://x:z@b:1', 'REDIS_URL has items with different credentials'],
  ])('%p is rejected', (url, problem) => {
    expect(() => read(url, cluster)).toThrow(problem);
  });
});
