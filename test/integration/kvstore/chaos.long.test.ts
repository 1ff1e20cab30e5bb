import { setTimeout as wait } from 'node:timers/promises';
import { heapAfterCollection } from '../../support/processes/collect-garbage';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { type Fault, FaultProxy } from '../../support/servers/fault-proxy';
import { Load, storedCounts } from './load';
import { connected, instance } from './options';

/** On each kind of deployment, in milliseconds. */
const DURATION = 1000 * Number(process.env['CHAOS_SECONDS'] ?? 10);
/** KVSTORE_TIMEOUT */
const TIMEOUT = 250;
/** What the event loop of a busy machine may add to a timeout, in milliseconds. */
const TOLERANCE = 5_000;
const CALLERS = 4;

const started: AsyncDisposable[] = [];
afterEach(() => Promise.all(started.splice(0).map((each) => each[Symbol.asyncDispose]())));

async function use<T extends AsyncDisposable>(starting: Promise<T>): Promise<T> {
  const server = await starting;
  started.push(server);
  return server;
}

async function single() {
  const server = await use(RedisProcess.start());
  const proxy = await use(FaultProxy.start(() => server));
  function stored(keys: readonly string[]) {
    return storedCounts(server.control, keys);
  }
  return { main: instance(proxy.address), servers: [server], proxies: [proxy], stored };
}

/** A deployment whose servers are all reached through proxies, so that every fault can hit every connection. */
type Deployment = Awaited<ReturnType<typeof single>>;

async function sentinel(): Promise<Deployment> {
  let master: RedisProcess | undefined;
  const proxy = await use(FaultProxy.start(() => ({ port: master?.port ?? 0 })));
  function masterPort(server: RedisProcess): number {
    master = server;
    return proxy.port;
  }
  const running = await use(RedisSentinels.start({ masterPort }));
  return {
    main: instance(running.url, { type: 'sentinel' }),
    servers: [running.master],
    proxies: [proxy],
    stored: (keys) => storedCounts(running.master.control, keys),
  };
}

async function cluster(): Promise<Deployment> {
  const servers: RedisProcess[] = [];
  const proxies = await Promise.all(
    [0, 1, 2].map((index) => use(FaultProxy.start(() => ({ port: servers[index]?.port ?? 0 })))),
  );
  const running = await use(
    RedisCluster.start({ directivesOf: (index) => ['--cluster-announce-port', String(proxies[index]?.port)] }),
  );
  servers.push(...running.masters);
  const main = instance(proxies.map(({ address }) => address).join(','), { type: 'cluster' });
  return { main, servers, proxies, stored: (keys) => running.storedCounts(keys) };
}

/**
 * Injects one fault and ends it, before sentinels or the cluster elect another master: a failover loses writes by
 * design.
 */
async function injectFault({ servers, proxies }: Deployment): Promise<void> {
  const proxy = proxies[Math.floor(Math.random() * proxies.length)]!;
  const server = servers[Math.floor(Math.random() * servers.length)]!;
  async function during(fault: Fault, milliseconds: number): Promise<void> {
    proxy.fault = fault;
    await wait(milliseconds);
    proxy.fault = 'none';
  }
  const aboutTimeout = TIMEOUT * (0.5 + Math.random());
  const faults: readonly (() => unknown)[] = [
    () => proxy.cut(),
    () => proxy.reset(),
    () => proxy.cutAfterReplyBytes(Math.floor(Math.random() * 200)),
    () => server.control.call('SCRIPT', 'FLUSH').catch(() => undefined),
    () => during('lost replies', aboutTimeout),
    () => during('black hole', aboutTimeout),
    () => {
      proxy.reset();
      return during('refused', TIMEOUT * Math.random());
    },
    async () => {
      server.signal('SIGSTOP');
      await wait(aboutTimeout);
      server.signal('SIGCONT');
    },
  ];
  await faults[Math.floor(Math.random() * faults.length)]?.();
  await wait(Math.random() * 150);
}

/** Injects faults under load, and compares the callers' results with the store. */
async function play(deployment: Deployment): Promise<void> {
  const counters = await connected({ ...deployment.main, timeout: TIMEOUT, poolSize: CALLERS });
  const load = new Load(counters);
  try {
    load.start(CALLERS);
    const end = performance.now() + DURATION;
    while (performance.now() < end) await injectFault(deployment);
    // No fault is active now, so the store has to recover.
    await load.recovers(500);
    const mistakes = load.mistakes(await deployment.stored([...load.keys.keys()]));
    expect(mistakes).toMatchObject({ appliedTwice: [], lost: 0, wrongCounts: 0, unexpected: [] });
    expect(load.count('OK')).toBeGreaterThan(100);
    const failed = load.count('store_failed') + load.count('store_timeout') + load.count('store_pool_empty');
    expect(failed).toBeGreaterThan(50);
    expect(load.longestWait).toBeLessThan(TIMEOUT + TOLERANCE);
  } finally {
    await load.stop();
    await counters.close();
  }
}

it(
  'under random faults no hit is applied twice, no count is wrong, no call exceeds the timeout, and memory stays flat',
  async () => {
    const before = heapAfterCollection();
    // In parallel: each deployment spends most of its time waiting.
    await Promise.all([single(), sentinel(), cluster()].map(async (starting) => play(await starting)));
    // Most of the growth is what the test itself records of each hit.
    expect(heapAfterCollection() - before).toBeLessThan(32 * 1024 * 1024);
  },
  DURATION + 120_000,
);
