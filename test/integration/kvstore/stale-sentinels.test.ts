import { setTimeout as wait } from 'node:timers/promises';
import { firstValueFrom } from 'rxjs';
import { type KvstoreCounters, kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { freePorts } from '../../support/processes/free-ports';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { FakeSentinel, type SentinelView } from '../../support/servers/fake-sentinel';
import { SilentPeer } from '../../support/servers/silent-peer';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { instance, options } from './options';

/** More than any test opens. */
const MAX_CLIENTS = 1_000;

const disposed: AsyncDisposable[] = [];
const opened: KvstoreCounters[] = [];

/** Two servers that both answer as masters, as when the old one is cut off from the sentinels. */
let old: RedisProcess;
let current: RedisProcess;

beforeAll(async () => {
  [old, current] = await Promise.all([RedisProcess.start(), RedisProcess.start()]);
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((counters) => counters.close()));
  await Promise.all(disposed.splice(0).map((server) => server[Symbol.asyncDispose]()));
  await old.control.call('REPLICAOF', 'NO', 'ONE');
  await current.control.call('CONFIG', 'SET', 'maxclients', String(MAX_CLIENTS));
  await Promise.all([old.control.flushall(), current.control.flushall()]);
});
afterAll(() => Promise.all([old[Symbol.asyncDispose](), current[Symbol.asyncDispose]()]));

async function sentinelsOf<T extends readonly SentinelView[]>(
  ...views: T
): Promise<{ readonly [K in keyof T]: FakeSentinel }> {
  const started = await Promise.all(views.map((view) => FakeSentinel.start(view)));
  disposed.push(...started);
  return started as unknown as { readonly [K in keyof T]: FakeSentinel };
}

/** Counters whose connections are all open. */
async function countersOf(sentinels: readonly FakeSentinel[]): Promise<KvstoreCounters> {
  const url = ['counters', ...sentinels.map(({ address }) => address)].join(',');
  const counters = kvstoreCounters(options(instance(url, { type: 'sentinel' })));
  opened.push(counters);
  await firstValueFrom(counters.ready$);
  await until('every sentinel has a subscriber', () => sentinels.every(({ subscribers }) => subscribers === 1));
  // The queries that follow the subscriptions.
  await wait(100);
  return counters;
}

/** Sends hits until one is on the server; how long that takes, in milliseconds. */
async function timeUntilOn(server: RedisProcess, counters: KvstoreCounters): Promise<number> {
  const began = performance.now();
  await until(
    'hits are counted on the server',
    async () => {
      await apply(counters, operation('hits', 1)).catch(() => undefined);
      return (await hitsOn(server)) > 0;
    },
    10_000,
  );
  return performance.now() - began;
}

async function hitsOn({ control }: RedisProcess): Promise<number> {
  return Number(await control.get('hits'));
}

/** Clients of the server in addition to that of the test. */
async function clientsOf({ control }: RedisProcess): Promise<number> {
  return Number(/connected_clients:(\d+)/.exec(await control.info('clients'))?.[1]) - 1;
}

async function connectionsTo({ control }: RedisProcess): Promise<number> {
  return Number(/total_connections_received:(\d+)/.exec(await control.info('stats'))?.[1]);
}

/** Connections beyond `maxclients`. */
async function rejectedBy({ control }: RedisProcess): Promise<number> {
  return Number(/rejected_connections:(\d+)/.exec(await control.info('stats'))?.[1]);
}

/** Lower than in the settings that a test waits for: a busy machine included. */
const SOON = 2_000;

