import type { KvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import type { InstanceOptions, InstanceSecrets } from '../../../src/sinks/counters/kvstore/deployment';
import { keySlot } from '../../../src/sinks/counters/kvstore/slots';
import type { StoreTlsFiles } from '../../../src/sinks/counters/tls-material';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { RedisTls } from '../../support/processes/redis/redis-tls';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { GIVE_UP, NO_TLS_FILES, connected, instance, nextCount } from './options';

/** Enough keys to have some on every node of a cluster. */
const KEYS = Array.from({ length: 60 }, (_, index) => `k${index}`);

const tls = new RedisTls();
const strangers = new RedisTls();
afterAll(() => {
  tls[Symbol.dispose]();
  strangers[Symbol.dispose]();
});

function open(main: InstanceOptions, tlsFiles = NO_TLS_FILES): Promise<KvstoreCounters> {
  return connected(main, { tlsFiles });
}

/** Rejects with the reason why the store cannot be connected to. */
function failToConnect(main: InstanceOptions, tlsFiles = NO_TLS_FILES): Promise<KvstoreCounters> {
  return connected(main, { tlsFiles, startup: GIVE_UP });
}

describe('sentinels and servers with TLS', () => {
  let sentinels: RedisSentinels;
  beforeAll(async () => {
    // Neither requires a client certificate. The sentinels' certificate is for their address, the servers' is not.
    function directives(name: string): readonly string[] {
      return [...tls.directives(name), '--tls-auth-clients', 'no'];
    }
    sentinels = await RedisSentinels.start({
      ...tls.server,
      directives: directives('redis.example'),
      sentinelOptions: { ...tls.server, directives: directives('127.0.0.1') },
    });
  });
  afterAll(() => sentinels[Symbol.asyncDispose]());

  function main(more: Partial<InstanceOptions> = {}): InstanceOptions {
    return instance(sentinels.url, { type: 'sentinel', tls: true, ...more });
  }
  function skipping(files: StoreTlsFiles): StoreTlsFiles {
    return { ...files, skipHostnameVerification: true };
  }

  it('are usable without hostname verification, also after a failover', async () => {
    const counters = await open(main(), skipping(tls.files()));
    expect(await apply(counters, operation('k', 1))).toEqual([1]);
    await until('the replica has the key', async () => (await sentinels.replica.control.dbsize()) === 1);
    await sentinels.failOver();
    await until('the new master counts', async () => {
      await nextCount(counters, 'k');
      return Number(await sentinels.replica.control.get('k')) > 1;
    });
  });

  it('are each verified by the host name of the connection unless verification is skipped', async () => {
    const byName = main({ url: sentinels.url.replaceAll('127.0.0.1', 'localhost') });
    await expect(failToConnect(byName, tls.files())).rejects.toThrow(/no sentinel returned.*altnames/);
    await expect(failToConnect(main(), tls.files())).rejects.toThrow(/within 200 ms: Hostname.*altnames/);
    await open(byName, skipping(tls.files()));
  });

  it('are rejected when another authority has signed their certificates, and without TLS', async () => {
    for (const files of [strangers.files(), skipping(strangers.files())]) {
      await expect(failToConnect(main(), files)).rejects.toThrow(/no sentinel returned.*certificate/);
    }
    await expect(failToConnect(main({ tls: false }), tls.files())).rejects.toThrow('cannot connect to the counter');
  });
});

describe('a cluster with TLS that requires client certificates', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.start({
      ...tls.server,
      directives: ['--tls-cluster', 'yes'],
      // All nodes have the address 127.0.0.1; the certificate of the last one is for another address.
      directivesOf: (index) => tls.directives(index === 2 ? '127.0.0.2' : '127.0.0.1'),
    });
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  function main(): InstanceOptions {
    return instance(cluster.url, { type: 'cluster', tls: true });
  }

  it('counts on every node with a client certificate', async () => {
    const files = { ...tls.files({ withCertificate: true }), skipHostnameVerification: true };
    const counters = await open(main(), files);
    for (const key of KEYS) expect(await nextCount(counters, key)).toBe(1);
    expect(await cluster.storedCounts(KEYS)).toEqual(KEYS.map(() => 1));
    for (const { control } of cluster.masters) expect(await control.dbsize()).toBeGreaterThan(0);
  });

  it('fails only the keys of a node whose certificate is for another address', async () => {
    const counters = await open(main(), tls.files({ withCertificate: true }));
    const owners = await Promise.all(KEYS.map((key) => cluster.ownerOf(keySlot(key))));
    const [first, second, third] = cluster.masters.map((master) => KEYS[owners.indexOf(master)]!);
    for (const key of [first, second]) expect(await nextCount(counters, key!)).toBeGreaterThan(0);
    const [failure] = await apply(counters, operation(third!, 1));
    expect(failure).toMatchObject({ code: 'store_failed', message: 'there is no connection to the counter store' });
    expect(String((failure as Error).cause)).toMatch(/altnames/);
  });

  it('cannot be connected to without a client certificate, nor when another authority has signed its certificates', async () => {
    const skips = { skipHostnameVerification: true };
    const anonymous = failToConnect(main(), { ...tls.files(), ...skips });
    await expect(anonymous).rejects.toThrow('cannot connect to the counter store');
    const files = { ...tls.files({ withCertificate: true }), ...skips, ca: strangers.files().ca };
    await expect(failToConnect(main(), files)).rejects.toThrow(/no cluster node.*certificate/);
  });
});

