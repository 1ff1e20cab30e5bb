import { keySlot } from '../../../src/sinks/counters/kvstore/stores/cluster/key-slot';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import type { RedisProcess } from '../../support/processes/redis/redis-process';
import { until } from '../../support/waiting/until';
import { type FaultRow, faultTests } from './fault-table';
import { type FaultCourse, playFailover } from './play-failover';

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await RedisCluster.start({ replicas: 1 });
});
afterAll(() => cluster[Symbol.asyncDispose]());

function play(row: FaultRow, course: FaultCourse): Promise<void> {
  return playFailover(
    {
      type: 'cluster',
      url: cluster.url,
      timeout: 500,
      stored: (keys) => cluster.storedCounts(keys),
      maxLogLines: 20,
    },
    row,
    {
      ...course,
      repair: async () => {
        await course.repair?.();
        await until('the cluster has recovered', () => cluster.isHealthy());
        await cluster.bePatient();
      },
    },
  );
}

/** A current master that has a replica to take over from it. */
async function masterWithReplica(): Promise<RedisProcess> {
  for (const server of cluster.servers) {
    const [role, , replicas] = (await server.control.role()) as [string, number, unknown[]];
    if (role === 'master' && replicas.length > 0) return server;
  }
  throw new Error('no master has a replica');
}

describe('a cluster under load', () => {
  let former: RedisProcess;

  faultTests('Cluster', {
    'a master crashes and its replica takes over': (row) =>
      play(row, {
        begin: async () => {
          await cluster.failOverWhenSilent();
          former = await masterWithReplica();
          await former.crash();
        },
        end: () => until('the replica has taken over', () => cluster.isHealthyWithout(former)),
        repair: () => former.run(),
        losesData: true,
      }),

    'a master hangs and its replica takes over': (row) =>
      play(row, {
        begin: async () => {
          await cluster.failOverWhenSilent();
          former = await masterWithReplica();
          former.signal('SIGSTOP');
        },
        end: () => until('the replica has taken over', () => cluster.isHealthyWithout(former)),
        repair: () => former.signal('SIGCONT'),
        losesData: true,
      }),

    'a master crashes and no replica takes over': (row) =>
      play(row, {
        begin: async (load) => {
          await cluster.failOverWhenSilent();
          for (const server of cluster.servers)
            await server.control.config('SET', 'cluster-replica-no-failover', 'yes');
          former = await masterWithReplica();
          await former.crash();
          const others = cluster.servers.filter((each) => each !== former);
          await until('the cluster is down', async () => !(await cluster.isHealthy(others)));
          const before = load.count('store_failed');
          await until('calls fail', () => load.count('store_failed') > before + 50);
        },
        end: () => former.run(),
        repair: async () => {
          for (const server of cluster.servers) await server.control.config('SET', 'cluster-replica-no-failover', 'no');
        },
        losesData: true,
      }),

    'the connections to a node are closed': (row) =>
      play(row, {
        begin: async () => {
          const server = await masterWithReplica();
          await server.control.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        },
      }),

    'slots move to another node': (row) =>
      play(row, {
        begin: async (load) => {
          const slots = [...load.keys.keys()].map(keySlot).slice(0, 20);
          await cluster.move([keySlot(load.hotKey), ...slots], async () => {
            // While a slot is being moved, its keys are on either node.
            const before = load.count('OK');
            await until('calls succeed', () => load.count('OK') > before + 50);
          });
        },
      }),

    'scripts are flushed': (row) =>
      play(row, {
        begin: async (load) => {
          for (let time = 0; time < 10; time += 1) {
            await Promise.all(cluster.servers.map(({ control }) => control.call('SCRIPT', 'FLUSH')));
            const before = load.count('OK');
            await until('calls succeed', () => load.count('OK') > before);
          }
        },
      }),
  });
});
