import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { until } from '../../support/waiting/until';
import { CLUSTER_FAULTS, CONNECTION_FAULTS, REPLY_FAULTS, SENTINEL_FAULTS } from './fault-courses';
import { playFailover, playSingleFault } from './fault-play';
import { faultTests } from './fault-rows';
import { storedCounts } from './load';

const suite = 'long';

describe('a single server under load', () => {
  faultTests('Single server: connections', {
    suite,
    courses: CONNECTION_FAULTS,
    play: (course, row) => playSingleFault(course, row, 300),
  });
  faultTests('Single server: error replies', {
    suite,
    courses: REPLY_FAULTS,
    play: (course, row) => playSingleFault(course, row, 5_000),
  });
});

describe('a master that sentinels monitor, under load', () => {
  let servers: RedisSentinels;
  beforeAll(async () => {
    servers = await RedisSentinels.start();
  });
  afterAll(() => servers[Symbol.asyncDispose]());

  faultTests('Sentinels', {
    suite,
    courses: SENTINEL_FAULTS,
    play: (course, row) =>
      playFailover(course, row, {
        servers,
        main: { type: 'sentinel', url: servers.url, timeout: 400 },
        stored: async (keys) => storedCounts((await servers.currentMaster()).control, keys),
        repair: async (repair) => {
          await servers.neverFailOver();
          await repair();
        },
        maxLogLines: 16,
      }),
  });
});

describe('a cluster under load', () => {
  let servers: RedisCluster;
  beforeAll(async () => {
    servers = await RedisCluster.start({ replicas: 1 });
  });
  afterAll(() => servers[Symbol.asyncDispose]());

  faultTests('Cluster', {
    suite,
    courses: CLUSTER_FAULTS,
    play: (course, row) =>
      playFailover(course, row, {
        servers,
        main: { type: 'cluster', url: servers.url, timeout: 500 },
        stored: (keys) => servers.storedCounts(keys),
        repair: async (repair) => {
          await repair();
          await until('the cluster has recovered', () => servers.isHealthy());
          await servers.bePatient();
        },
        maxLogLines: 20,
      }),
  });
});