/** Changes the password of a user and cuts the connections of all users but the test's own. */
async function rotate({ control }: RedisProcess, user: string, password: string): Promise<void> {
  await control.call('ACL', 'SETUSER', user, 'resetpass', `>${password}`);
  for (const type of ['normal', 'pubsub']) await control.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
}

function connects({ control }: RedisProcess, user: string): Promise<unknown> {
  return until(`${user} is connected`, async () =>
    String(await control.call('CLIENT', 'LIST')).includes(`user=${user} `),
  );
}

const USER = ['--user', 'ann', 'on', '>first', '~*', '&*', '+@all'];

describe('credentials of sentinels and clusters', () => {
  it('differ between the sentinels and the servers', async () => {
    await using sentinels = await RedisSentinels.start({
      directives: ['--requirepass', 'data', '--masterauth', 'data'],
      control: { password: 'data' },
      sentinelLines: ['sentinel auth-pass counters data', 'requirepass watch', 'sentinel sentinel-pass watch'],
      sentinelOptions: { control: { password: 'watch' } },
    });
    const main = instance(sentinels.url, { type: 'sentinel', auth: 'data', sentinelAuth: 'watch' });
    expect(await apply(await open(main), operation('k', 1))).toEqual([1]);
    await expect(failToConnect({ ...main, sentinelAuth: undefined })).rejects.toThrow('NOAUTH');
    await expect(failToConnect({ ...main, auth: 'wrong' })).rejects.toThrow('WRONGPASS');
  });

  it('are those of the moment for each new connection to a sentinel and to the master', async () => {
    await using master = await RedisProcess.start({ directives: USER });
    await using sentinel = await RedisProcess.start({
      mode: ['--sentinel'],
      configuration: () => [`sentinel monitor counters 127.0.0.1 ${master.port} 1`, 'user bob on >first ~* &* +@all'],
    });
    const auths = { auth: 'ann:first', sentinelAuth: 'bob:first' };
    const main = instance(`counters,${sentinel.address}`, { type: 'sentinel', ...auths });
    let secrets: InstanceSecrets = main;
    const counters = await open({ ...main, current: () => secrets });
    await connects(sentinel, 'bob');
    secrets = { ...main, auth: 'ann:second', sentinelAuth: 'bob:second' };
    await rotate(sentinel, 'bob', 'second');
    await connects(sentinel, 'bob');
    await rotate(master, 'ann', 'second');
    expect(await nextCount(counters, 'k')).toBeGreaterThan(0);
  });

  it('are used, as they are at the moment, for every node of a cluster', async () => {
    await using cluster = await RedisCluster.start({ directives: USER });
    const main = instance(cluster.url, { type: 'cluster', auth: 'ann:first' });
    let { auth } = main;
    const counters = await open({ ...main, current: () => ({ ...main, auth }) });
    for (const key of KEYS) expect(await nextCount(counters, key)).toBe(1);
    auth = 'ann:second';
    for (const node of cluster.masters) await rotate(node, 'ann', 'second');
    for (const key of KEYS) expect(await nextCount(counters, key)).toBeGreaterThan(1);
  });
});
