import { firstValueFrom } from 'rxjs';
import { kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/connections/options';
import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import { plaincacheCounters } from '../../../src/sinks/counters/plaincache/plaincache-counters';
import type { Counters } from '../../../src/streams/ports/counters';
import { RemoteCounters } from '../../../src/workers/counters/remote-counters';
import { serveCounters } from '../../../src/workers/counters/serve-counters';
import { MemcachedProcess } from '../../support/processes/memcached-process';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { channelPair } from '../../support/workers/channel-pair';
import { instance, options } from '../kvstore/options';
import { plaincacheTestOptions } from '../plaincache/options';
import { type AdministeredCounters, administrationScenarios } from './administration';
import { explanationScenarios } from './explanations';
import { countingScenarios } from './scenarios';

// Started once for all stores, in parallel.
let single: RedisProcess;
let perSecond: RedisProcess;
let withoutScripts: RedisProcess;
let sentinels: RedisSentinels;
let cluster: RedisCluster;
let clusterWithoutScripts: RedisCluster;
/** Two on ports, one on a Unix socket. */
let memcached: readonly MemcachedProcess[];
const started: AsyncDisposable[] = [];
const opened: Counters[] = [];

beforeAll(async () => {
  const begun = [
    RedisProcess.start(),
    RedisProcess.start(),
    RedisProcess.start({ directives: ['--user', 'default', 'on', 'nopass', '~*', '&*', '+@all', '-@scripting'] }),
    RedisSentinels.start(),
    RedisCluster.start(),
    RedisCluster.start({ directives: ['--rename-command', 'EVAL', '', '--rename-command', 'EVALSHA', ''] }),
    MemcachedProcess.start(),
    MemcachedProcess.start(),
    MemcachedProcess.start({ onSocket: true }),
  ] as const;
  for (const outcome of await Promise.allSettled(begun)) {
    if (outcome.status === 'fulfilled') started.push(outcome.value);
  }
  [single, perSecond, withoutScripts, sentinels, cluster, clusterWithoutScripts, ...memcached] =
    await Promise.all(begun);
});

afterAll(async () => {
  await Promise.all(opened.map((counters) => counters.close()));
  await Promise.all(started.map((server) => server[Symbol.asyncDispose]()));
});

/** A store that is opened before its first scenario and closed after the last test. */
function once<T extends Counters>(open: () => T | Promise<T>): () => T {
  let counters: T;
  beforeAll(async () => {
    counters = await open();
    opened.push(counters);
  });
  return () => counters;
}

/** Milliseconds in which a store answers even on a busy machine: these tests are not about timeouts. */
const PATIENT = { timeout: 60_000 };

async function kvstore(main: InstanceOptions, second?: InstanceOptions): Promise<AdministeredCounters> {
  // Without jitter, so that a scenario can wait for the expiry.
  const more = { perSecond: second && { ...second, ...PATIENT }, expirationJitterMaxSeconds: 0 };
  const counters = kvstoreCounters(options({ ...main, ...PATIENT }, more));
  await firstValueFrom(counters.ready$);
  return counters;
}

/** Without jitter, as above. */
function plaincache(...servers: readonly MemcachedProcess[]): AdministeredCounters {
  return plaincacheCounters(plaincacheTestOptions(servers, { expirationJitterMaxSeconds: 0 }));
}

describe('counters in memory', () => {
  const store = once(() => new MemoryCounters({ maxKeys: 100_000, now: Date.now }));
  countingScenarios(store);
  explanationScenarios(store);
  administrationScenarios(store, { livesForWindow: false });
});

describe('counters in the memory of another process', () => {
  countingScenarios(
    once(() => {
      const { primary, worker } = channelPair();
      serveCounters(primary, new MemoryCounters({ maxKeys: 100_000, now: Date.now }));
      return new RemoteCounters({ channel: worker, windowSpan: 0 });
    }),
  );
});

describe('counters on a single server', () => {
  const store = once(() => kvstore(instance(single.address)));
  countingScenarios(store);
  explanationScenarios(store);
  administrationScenarios(store);
});

describe('counters on a single server over a Unix socket', () => {
  const store = once(() => kvstore(instance(single.socket, { socketType: 'unix' })));
  countingScenarios(store);
  explanationScenarios(store);
  administrationScenarios(store);
});

describe('counters on a database of a single server', () => {
  const store = once(() => kvstore(instance(`redis://${single.address}/3`)));
  countingScenarios(store);
  explanationScenarios(store);
  administrationScenarios(store);
});

describe('counters on a server that rejects scripts', () => {
  const store = once(() => kvstore(instance(withoutScripts.address)));
  countingScenarios(store);
  explanationScenarios(store);
  administrationScenarios(store);
});

describe('counters on a master that sentinels monitor', () => {
  const store = once(() => kvstore(instance(sentinels.url, { type: 'sentinel' })));
  countingScenarios(store);
  explanationScenarios(store);
  administrationScenarios(store);
});

describe('counters on a cluster', () => {
  const store = once(() => kvstore(instance(cluster.url, { type: 'cluster' })));
  countingScenarios(store);
  explanationScenarios(store);
  administrationScenarios(store);
});

describe('counters on a cluster, one node after the other', () => {
  const store = once(() => kvstore(instance(cluster.url, { type: 'cluster', clusterPipelineParallelism: 1 })));
  countingScenarios(store);
  explanationScenarios(store);
  administrationScenarios(store);
});

describe('counters on a cluster that rejects scripts', () => {
  const store = once(() => kvstore(instance(clusterWithoutScripts.url, { type: 'cluster' })));
  countingScenarios(store);
  explanationScenarios(store);
  administrationScenarios(store);
});

describe('counters on two instances', () => {
  const store = once(() => kvstore(instance(single.address), instance(perSecond.address)));
  countingScenarios(store);
  explanationScenarios(store);
  administrationScenarios(store);
});

describe('counters in memcached', () => {
  const store = once(() => plaincache(memcached[0]!));
  countingScenarios(store, { hasAnyKey: false });
  explanationScenarios(store);
  administrationScenarios(store);
});

describe('counters on several memcached servers', () => {
  const store = once(() => plaincache(...memcached.slice(0, 2)));
  countingScenarios(store, { hasAnyKey: false });
  explanationScenarios(store);
  administrationScenarios(store);
});

describe('counters in memcached over a Unix socket', () => {
  const store = once(() => plaincache(memcached[2]!));
  countingScenarios(store, { hasAnyKey: false });
  explanationScenarios(store);
  administrationScenarios(store);
});
