import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import { MemcachedProcess } from '../../support/processes/memcached-process';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { memcachedStore, redisStore, storeTests } from './stores';

// All other deployments: counters.long.test.ts.

storeTests('in memory', () => new MemoryCounters({ maxKeys: 100_000, now: Date.now }), {
  livesForWindow: false,
  // test/counting, at another time.
  hasAlgorithms: false,
});

storeTests('on a single server', async (use) => redisStore((await use(RedisProcess.start())).address));

storeTests('in memcached', async (use) => memcachedStore(await use(MemcachedProcess.start())), {
  hasAnyKey: false,
  hasAlgorithms: false,
});
