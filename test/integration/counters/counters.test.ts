import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import { operation } from '../../support/data/operations';
import { LaneClient } from '../../support/clients/lane-client';
import { MemcachedProcess } from '../../support/processes/memcached-process';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { serverStates } from '../../support/data/server-states';
import { TableServer } from '../../support/stores/table-server';
import { TableStore } from '../../support/stores/table-store';
import { until } from '../../support/waiting/until';
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

storeTests('in a store that is no part of weir', async (use) => openTable(await use(TableServer.start())), {
  hasAlgorithms: false,
});

/** A store of a test, once it is connected. */
async function openTable({ port }: TableServer): Promise<TableStore> {
  const store = new TableStore(port, serverStates());
  await until('it is connected', () => store.server.report.condition === 'answering');
  return store;
}

it('a store that is no part of weir is held back while it hangs, and answers again without a call', async () => {
  await using table = await TableServer.start();
  const store = await openTable(table);
  using client = new LaneClient(store);
  expect(await client.call([operation('k', 1)])).toEqual([1]);
  table.hang();
  const inFlight = client.call([operation('k', 1)]);
  await until('it is silent', () => store.server.report.condition === 'silent');
  await expect(client.call([operation('k', 1)])).rejects.toThrow('the counter store does not answer');
  table.goOn();
  await until('it answers', () => store.server.report.condition === 'answering');
  expect([await inFlight, await client.call([operation('k', 1)])]).toEqual([[2], [3]]);
  await store.close();
});
