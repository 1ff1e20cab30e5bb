import dns from 'node:dns';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { NEVER, Subject, VirtualTimeScheduler, concat, firstValueFrom, of } from 'rxjs';
import type { Operation } from '../../../src/counting/operation';
import type { DecisionError } from '../../../src/counting/decision-error';
import type { Connection } from '../../../src/sinks/counters/kvstore/connection';
import type { KvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import type { InstanceOptions, KvstoreOptions } from '../../../src/sinks/counters/kvstore/deployment';
import { HEARTBEAT, Pool, PoolStatistics } from '../../../src/sinks/counters/kvstore/pool';
import { Deadline } from '../../../src/streams/deadline';
import { ServerState } from '../../../src/streams/server-state';
import { turnScheduler } from '../../../src/main/turn-scheduler';
import { Statistics } from '../../../src/statistics/statistics';
import { ConditionLog } from '../../../src/log/condition-log';
import { LaneClient, applyTo } from '../../support/clients/lane-client';
import { RecordedLog } from '../../support/data/recorded-log';
import { freePorts } from '../../support/processes/free-ports';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { type Reply, CommandServer } from '../../support/servers/command-server';
import { FaultProxy } from '../../support/servers/fault-proxy';
import { schedulerWith } from '../../support/waiting/scheduler-with';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { storedCounts } from './load';
import { GIVE_UP, connected, instance, openKvstore } from './options';

type Found = (error: null, found: unknown, family?: number) => void;
const LOOPBACK = { address: '127.0.0.1', family: 4 };

/** KVSTORE_TIMEOUT of the tests whose calls exceed it, in milliseconds. */
const TIMEOUT = 1_000;

let server: RedisProcess;
let second: RedisProcess;
let proxy: FaultProxy;

beforeAll(async () => {
  [server, second] = await Promise.all([RedisProcess.start(), RedisProcess.start()]);
});
beforeEach(async () => {
  proxy = await FaultProxy.start(() => server);
});
afterEach(async () => {
  second.signal('SIGCONT');
  await proxy[Symbol.asyncDispose]();
});
afterAll(() => Promise.all([server[Symbol.asyncDispose](), second[Symbol.asyncDispose]()]));

function open(main: Partial<InstanceOptions> = {}, more: Partial<KvstoreOptions> = {}): Promise<KvstoreCounters> {
  return connected(instance(proxy.address, main), more);
}

function statistic(statistics: Statistics, name: string, pool = 'redis_pool'): number {
  return new Map(statistics.entries()).get(`ratelimit.${pool}.cx_${name}`) ?? 0;
}

describe('a lane whose connections are all busy', () => {
  it('opens a connection for each further window when it is to create them, and closes it after the window', async () => {
    const statistics = new Statistics(10);
    const main = { poolOnEmptyBehavior: 'CREATE', poolOnEmptyWaitDuration: 1, timeout: TIMEOUT } as const;
    using client = new LaneClient(await open(main, { statistics }));
    // A connection is not yet ready when the proxy accepts it.
    await until('the pool is full', () => statistic(statistics, 'active') === 2);
    // Their replies are held back until the timeout.
    proxy.fault = 'black hole';
    const busy: Promise<unknown>[] = [];
    for (let window = 0; window < 2; window += 1) {
      busy.push(client.call([operation('busy', 1)]).catch((error: unknown) => error));
      await setImmediate();
    }
    proxy.fault = 'none';
    expect(await client.call([operation('created', 1)])).toEqual([1]);
    expect(statistic(statistics, 'total')).toBeGreaterThanOrEqual(3);
    expect(await Promise.all(busy)).toMatchObject([{ code: 'store_timeout' }, { code: 'store_timeout' }]);
    await until('the extra connection is closed, too', () => statistic(statistics, 'local_close') >= 3);
  });

  it('sends a further window on one of them when no other connection can be opened', async () => {
    let [rejected, release] = [0, (): void => undefined];
    const busy = new Promise<Reply>((resolve) => (release = () => resolve([1])));
    const clients = new Set<Socket>();
    await using peer: CommandServer = await CommandServer.start((name, args, client) => {
      clients.add(client);
      if (clients.size > 1 && name === 'ping') rejected += 1;
      if (clients.size > 1 && name === 'ping') return new Error('ERR max number of clients reached');
      return args.includes('busy') ? busy : answerTo(name, args, peer.port);
    });
    const main = { url: peer.address, poolSize: 1, poolOnEmptyBehavior: 'CREATE', poolOnEmptyWaitDuration: 1 } as const;
    using client = new LaneClient(await open(main));
    const first = client.call([operation('busy', 1)]);
    await setImmediate();
    const further = client.call([operation('further', 1)]);
    await until('another connection was rejected', () => rejected > 0);
    release();
    expect(await Promise.all([first, further])).toEqual([[1], [1]]);
  });
});

it('a window whose time ends, or that is abandoned, while it waits for a connection leaves it to the next one', async () => {
  const connection = {
    isOpen: true,
    cut: () => undefined,
    ping: () => Promise.resolve(true),
  } as Partial<Connection> as Connection;
  const statistics = new PoolStatistics(new Statistics(10), 'redis_pool');
  const outage = new ConditionLog(new RecordedLog(), { begins: 'an outage' });
  const state = new ServerState({ name: { server: 'of the test' }, scheduler: turnScheduler, failures: 0 });
  const options = { size: 1, mayExceed: false, timeout: 0, retryDelay: () => 0, statistics, outage, state };
  const pool = new Pool({ ...options, scheduler: turnScheduler, connect: () => concat(of(connection), NEVER) });
  const released$ = new Subject<void>();
  const busy = pool.use(new Deadline(), () => firstValueFrom(released$));
  // In a cluster a window that was sent to the wrong server first has less time left than those that are served.
  const late = { code: 'store_timeout', isUncounted: true };
  const short = new Deadline();
  const passed = pool.use(short, () => Promise.resolve());
  short.pass();
  await expect(passed).rejects.toMatchObject(late);
  const abandoned = new Deadline();
  const waiting = pool.use(abandoned, () => Promise.resolve());
  abandoned.abandon();
  await expect(waiting).rejects.toMatchObject(late);
  await expect(pool.use(abandoned, () => Promise.resolve())).rejects.toMatchObject(late);
  expect(abandoned.mayHaveCounted).toBe(false);
  released$.next();
  await busy;
  expect(await pool.use(new Deadline(), () => Promise.resolve('served'))).toBe('served');
  pool.close();
  state.end();
});

it('idle connections are asked whether their server answers, those that are lost no more', async () => {
  const made: { readonly opened$: Subject<Connection>; readonly ping: jest.Mock }[] = [];
  const statistics = new PoolStatistics(new Statistics(10), 'redis_pool');
  const outage = new ConditionLog(new RecordedLog(), { begins: 'an outage' });
  const state = new ServerState({ name: { server: 'of the test' }, scheduler: turnScheduler, failures: 0 });
  const heard = jest.spyOn(state, 'heard');
  const time = new VirtualTimeScheduler();
  const options = { size: 3, mayExceed: false, timeout: 0, retryDelay: () => 1, statistics, outage, state };
  const pool = new Pool({
    ...options,
    scheduler: time,
    connect: () => {
      const opened$ = new Subject<Connection>();
      // Only the first one is answered.
      made.push({ opened$, ping: jest.fn(() => Promise.resolve(made[0]?.opened$ === opened$)) });
      return opened$;
    },
  });
  function asked(): readonly number[] {
    return made.map(({ ping }) => ping.mock.calls.length);
  }
  for (const index of [0, 1, 2]) {
    const { opened$, ping } = made[index]!;
    opened$.next({ isOpen: true, cut: () => undefined, ping } as Partial<Connection> as Connection);
  }
  time.maxFrames = HEARTBEAT;
  time.flush();
  await setImmediate();
  expect([asked(), heard.mock.calls.length, state.trips.oldest]).toEqual([[1, 1, 1], 1, undefined]);
  made[0]!.opened$.error(new Error('lost'));
  time.maxFrames = 2 * HEARTBEAT;
  time.flush();
  expect(asked()).toEqual([1, 2, 2, 0]);
  pool.close();
  state.end();
});

describe('the connections of a pool', () => {
  it('are counted when they are opened and closed, and opened again when they are lost', async () => {
    const statistics = new Statistics(10);
    const perSecond = instance(second.address, { poolSize: 2 });
    const counters = await open({ poolSize: 3 }, { statistics, perSecond });
    await until('all are open', () => statistic(statistics, 'active') === 3);
    await until('all are open', () => statistic(statistics, 'active', 'redis_per_second_pool') === 2);
    expect([statistic(statistics, 'total'), statistic(statistics, 'local_close')]).toEqual([3, 0]);
    proxy.cut();
    await until('all are open again', () => statistic(statistics, 'total') === 6);
    expect([statistic(statistics, 'active'), statistic(statistics, 'local_close')]).toEqual([3, 3]);
    await counters.close();
    expect([statistic(statistics, 'active'), statistic(statistics, 'local_close')]).toEqual([0, 6]);
  });

  it('are those of the states of connected$, also of one of two instances', async () => {
    const counters = await open({}, { perSecond: instance(second.address) });
    const states: boolean[] = [];
    const subscription = counters.connected$.subscribe((state) => states.push(state));
    proxy.fault = 'refused';
    proxy.cut();
    await until('it is not connected', () => states.at(-1) === false);
    await expect(apply(counters, operation('k', 1))).rejects.toMatchObject({
      code: 'store_failed',
      message: 'there is no connection to the counter store',
    });
    proxy.fault = 'none';
    await until('it is connected', () => states.at(-1) === true);
    subscription.unsubscribe();
    expect(states).toEqual([true, false, true]);
  });

  it('are cut while they are idle when the server no longer answers, and not before', async () => {
    let [pings, isMute] = [0, false];
    await using peer = await CommandServer.start(() => {
      pings += 1;
      return isMute ? new Promise(() => undefined) : 'PONG';
    });
    const log = new RecordedLog();
    // The checks follow one another without the seconds between them.
    const scheduler = schedulerWith({ 5_000: 20 });
    const counters = await open({ url: peer.address, poolSize: 1, timeout: TIMEOUT }, { log, scheduler });
    await until('it is checked', () => pings > 10);
    expect(log.messages).toEqual([]);
    isMute = true;
    await until('it is not connected', async () => !(await firstValueFrom(counters.connected$)));
  });

  it('are not given to a window once they have been cut, and the others stay in the pool', async () => {
    let [isWrong, release] = [true, (): void => undefined];
    const busy = new Promise<Reply>((resolve) => (release = () => resolve([1])));
    const clients = new Set<Socket>();
    await using peer: CommandServer = await CommandServer.start((name, args, client) => {
      if (isWrong) clients.add(client);
      // No further connection can be opened: the other one has to stay in the pool.
      if (!clients.has(client)) return new Promise(() => undefined);
      if (args.includes('busy')) return busy;
      if (!args.includes('wrong')) return answerTo(name, args, peer.port);
      isWrong = false;
      return [];
    });
    const statistics = new Statistics(10);
    const main = { url: peer.address, poolOnEmptyBehavior: 'WAIT', timeout: 5 * TIMEOUT } as const;
    const counters = await open(main, { statistics });
    await until('both are open', () => statistic(statistics, 'active') === 2);
    const [held, wrong, waiting] = ['busy', 'wrong', 'waiting'].map((key) => apply(counters, operation(key, 1)));
    // Its reply is of no use for the window, so what follows on this connection would not be either.
    await expect(wrong).rejects.toMatchObject({ code: 'store_failed' });
    await until('it is closed', () => statistic(statistics, 'local_close') === 1);
    release();
    expect(await Promise.all([held, waiting])).toEqual([[1], [1]]);
    expect(await apply(counters, operation('k', 1))).toEqual([1]);
  });

  it('are closed when the windows in flight have ended', async () => {
    const counters = await open();
    const last = apply(counters, operation('last', 1));
    await counters.close();
    expect(await last).toEqual([1]);
    await until('all are closed', () => proxy.connections === 0);
  });

  it('are closed when KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR is set and the server has become a replica', async () => {
    const counters = await open({ poolSize: 1 }, { closeConnectionOnReadonlyError: true });
    await server.control.call('REPLICAOF', '127.0.0.1', '1');
    try {
      const before = proxy.accepted;
      const [failure] = await apply(counters, operation('k', 1));
      expect(failure).toMatchObject({ code: 'store_failed', message: 'the counter store is a read-only replica' });
      await until('there is a new connection', () => proxy.accepted === before + 1);
    } finally {
      await server.control.call('REPLICAOF', 'NO', 'ONE');
    }
  });
});

it('an error reply to a step fails its call with a message for callers', async () => {
  const messages = {
    'READONLY You may not write': 'the counter store is a read-only replica',
    // Redis 6.0 and 6.2 put the line of the script before the error of a command in it.
    '@user_script:1: -MISCONF Redis is configured to save':
      'the counter store rejects writes because it cannot save them',
    "@user_script: 9: The user executing the script can't run this command or subcommand":
      'the user of the counter store lacks a permission',
    "ERR The user executing the script can't run this command or subcommand script: 75c1, on @user_script:1.":
      'the user of the counter store lacks a permission',
    "ERR ACL failure in script: User weir has no permissions to run the 'time' command script: 75c1, on @user_script:1.":
      'the user of the counter store lacks a permission',
    'ERR value is not an integer or out of range': 'the key of a counter holds a value that is not an integer',
    'something without a code': 'the counter store replied with the error ERR',
  };
  const replies = Object.keys(messages).map((reply) => new Error(reply));
  await using peer: CommandServer = await CommandServer.start((name, args) =>
    name === 'evalsha' ? [1, ...replies] : answerTo(name, args, peer.port),
  );
  const batch = ['fine', ...replies].map((_, index) => operation(`k${index}`, 1));
  const failures = Object.values(messages).map((message) => ({ code: 'store_failed', message }));
  expect(await apply(await open({ url: peer.address }), ...batch)).toMatchObject([1, ...failures]);
});

it.each([
  ['tcp', 0],
  ['tcp4', 4],
  ['tcp6', 6],
] as const)('a name is resolved to the IP version of KVSTORE_SOCKET_TYPE=%s', async (socketType, expected) => {
  const lookup = jest
    .spyOn(dns, 'lookup')
    .mockImplementation(((_: string, { all }: dns.LookupOptions, found: Found) =>
      process.nextTick(() => (all === true ? found(null, [LOOPBACK]) : found(null, LOOPBACK.address, 4)))) as never);
  const counters = await open({ url: `store.test:${server.port}`, socketType });
  expect(await apply(counters, operation('named', 0))).toEqual([0]);
  const families = lookup.mock.calls.map(([, given]) => (given as dns.LookupOptions).family ?? 0);
  expect([...new Set(families)]).toEqual([expected]);
  lookup.mockRestore();
});

describe('counters at start', () => {
  it('wait for the store, and log one line when it is unavailable and one when it is connected', async () => {
    const log = new RecordedLog();
    proxy.fault = 'refused';
    const counters = openKvstore(instance(proxy.address), { log });
    await expect(apply(counters, operation('k', 1))).rejects.toMatchObject({ code: 'store_failed' });
    await until('several attempts were made', () => proxy.accepted > 3);
    proxy.fault = 'none';
    await firstValueFrom(counters.ready$);
    expect(log.messages).toEqual(['cannot connect to the counter store; retrying', 'connected to the counter store']);
  });

  it('fail with the reason when the store is not connected within KVSTORE_STARTUP_MAX_ELAPSED_TIME', async () => {
    const [port] = await freePorts(1);
    const refused = open({ url: `redis://:secret@127.0.0.1:${port}` }, { startup: GIVE_UP });
    await expect(refused).rejects.toThrow(/^cannot connect to the counter store within 200 ms: .*ECONNREFUSED/);
    proxy.fault = 'black hole';
    await expect(open({ timeout: 100 }, { startup: GIVE_UP })).rejects.toThrow('no reply within 100 ms');
  });
});

/** Stands still, after the sockets were read and before the timers run. */
function standStill(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

/** How a server that holds the counters, a sentinel and a node of a cluster answer. */
function answerTo(name: string, args: readonly string[], port: number): Reply {
  if (name === 'evalsha' || name === 'eval') return Array.from({ length: Number(args[1]) }, () => 1);
  if (name === 'role') return ['master', 0, []];
  if (name === 'cluster') return [[0, 16_383, ['127.0.0.1', port]]];
  if (name !== 'sentinel') return name === 'subscribe' ? ['subscribe', args[0]!, 1] : 'PONG';
  return args[0] === 'get-master-addr-by-name' ? ['127.0.0.1', String(port)] : [];
}

describe('when the event loop stands still for longer than KVSTORE_TIMEOUT, a reply that has arrived in time', () => {
  it.each<readonly [of: string, type: InstanceOptions['type'], command: string]>([
    ['to a window', 'single', 'evalsha'],
    ['to the handshake of a connection', 'single', 'ping'],
    ['of a sentinel', 'sentinel', 'sentinel'],
    ['about the slots of a cluster', 'cluster', 'cluster'],
  ])('%s counts', async (_, type, command) => {
    let isDue = true;
    await using peer: CommandServer = await CommandServer.start((name, args) => {
      if (name === command && isDue) {
        isDue = false;
        // The reply is written before; a sentinel has twice the timeout.
        globalThis.setImmediate(() => standStill((type === 'sentinel' ? 2 : 1) * TIMEOUT + 10));
      }
      return answerTo(name, args, peer.port);
    });
    const log = new RecordedLog();
    const url = type === 'sentinel' ? `counters,${peer.address}` : peer.address;
    const counters = await open({ type, url, poolSize: 1, timeout: TIMEOUT }, { log });
    const counts = await until('the connection is open', () =>
      apply(counters, operation('still', 1)).catch((error: DecisionError) => error.code !== 'store_failed' && []),
    );
    expect(counts).toEqual([1]);
    expect(isDue).toBe(false);
    expect(log.lines.filter(({ level }) => level !== 'notice' && level !== 'info')).toEqual([]);
  });

  it('counts for its window, but the next window is not sent after its own time', async () => {
    const received: string[] = [];
    await using peer = await CommandServer.start((name, args) => {
      received.push(name);
      if (name === 'evalsha' && received.filter((each) => each === name).length === 1) {
        globalThis.setImmediate(() => standStill(TIMEOUT + 10));
      }
      return answerTo(name, args, 0);
    });
    const statistics = new Statistics(10);
    const main = { url: peer.address, poolSize: 1, poolOnEmptyBehavior: 'WAIT', timeout: TIMEOUT } as const;
    const counters = await open(main, { statistics });
    const lane = counters.laneOf(operation('k', 1));
    const [first, next] = ['one', 'two'].map((key) => applyTo(lane, [operation(key, 1)]));
    await Promise.all([
      expect(first).resolves.toEqual([1]),
      expect(next).rejects.toMatchObject({ code: 'store_timeout' }),
    ]);
    expect(received.filter((name) => name === 'evalsha')).toHaveLength(1);
    expect(await apply(counters, operation('three', 1))).toEqual([1]);
    expect(statistic(statistics, 'local_close')).toBe(0);
  });

  it('counts for its part of a large window, as do those to the other parts, which were sent with it', async () => {
    // Without the proxy, which would stand still too.
    const counters = await open({ url: server.address, poolSize: 1, timeout: TIMEOUT });
    const keys = Array.from({ length: 600 }, (_, index) => `part-${index}`);
    const applied = apply(counters, ...keys.map((key) => operation(key, 1)));
    standStill(TIMEOUT + 10);
    expect(await applied).toEqual(keys.map(() => 1));
    expect(await storedCounts(server.control, keys)).toEqual(keys.map(() => 1));
  });
});

const PER_SECOND = { lengthSeconds: 1 };

describe('a per-second instance that hangs', () => {
  /** What became of calls, in the order in which they end. */
  let ended: string[];
  let calls: Promise<unknown>[];
  let lanes: LaneClient;
  afterEach(() => lanes[Symbol.dispose]());

  async function begin(main: Partial<InstanceOptions>, own: Partial<InstanceOptions>): Promise<void> {
    [ended, calls] = [[], []];
    lanes = new LaneClient(await open(main, { perSecond: instance(second.address, own) }));
    second.signal('SIGSTOP');
  }

  function add(name: string, ...operations: readonly Operation[]): void {
    const outcome = lanes.call(operations).then(
      () => 'OK',
      ({ code, isUncounted }: DecisionError) => (isUncounted ? `${code}, uncounted` : code),
    );
    calls.push(outcome.then((each) => ended.push(`${name}: ${each}`)));
  }

  it('delays only calls with an operation on it', async () => {
    await begin({}, {});
    add('both', operation('b', 1), operation('b', 1, PER_SECOND));
    for (let call = 0; call < 100; call += 1) {
      if (call % 10 === 0) add('per second', operation('s', 1, PER_SECOND));
      add('main', operation('m', 1));
      await setImmediate();
    }
    await until('the main calls have ended', () => ended.length >= 100);
    expect(ended).toEqual(Array.from({ length: 100 }, () => 'main: OK'));
    second.signal('SIGCONT');
    await Promise.all(calls);
    expect(ended.slice(100)).toContain('both: OK');
  });

  it('fails its calls by its own pool policy', async () => {
    const policy = { timeout: 2 * TIMEOUT, poolOnEmptyBehavior: 'ERROR', poolOnEmptyWaitDuration: 100 } as const;
    await begin({ poolOnEmptyBehavior: 'WAIT', poolSize: 1 }, { ...policy, poolSize: 1 });
    add('first', operation('s', 1, PER_SECOND));
    await setImmediate();
    add('second', operation('s', 1, PER_SECOND));
    add('main', operation('m', 1));
    add('both', operation('b', 1), operation('s', 1, PER_SECOND));
    await Promise.all(calls);
    const before = ['both: store_pool_empty, uncounted', 'main: OK', 'second: store_pool_empty, uncounted'];
    expect([ended.slice(0, 3).toSorted(), ended[3]]).toEqual([before, 'first: store_timeout']);
  });
});

it('the two instances have pipelines of their own', async () => {
  const own = { pipelineWindow: 200, poolSize: 5 };
  const policy = { ...own, poolOnEmptyBehavior: 'ERROR', poolOnEmptyWaitDuration: 3 } as const;
  const counters = await open({ poolOnEmptyBehavior: 'WAIT' }, { perSecond: instance(second.address, policy) });
  const lanes = [operation('k', 1), operation('k', 1, PER_SECOND)].map((each) => counters.laneOf(each).pipeline);
  expect(lanes).toEqual([
    { span: 0, windowsInFlight: 2, whenFull: undefined },
    { span: 200, windowsInFlight: 5, whenFull: { behavior: 'fail', after: 3 } },
  ]);
});