describe('a failover that the first sentinel has not noticed', () => {
  it.each([
    ['with the versions of their configurations', 1, 2],
    ['without permission to read the versions', undefined, undefined],
  ])('is followed as soon as another sentinel announces it, %s', async (_, before, after) => {
    const view = { master: old, epoch: before };
    const [first, second] = await sentinelsOf(view, view);
    const counters = await countersOf([first, second]);
    await apply(counters, operation('hits', 1));
    expect(await hitsOn(old)).toBe(1);
    second.announce({ master: current, epoch: after });
    expect(await timeUntilOn(current, counters)).toBeLessThan(SOON);
    const late = await hitsOn(old);
    for (let hit = 0; hit < 20; hit += 1) await apply(counters, operation('hits', 1));
    expect(await hitsOn(old)).toBe(late);
    expect(await clientsOf(old)).toBe(0);
  });

  it('is followed while the old master does not accept connections, also without an announcement', async () => {
    const [dead] = await freePorts(1);
    const stale = { master: { port: dead }, epoch: 1 };
    const sentinels = await sentinelsOf(stale, stale, { master: current, epoch: 1 });
    // `ready$` waits for the master.
    const counters = await countersOf(sentinels);
    expect(await timeUntilOn(current, counters)).toBeLessThan(SOON);
  });

  it('is followed while the old master hangs, without waiting for its timeout', async () => {
    const hung = await SilentPeer.start();
    disposed.push(hung);
    const view = { master: { port: Number(hung.address.split(':')[1]) }, epoch: 1 };
    const [first, second] = await sentinelsOf(view, view);
    const url = ['counters', first.address, second.address].join(',');
    const counters = kvstoreCounters(options(instance(url, { type: 'sentinel', timeout: 60_000 })));
    opened.push(counters);
    await until('the subscription', () => second.subscribers === 1);
    await wait(100);
    second.announce({ master: current, epoch: 2 });
    expect(await timeUntilOn(current, counters)).toBeLessThan(SOON);
  });

  it('is followed when the old master replies that it is a read-only replica', async () => {
    const view = { master: old, epoch: undefined };
    const [first, second] = await sentinelsOf(view, view);
    const counters = await countersOf([first, second]);
    second.view = { master: current };
    await old.control.call('REPLICAOF', '127.0.0.1', '1');
    expect(await timeUntilOn(current, counters)).toBeLessThan(SOON);
  });

  it('is followed after a connect to a sentinel whose message was missed', async () => {
    const view = { master: old, epoch: 1 };
    const [first, second] = await sentinelsOf(view, view);
    const counters = await countersOf([first, second]);
    second.view = { master: current, epoch: 2 };
    second.cut();
    expect(await timeUntilOn(current, counters)).toBeLessThan(SOON);
    expect(await clientsOf(old)).toBe(0);
  });

  it('is found among sentinels that disagree when the service starts', async () => {
    const [first, second] = await sentinelsOf({ master: old, epoch: 1 }, { master: current, epoch: 2 });
    const counters = await countersOf([first, second]);
    expect(await timeUntilOn(current, counters)).toBeLessThan(SOON);
  });
});

describe('a sentinel with an older configuration', () => {
  it('does not move the connections when it announces its master, or is connected to again', async () => {
    const view = { master: current, epoch: 2 };
    const [wrong, second] = await sentinelsOf(view, view);
    const counters = await countersOf([wrong, second]);
    const before = await connectionsTo(current);
    // A message that arrives late: the sentinel itself knows of the later switch.
    wrong.sendSwitch(1, old.port);
    await wait(100);
    wrong.announce({ master: old, epoch: 1 });
    wrong.cut();
    await until('it has a subscriber again', () => wrong.subscribers === 1);
    await wait(200);
    await apply(counters, operation('hits', 1));
    expect(await hitsOn(current)).toBe(1);
    expect(await connectionsTo(current)).toBe(before);
  });

  it('is not asked when one of several connections to the master cannot be opened', async () => {
    const [stale, second] = await sentinelsOf({ master: old }, { master: old });
    const counters = await countersOf([stale, second]);
    second.announce({ master: current });
    await timeUntilOn(current, counters);
    await until('both connections are open', async () => (await clientsOf(current)) === 2);
    const before = await hitsOn(old);
    await current.control.call('CONFIG', 'SET', 'maxclients', '2');
    const clients = String(await current.control.call('CLIENT', 'LIST', 'TYPE', 'normal'));
    const own = String(await current.control.call('CLIENT', 'ID'));
    const [id] = [...clients.matchAll(/^id=(\d+)/gm)].map(([, each]) => each!).filter((each) => each !== own);
    await current.control.call('CLIENT', 'KILL', 'ID', id!);
    await until('connections are rejected', async () => (await rejectedBy(current)) > 0);
    await current.control.call('CONFIG', 'SET', 'maxclients', String(MAX_CLIENTS));
    await until('both connections are open again', async () => (await clientsOf(current)) === 2);
    for (let hit = 0; hit < 20; hit += 1) await apply(counters, operation('hits', 1));
    expect(await hitsOn(old)).toBe(before);
  });

  it('is believed when no other sentinel answers', async () => {
    const [first, second] = await sentinelsOf({ master: old, epoch: 3 }, { master: current, epoch: 2 });
    const counters = await countersOf([first, second]);
    await first[Symbol.asyncDispose]();
    disposed.splice(disposed.indexOf(first), 1);
    await old.control.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    expect(await timeUntilOn(current, counters)).toBeLessThan(SOON);
  });

  it('is believed when the master of the newer one does not accept connections', async () => {
    const [dead] = await freePorts(1);
    const [foreign, second] = await sentinelsOf({ master: { port: dead }, epoch: 50 }, { master: current, epoch: 0 });
    const counters = await countersOf([foreign, second]);
    expect(await timeUntilOn(current, counters)).toBeLessThan(SOON);
  });
});
