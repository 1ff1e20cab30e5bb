import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { FaultProxy } from '../../support/servers/fault-proxy';
import {
  CLUSTER_FAULTS,
  CONNECTION_FAULTS,
  type Courses,
  REPLY_FAULTS,
  SENTINEL_FAULTS,
  type Single,
} from './fault-courses';
import { playFault } from './fault-play';
import { type FaultRow, type FaultTests, faultTests } from './fault-rows';
import { storedCounts } from './load';

/** Servers that are started by the first test that needs them, and stopped after the last one. */
function shared<T extends AsyncDisposable>(start: () => Promise<T>): () => Promise<T> {
  let started: Promise<T> | undefined;
  afterAll(async () => (await started)?.[Symbol.asyncDispose]());
  return () => (started ??= start());
}

/** A current master that has a replica to take over from it. */
async function masterWithReplica(cluster: RedisCluster): Promise<RedisProcess> {
  for (const server of cluster.servers) {
    const [role, , replicas] = (await server.control.role()) as [string, number, unknown[]];
    if (role === 'master' && replicas.length > 0) return server;
  }
  throw new Error('no master has a replica');
}

/** The tests of the rows about Redis that belong to a suite. */
export function redisFaultTests(suite: FaultTests<unknown>['suite']): void {
  function singleServer(heading: string, courses: Courses<Single>, timeout: number): void {
    async function play(course: Courses<Single>[string], row: FaultRow): Promise<void> {
      await using server = await RedisProcess.start({ directives: course.directives ?? [] });
      await using proxy = await FaultProxy.start(() => server);
      const main = { url: proxy.address, timeout };
      const parts = { server, proxy };
      await playFault(course, row, { main, parts, stored: (keys) => storedCounts(server.control, keys) });
    }
    faultTests(heading, { suite, courses, play });
  }

  describe('counters in Redis under load', () => {
    singleServer('Single server: connections', CONNECTION_FAULTS, 300);
    // The server answers at once: on a busy machine, too, no call ends before its reply has been read.
    singleServer('Single server: error replies', REPLY_FAULTS, 5_000);

    const sentinels = shared(() => RedisSentinels.start());
    faultTests('Sentinels', {
      suite,
      courses: SENTINEL_FAULTS,
      play: async (course, row) => {
        const servers = await sentinels();
        await playFault(course, row, {
          main: { type: 'sentinel', url: servers.url, timeout: 400 },
          parts: { servers, server: await servers.currentMaster() },
          stored: async (keys) => storedCounts((await servers.currentMaster()).control, keys),
        });
      },
    });

    const cluster = shared(() => RedisCluster.start({ replicas: 1 }));
    faultTests('Cluster', {
      suite,
      courses: CLUSTER_FAULTS,
      play: async (course, row) => {
        const servers = await cluster();
        await playFault(course, row, {
          main: { type: 'cluster', url: servers.url, timeout: 500 },
          parts: { servers, server: await masterWithReplica(servers) },
          stored: (keys) => servers.storedCounts(keys),
        });
      },
    });
  });
}
