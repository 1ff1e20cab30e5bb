import type { Socket } from 'node:net';
import { firstValueFrom } from 'rxjs';
import type { KvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/deployment';
import { RecordedLog } from '../../support/data/recorded-log';
import { freePorts } from '../../support/processes/free-ports';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { type Reply, CommandServer, encode, loopback } from '../../support/servers/command-server';
import { SilentPeer } from '../../support/servers/silent-peer';
import { schedulerWith } from '../../support/waiting/scheduler-with';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { GIVE_UP, connected, instance, openKvstore } from './options';

type Master = { readonly port: number };

/** A sentinel that names the master that the test says, however old this information is. */
class FakeSentinel extends CommandServer {
  readonly #subscribers = new Set<Socket>();
  /** How often it was queried for the master. */
  queries = 0;
  /** Queries are answered, with the master at their arrival, when this has resolved. */
  held: Promise<unknown> = Promise.resolve();
  /** The sentinels that it names. */
  others: readonly Reply[] = [];

  constructor(public master: Master) {
    super((name, args, client) => {
      if (name === 'subscribe') {
        this.#subscribers.add(client);
        client.once('close', () => this.#subscribers.delete(client));
        return ['subscribe', args[0] ?? '', 1];
      }
      if (name !== 'sentinel') return 'PONG';
      if (args[0]?.toLowerCase() !== 'get-master-addr-by-name') return this.others;
      this.queries += 1;
      const port = String(this.master.port);
      return this.held.then(() => ['127.0.0.1', port]);
    });
  }

  get subscribers(): number {
    return this.#subscribers.size;
  }

  /** Names this master from now on, and sends `+switch-master`. */
  announce(master: Master): void {
    const message = `counters 127.0.0.1 ${this.master.port} 127.0.0.1 ${master.port}`;
    this.master = master;
    for (const client of this.#subscribers) client.write(encode(['message', '+switch-master', message]));
  }
}

const disposed: AsyncDisposable[] = [];

/** Two servers that both answer as masters, as when the old one is cut off from the sentinels. */
let old: RedisProcess;
let current: RedisProcess;

beforeAll(async () => {
  [old, current] = await Promise.all([RedisProcess.start(), RedisProcess.start()]);
});
afterEach(async () => {
  await Promise.all(disposed.splice(0).map((server) => server[Symbol.asyncDispose]()));
  await old.control.call('REPLICAOF', 'NO', 'ONE');
  await current.control.call('CONFIG', 'SET', 'maxclients', '1000');
  await Promise.all([old.control.flushall(), current.control.flushall()]);
});
afterAll(() => Promise.all([old[Symbol.asyncDispose](), current[Symbol.asyncDispose]()]));

async function sentinelsOf(...masters: readonly Master[]): Promise<[FakeSentinel, FakeSentinel]> {
  const started = await Promise.all(masters.map((master) => new FakeSentinel(master).listen()));
  disposed.push(...started);
  return started as [FakeSentinel, FakeSentinel];
}

function countersFor(
  sentinels: readonly { readonly address: string }[],
  more: Partial<InstanceOptions> = {},
  log = new RecordedLog(),
): KvstoreCounters {
  const url = ['counters', ...sentinels.map(({ address }) => address)].join(',');
  return openKvstore(instance(url, { type: 'sentinel', ...more }), { log });
}

/** Counters whose connections are open, and which every sentinel has been queried for. */
async function countersOf(sentinels: readonly FakeSentinel[]): Promise<KvstoreCounters> {
  const counters = countersFor(sentinels);
  await firstValueFrom(counters.ready$);
  await until('every sentinel has a subscriber', () => sentinels.every(({ subscribers }) => subscribers === 1));
  return counters;
}

/** Sends hits until one is on the server. Resolves with how many are. */
function hitsArrivingOn(server: RedisProcess, counters: KvstoreCounters): Promise<number> {
  return until('hits are counted on the server', async () => {
    await apply(counters, operation('hits', 1)).catch(() => undefined);
    const hits = await hitsOn(server);
    return hits > 0 && hits;
  });
}

async function hitsOn({ control }: RedisProcess): Promise<number> {
  return Number(await control.get('hits'));
}

async function info({ control }: RedisProcess, name: string): Promise<number> {
  return Number(new RegExp(`${name}:(\\d+)`).exec(await control.info())?.[1]);
}

/** Clients of the server in addition to that of the test. */
async function clientsOf(server: RedisProcess): Promise<number> {
  return (await info(server, 'connected_clients')) - 1;
}

describe('a failover that the first sentinel has not noticed', () => {
  it('is followed as soon as another sentinel announces it', async () => {
    const [first, second] = await sentinelsOf(old, old);
    const counters = await countersOf([first, second]);
    await apply(counters, operation('hits', 1));
    expect(await hitsOn(old)).toBe(1);
    second.announce(current);
    expect(await hitsArrivingOn(current, counters)).toBeGreaterThan(0);
    const late = await hitsOn(old);
    for (let hit = 0; hit < 20; hit += 1) await apply(counters, operation('hits', 1));
    expect(await hitsOn(old)).toBe(late);
    expect(await clientsOf(old)).toBe(0);
  });

  it('is followed although no sentinel answers a query after the announcement', async () => {
    const [first, second] = await sentinelsOf(old, old);
    const counters = await countersOf([first, second]);
    for (const sentinel of [first, second]) sentinel.held = new Promise(() => undefined);
    second.announce(current);
    expect(await hitsArrivingOn(current, counters)).toBeGreaterThan(0);
    await until('the connections to the old master are closed', async () => (await clientsOf(old)) === 0);
  });

  it('is followed while the old master does not accept connections, also without an announcement', async () => {
    const [dead] = await freePorts(1);
    const sentinels = await sentinelsOf({ port: dead }, { port: dead }, current);
    // `ready$` waits for the master.
    expect(await hitsArrivingOn(current, await countersOf(sentinels))).toBeGreaterThan(0);
  });

  it('is followed while the old master hangs, without waiting for its timeout', async () => {
    const hung = await SilentPeer.start();
    disposed.push(hung);
    const sentinels = await sentinelsOf(hung, hung);
    const counters = countersFor(sentinels, { timeout: 0 });
    await until('the subscription', () => sentinels[1].subscribers === 1);
    sentinels[1].announce(current);
    expect(await hitsArrivingOn(current, counters)).toBeGreaterThan(0);
  });

  it('is followed when the old master replies that it is a read-only replica', async () => {
    const sentinels = await sentinelsOf(old, old);
    const counters = await countersOf(sentinels);
    sentinels[1].master = current;
    await old.control.call('REPLICAOF', '127.0.0.1', '1');
    expect(await hitsArrivingOn(current, counters)).toBeGreaterThan(0);
  });
});

describe('a sentinel', () => {
  it('whose announcement may have been missed is queried when it is connected to again', async () => {
    const [sentinel] = await sentinelsOf(old);
    const counters = await countersOf([sentinel]);
    sentinel.master = current;
    sentinel.cut();
    expect(await hitsArrivingOn(current, counters)).toBeGreaterThan(0);
    expect(await clientsOf(old)).toBe(0);
  });

  it('that is back with an old view does not move the connections while the one that answered last does not', async () => {
    const [second, wrong] = await sentinelsOf(current, current);
    const counters = await countersOf([second, wrong]);
    await until('both connections are open', async () => (await clientsOf(current)) === 2);
    const before = await info(current, 'total_connections_received');
    wrong.master = old;
    const { queries } = second;
    wrong.cut();
    await until('the other one is queried', () => wrong.subscribers === 1 && second.queries > queries);
    await apply(counters, operation('hits', 1));
    expect(await hitsOn(current)).toBe(1);
    expect(await info(current, 'total_connections_received')).toBe(before);
  });

  it('is not queried when one of several connections to the master cannot be opened', async () => {
    const [stale, second] = await sentinelsOf(old, old);
    const counters = await countersOf([stale, second]);
    second.announce(current);
    expect(await hitsArrivingOn(current, counters)).toBeGreaterThan(0);
    await until('both connections are open', async () => (await clientsOf(current)) === 2);
    const [before, rejected] = [await hitsOn(old), await info(current, 'rejected_connections')];
    await current.control.call('CONFIG', 'SET', 'maxclients', '2');
    const clients = String(await current.control.call('CLIENT', 'LIST', 'TYPE', 'normal'));
    const own = String(await current.control.call('CLIENT', 'ID'));
    const [id] = [...clients.matchAll(/^id=(\d+)/gm)].map(([, each]) => each!).filter((each) => each !== own);
    await current.control.call('CLIENT', 'KILL', 'ID', id!);
    await until('connections are rejected', async () => (await info(current, 'rejected_connections')) > rejected);
    await current.control.call('CONFIG', 'SET', 'maxclients', '1000');
    await until('both connections are open again', async () => (await clientsOf(current)) === 2);
    for (let hit = 0; hit < 20; hit += 1) await apply(counters, operation('hits', 1));
    expect(await hitsOn(old)).toBe(before);
  });
});

describe('a sentinel without bounds', () => {
  it('that names 20,000 others has 32 of them queried, and the others counted in one line', async () => {
    const [dead] = await freePorts(1);
    const addresses = new Set<string>();
    const named = await new CommandServer((_name, _args, client) => {
      addresses.add(client.localAddress!);
      return new Error('ERR no sentinel');
    }).listen(0, '0.0.0.0');
    disposed.push(named);
    const [sentinel] = await sentinelsOf({ port: dead });
    sentinel.others = Array.from({ length: 20_000 }, (_, index) => ['ip', loopback(index), 'port', `${named.port}`]);
    const log = new RecordedLog();
    countersFor([sentinel], { poolSize: 1 }, log);
    // The master cannot be connected to, so all that are known are queried in turn.
    await until('the others are queried', () => addresses.size >= 32);
    const before = sentinel.queries;
    await until('it is queried again after them', () => sentinel.queries > before + 3);
    expect(addresses.size).toBe(32);
    const line = 'a sentinel names more sentinels than are used';
    expect(log.lines.filter(({ message }) => message === line)).toMatchObject([
      { fields: { sentinel: sentinel.address, left_out: 19_968 } },
    ]);
  });

  it('that announces 40,000 masters has the first and the last followed, and the others counted in one line', async () => {
    const [sentinel] = await sentinelsOf(old);
    const log = new RecordedLog();
    const counters = countersFor([sentinel], { poolSize: 1 }, log);
    await until('the subscription', () => sentinel.subscribers === 1);
    const [first, second] = await freePorts(2);
    for (let round = 0; round < 20_000; round += 1) {
      for (const port of [first, second]) sentinel.announce({ port });
    }
    sentinel.announce(current);
    expect(await hitsArrivingOn(current, counters)).toBeGreaterThan(0);
    const line = 'a sentinel announces masters without pause; the newest of each second is used';
    // The store may be asked for its present master before the announcements of the first second are counted.
    await until('the others are counted', () => log.messages.includes(line));
    const fields = { sentinel: sentinel.address, left_out: expect.any(Number) as number };
    expect(log.lines.filter(({ message }) => message === line)).toMatchObject([{ fields }]);
  });
});

it('a start without a sentinel that knows the master fails with the reason of each', async () => {
  const [dead] = await freePorts(1);
  const main = instance(`counters,127.0.0.1:${dead}`, { type: 'sentinel' });
  await expect(connected(main, { startup: GIVE_UP })).rejects.toThrow(
    new RegExp(`no sentinel returned the address of the master counters \\(127.0.0.1:${dead}: .*ECONNREFUSED`),
  );
});

const REJECTED = 'a sentinel rejects SUBSCRIBE; failovers may be noticed late';
const ACCEPTED = 'a sentinel accepts SUBSCRIBE again';

describe('a sentinel that rejects the subscription', () => {
  async function start(permissions: string) {
    const sentinel = await RedisProcess.start({
      mode: ['--sentinel'],
      configuration: () => [`sentinel monitor counters 127.0.0.1 ${old.port} 1`, `user ann on >word ${permissions}`],
    });
    disposed.push(sentinel);
    const log = new RecordedLog();
    const main = instance(`counters,${sentinel.address}`, { type: 'sentinel', sentinelAuth: 'ann:word' });
    // The attempts follow one another without the seconds between them.
    return { sentinel, log, counters: openKvstore(main, { log, scheduler: schedulerWith({ 5_000: 100 }) }) };
  }

  it.each([
    ['to the command', '~* &* +@all -subscribe', '+subscribe', "'subscribe' command"],
    ['to the channel', '~* resetchannels +@all', '&+switch-master', 'channel'],
  ])('is logged once, until the user gets the permission %s', async (_, permissions, missing, reason) => {
    const { sentinel, log, counters } = await start(permissions);
    await firstValueFrom(counters.ready$);
    await until('the subscription was rejected again', async () => {
      const entries = (await sentinel.control.call('ACL', 'LOG')) as (string | number)[][];
      return entries.reduce((sum, [, count]) => sum + Number(count), 0) > 1;
    });
    expect(await apply(counters, operation('key', 0))).toEqual([expect.any(Number)]);
    await sentinel.control.call('ACL', 'SETUSER', 'ann', missing);
    await until('the subscription is accepted', () => log.messages.includes(ACCEPTED));
    const fields = { store: 'main', sentinel: sentinel.address, reason: expect.stringContaining(reason) as string };
    const rejections = log.lines.filter(({ message }) => message === REJECTED);
    expect(rejections).toEqual([{ level: 'warn', message: REJECTED, fields }]);
  });

  it('is queried for the master instead', async () => {
    const { sentinel, log, counters } = await start('~* &* +@all -subscribe');
    await until('the subscription was rejected', () => log.messages.includes(REJECTED));
    await sentinel.control.call('SENTINEL', 'REMOVE', 'counters');
    await sentinel.control.call('SENTINEL', 'MONITOR', 'counters', '127.0.0.1', current.port, 1);
    expect(await hitsArrivingOn(current, counters)).toBeGreaterThan(0);
  });
});
