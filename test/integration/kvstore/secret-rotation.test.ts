import { firstValueFrom } from 'rxjs';
import { type KvstoreCounters, kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import type { InstanceOptions, InstanceSecrets } from '../../../src/sinks/counters/kvstore/connections/options';
import { replacementProblem } from '../../../src/sinks/counters/kvstore/stores/deployment';
import { RecordedLog } from '../../support/data/recorded-log';
import { freePorts } from '../../support/processes/free-ports';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { instance, options } from './options';

const opened: KvstoreCounters[] = [];
afterEach(() => Promise.all(opened.splice(0).map((counters) => counters.close())));

/** Counters whose secrets are those of `now` for each new connection. */
async function countersOf(main: InstanceOptions, now: () => InstanceSecrets): Promise<KvstoreCounters> {
  const counters = kvstoreCounters(options({ ...main, current: now }));
  opened.push(counters);
  await firstValueFrom(counters.ready$);
  return counters;
}

/** Changes the password of a user and cuts the connections of all users but the test's own. */
async function rotate({ control }: RedisProcess, user: string, password: string): Promise<void> {
  await control.call('ACL', 'SETUSER', user, 'resetpass', `>${password}`);
  await control.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await control.call('CLIENT', 'KILL', 'TYPE', 'pubsub', 'SKIPME', 'yes');
}

async function connects(server: RedisProcess, user: string): Promise<void> {
  await until(`${user} is connected`, async () =>
    String(await server.control.call('CLIENT', 'LIST')).includes(` user=${user} `),
  );
}

const USER = ['--user', 'ann', 'on', '>first', '~*', '&*', '+@all'];

async function count(counters: KvstoreCounters): Promise<unknown> {
  const [result] = await apply(counters, operation('key', 1));
  return result;
}

/** The count of the first call that succeeds: those of the time without a connection fail. */
function nextCount(counters: KvstoreCounters): Promise<number> {
  return until('a call succeeds', async () => {
    const result = await count(counters).catch(() => undefined);
    return typeof result === 'number' && result;
  });
}

describe('new connections authenticate with the credentials as they are then', () => {
  it('of the address of a server', async () => {
    await using server = await RedisProcess.start({ directives: USER });
    const main = instance(`redis://ann:first@${server.address}`);
    let { url } = main;
    const counters = await countersOf(main, () => ({ ...main, url }));
    expect(await count(counters)).toBe(1);
    url = `redis://ann:second@${server.address}`;
    await rotate(server, 'ann', 'second');
    await connects(server, 'ann');
    expect(await nextCount(counters)).toBeGreaterThan(0);
  });

  it('to a sentinel and to the master', async () => {
    await using master = await RedisProcess.start({ directives: USER });
    await using sentinel = await RedisProcess.start({
      mode: ['--sentinel'],
      configuration: () => [`sentinel monitor counters 127.0.0.1 ${master.port} 1`, 'user bob on >first ~* &* +@all'],
    });
    const main = instance(`counters,${sentinel.address}`, {
      type: 'sentinel',
      auth: 'ann:first',
      sentinelAuth: 'bob:first',
    });
    let secrets: InstanceSecrets = main;
    const counters = await countersOf(main, () => secrets);
    await connects(sentinel, 'bob');
    secrets = { ...main, auth: 'ann:second', sentinelAuth: 'bob:second' };
    await rotate(sentinel, 'bob', 'second');
    await connects(sentinel, 'bob');
    await rotate(master, 'ann', 'second');
    expect(await nextCount(counters)).toBeGreaterThan(0);
  });

  it('to the nodes of a cluster', async () => {
    const [bus] = await freePorts(1);
    await using node = await RedisProcess.start({
      directives: ['--cluster-enabled', 'yes', '--cluster-port', String(bus), ...USER],
    });
    await node.control.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
    await until('the cluster is ready', async () => (await node.control.cluster('INFO')).includes('cluster_state:ok'));
    const main = instance(node.address, { type: 'cluster', auth: 'ann:first' });
    let auth = 'ann:first';
    const counters = await countersOf(main, () => ({ ...main, auth }));
    auth = 'ann:second';
    await rotate(node, 'ann', 'second');
    expect(await nextCount(counters)).toBeGreaterThan(0);
  });
});

describe('an address replaces that at start', () => {
  const single = instance('redis://:one@h:1/2');
  const cluster = instance('a:1,b:2', { type: 'cluster' });

  it.each([
    [single, 'redis://:two@h:1/2'],
    [single, 'redis://ann:two@h:1/2'],
    [cluster, 'redis://:two@a:1,redis://:two@b:2'],
  ])('of %o with %s, because only the credentials differ', (main, url) => {
    expect(replacementProblem(main, url)).toBeUndefined();
  });

  it.each([
    [single, 'redis://:one@h:2/2', /^more than its credentials differs/],
    [single, 'redis://:one@h:1/3', /^more than its credentials differs/],
    [single, 'rediss://:one@h:1/2', /^more than its credentials differs/],
    [cluster, 'redis://:two@a:1', /^more than its credentials differs/],
    [single, 'redis://:hidden%zz@h:1/2', /^REDIS_URL: the address has a % that is not followed by/],
  ])('of %o not with %s', (main, url, problem) => {
    expect(replacementProblem(main, url)).toMatch(problem);
    expect(replacementProblem(main, url)).not.toContain('hidden');
  });
});

it('a log line names no password when the present one is rejected', async () => {
  await using server = await RedisProcess.start({ directives: USER });
  const log = new RecordedLog();
  const main = instance(server.address, { auth: 'ann:first', current: () => ({ ...main, auth: 'ann:hidden-word' }) });
  const counters = kvstoreCounters(options(main, { log }));
  opened.push(counters);
  await until('the log has the reason', () => log.text.includes('WRONGPASS'));
  expect(log.text).not.toContain('hidden-word');
});
