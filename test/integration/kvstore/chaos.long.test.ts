import { firstValueFrom } from 'rxjs';
import { kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/connections/options';
import { heapAfterCollection } from '../../support/processes/collect-garbage';
import { FaultProxy } from '../../support/servers/fault-proxy';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { until } from '../../support/waiting/until';
import { Load, type Mistakes, storedCounts } from './load';
import { instance, options } from './options';

const CALLERS = 4;

/** A deployment whose servers are all reached through proxies, so that every fault can hit every connection. */
interface Deployment extends AsyncDisposable {
  readonly main: InstanceOptions;
  readonly servers: readonly RedisProcess[];
  readonly proxies: readonly FaultProxy[];
  stored(keys: readonly string[]): Promise<readonly number[]>;
}

interface ChaosResult extends Mistakes {
  readonly succeeded: number;
  readonly failed: number;
  /** Milliseconds. */
  readonly longestWait: number;
}

const DEPLOYMENTS = { single, sentinel, cluster };

/**
 * Injects cuts, resets, stopped servers, lost replies, black holes and script flushes at random, under load.
 *
 * @param duration in milliseconds
 * @param timeout KVSTORE_TIMEOUT, in milliseconds
 */
async function chaos(
  kind: keyof typeof DEPLOYMENTS,
  duration: number,
  timeout: number,
  random: () => number = Math.random,
): Promise<ChaosResult> {
  await using deployment = await DEPLOYMENTS[kind]();
  const counters = kvstoreCounters(options({ ...deployment.main, timeout, poolSize: CALLERS }));
  const load = new Load(counters);
  try {
    await firstValueFrom(counters.ready$);
    load.start(CALLERS);
    const end = performance.now() + duration;
    while (performance.now() < end) await injectFault(deployment, timeout, random);
    // No fault is active now, so the store has to recover.
    await until('all calls succeed again', () => load.streak > 500);
    await load.stop();
    const stored = await deployment.stored([...load.keys.keys()]);
    const failed = load.count('store_failed') + load.count('store_timeout') + load.count('store_pool_empty');
    return {
      ...load.mistakes(stored),
      succeeded: load.count('OK'),
      failed,
      longestWait: load.longestWait,
    };
  } finally {
    await load.stop();
    await counters.close();
  }
}

/** Injects one fault and ends it, before sentinels or the cluster elect another master: a failover loses writes by design. */
async function injectFault({ servers, proxies }: Deployment, timeout: number, random: () => number): Promise<void> {
  const proxy = proxies[Math.floor(random() * proxies.length)] as FaultProxy;
  const server = servers[Math.floor(random() * servers.length)] as RedisProcess;
  function wait(milliseconds: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, milliseconds));
  }
  const faults: (() => unknown)[] = [
    () => proxy.cut(),
    () => proxy.reset(),
    () => proxy.cutAfterReplyBytes(Math.floor(random() * 200)),
    () => server.control.call('SCRIPT', 'FLUSH').catch(() => undefined),
    async () => {
      proxy.fault = 'lost replies';
      await wait(timeout * (0.5 + random()));
      proxy.fault = 'none';
    },
    async () => {
      proxy.fault = 'black hole';
      await wait(timeout * (0.5 + random()));
      proxy.fault = 'none';
    },
    async () => {
      proxy.fault = 'refused';
      proxy.reset();
      await wait(timeout * random());
      proxy.fault = 'none';
    },
    async () => {
      server.signal('SIGSTOP');
      await wait(timeout * (0.5 + random()));
      server.signal('SIGCONT');
    },
  ];
  await faults[Math.floor(random() * faults.length)]?.();
  await wait(random() * 150);
}

async function single(): Promise<Deployment> {
  const server = await RedisProcess.start();
  const proxy = await FaultProxy.start(() => server);
  return {
    main: instance(proxy.address),
    servers: [server],
    proxies: [proxy],
    stored: (keys) => storedCounts(server.control, keys),
    [Symbol.asyncDispose]: async () => {
      await proxy[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

async function sentinel(): Promise<Deployment> {
  let master: RedisProcess | undefined;
  const proxy = await FaultProxy.start(() => ({ port: master?.port ?? 0 }));
  const sentinels = await RedisSentinels.start({
    masterPort: (server) => {
      master = server;
      return proxy.port;
    },
  });
  return {
    main: instance(sentinels.url, { type: 'sentinel' }),
    servers: [sentinels.master],
    proxies: [proxy],
    stored: (keys) => storedCounts(sentinels.master.control, keys),
    [Symbol.asyncDispose]: async () => {
      await proxy[Symbol.asyncDispose]();
      await sentinels[Symbol.asyncDispose]();
    },
  };
}

async function cluster(): Promise<Deployment> {
  const masters: RedisProcess[] = [];
  const proxies = await Promise.all(
    [0, 1, 2].map((index) => FaultProxy.start(() => ({ port: masters[index]?.port ?? 0 }))),
  );
  const running = await RedisCluster.start({
    directivesOf: (index) => ['--cluster-announce-port', String(proxies[index]?.port)],
  });
  masters.push(...running.masters);
  return {
    main: instance(proxies.map(({ address }) => address).join(','), { type: 'cluster' }),
    servers: running.masters,
    proxies,
    stored: (keys) => running.storedCounts(keys),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(proxies.map((proxy) => proxy[Symbol.asyncDispose]()));
      await running[Symbol.asyncDispose]();
    },
  };
}

/** In milliseconds, on each kind of deployment. */
const DURATION = 1000 * Number(process.env['CHAOS_SECONDS'] ?? 10);
const TIMEOUT = 250;
/** What the event loop of a busy machine may add to a timeout, in milliseconds. */
const TOLERANCE = 5_000;

// In parallel: each deployment spends most of its time waiting.
it(
  'under random faults no hit is applied twice, no count is wrong, no call exceeds the timeout, and memory stays flat',
  async () => {
    const before = heapAfterCollection();
    const results = await Promise.all([
      chaos('single', DURATION, TIMEOUT),
      chaos('sentinel', DURATION, TIMEOUT),
      chaos('cluster', DURATION, TIMEOUT),
    ]);
    for (const { appliedTwice, lost, wrongCounts, unexpected, succeeded, failed, longestWait } of results) {
      expect({ appliedTwice, lost, wrongCounts, unexpected }).toEqual({
        appliedTwice: [],
        lost: 0,
        wrongCounts: 0,
        unexpected: [],
      });
      expect(succeeded).toBeGreaterThan(100);
      expect(failed).toBeGreaterThan(50);
      expect(longestWait).toBeLessThan(TIMEOUT + TOLERANCE);
    }
    // Most of the growth is what the test itself records of each hit.
    expect(heapAfterCollection() - before).toBeLessThan(32 * 1024 * 1024);
  },
  DURATION + 120_000,
);
