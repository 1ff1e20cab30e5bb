import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import type { InstanceOptions } from '../../../src/sinks/counters/kvstore/deployment';
import { RemoteCounters, serveCounters } from '../../../src/workers/counters';
import { MemcachedProcess } from '../../support/processes/memcached-process';
import { serverStates } from '../../support/data/server-states';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { channelPair } from '../../support/workers/channel-pair';
import { severalLimits } from './rule-scenarios';
import { callScenarios, clock, countingScenarios } from './scenarios';
import { memcachedStore, redisStore, storeTests } from './stores';

// Memory, a single server and memcached: counters.test.ts.

describe('counters in the memory of another process', () => {
  const { primary, worker } = channelPair();
  const memory = new MemoryCounters({ maxKeys: 100_000, now: Date.now });
  serveCounters(primary, memory);
  const counters = new RemoteCounters(worker, { windowSpan: 0, servers: serverStates() });
  afterAll(() => Promise.all([counters.close(), memory.close()]));
  countingScenarios(() => counters, { hasAlgorithms: false });

  const late = channelPair();
  const memoryAtClock = new MemoryCounters({ maxKeys: 100_000, now: () => clock.now });
  serveCounters(late.primary, memoryAtClock);
  const countersAtClock = new RemoteCounters(late.worker, { windowSpan: 0, servers: serverStates() });
  afterAll(() => Promise.all([countersAtClock.close(), memoryAtClock.close()]));
  callScenarios(() => countersAtClock, true);
  severalLimits(() => countersAtClock);
});

storeTests('on a single server over a Unix socket', async (use) => {
  return redisStore((await use(RedisProcess.start())).socket, { socketType: 'unix' });
});

storeTests('on a database of a single server', async (use) => {
  return redisStore(`redis://${(await use(RedisProcess.start())).address}/3`);
});

storeTests(
  'on a server that rejects scripts',
  async (use) => {
    const directives = ['--user', 'default', 'on', 'nopass', '~*', '+@all', '-@scripting'];
    return redisStore((await use(RedisProcess.start({ directives }))).address);
  },
  { hasAlgorithms: false },
);

storeTests('on a master that sentinels monitor', async (use) => {
  return redisStore((await use(RedisSentinels.start())).url, { type: 'sentinel' });
});

storeTests('on two instances', async (use) => {
  const [main, perSecond] = await Promise.all([use(RedisProcess.start()), use(RedisProcess.start())]);
  return redisStore(main.address, {}, perSecond.address);
});

const WITHOUT_SCRIPTS = ['--rename-command', 'EVAL', '', '--rename-command', 'EVALSHA', ''];

describe.each<readonly [what: string, directives: readonly string[], more: Partial<InstanceOptions>]>([
  ['in parallel', [], {}],
  ['one node after the other', [], { clusterPipelineParallelism: 1 }],
  ['without scripts', WITHOUT_SCRIPTS, {}],
])('a cluster, %s', (_, directives, more) => {
  storeTests(
    'on its nodes',
    async (use) => {
      return redisStore((await use(RedisCluster.start({ directives }))).url, { type: 'cluster', ...more });
    },
    { hasAlgorithms: directives.length === 0 },
  );
});

storeTests(
  'on several memcached servers',
  async (use) => memcachedStore(await use(MemcachedProcess.start()), await use(MemcachedProcess.start())),
  { hasAnyKey: false, hasAlgorithms: false },
);

storeTests(
  'in memcached over a Unix socket',
  async (use) => memcachedStore(await use(MemcachedProcess.start({ onSocket: true }))),
  { hasAnyKey: false, hasAlgorithms: false },
);
