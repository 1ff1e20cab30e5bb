import { once } from 'node:events';
import { mkdir, rmdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { algorithmOf } from '../../../src/counting/limit';
import { keySlot } from '../../../src/sinks/counters/kvstore/slots';
import { LaneClient } from '../../support/clients/lane-client';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { type Fault, FaultProxy } from '../../support/servers/fault-proxy';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { CONNECTIONS, type Course, type Scene, expectFewLines, expectLinePerOutage, playFault } from './fault-play';
import { type FaultTests, faultTests } from './fault-rows';
import { type Load, storedCounts } from './load';
import { connected, instance } from './options';

type Courses<D> = Readonly<Record<string, Course<D>>>;
/** The parts of a single server behind a proxy, and of servers that take over from one another. */
type Single = { readonly proxy: FaultProxy };
type Several<S> = { readonly servers: S };

async function moreSucceed(load: Load, calls: number): Promise<void> {
  const before = load.count('OK');
  await until('calls succeed', () => load.count('OK') > before + calls);
}

/** Closes the connections of all clients but the test's own. */
function closeConnections({ control }: RedisProcess): Promise<unknown> {
  return control.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
}

async function timeOutThenFail({ load }: Scene<Single>): Promise<void> {
  await until('calls time out', () => load.count('store_timeout') > 0);
  await until('calls fail immediately', () => load.count('store_failed') > 0);
}

function lossOf(fault: Fault): Course<Single> {
  return {
    begin: async (scene) => {
      scene.proxy.fault = fault;
      await timeOutThenFail(scene);
    },
    end: ({ proxy }) => (proxy.fault = 'none'),
    then: expectLinePerOutage,
  };
}

/** A reply to none of the commands in flight: as the first one to come, it takes the place of theirs. */
function announced(reply: string, reason: string): Course<Single> {
  return {
    poolSize: 1,
    begin: ({ proxy }) => proxy.sendToClients(`${reply}\r\n`),
    then: ({ log }) => expect(log.text).toContain(`is too large: ${reason}`),
  };
}

const CONNECTION_FAULTS: Courses<Single> = {
  'the server crashes': {
    begin: ({ server }) => server.crash(),
    end: ({ server }) => server.run(),
    losesData: true,
    then: expectLinePerOutage,
  },
  'the server hangs': {
    begin: async (scene) => {
      scene.server.signal('SIGSTOP');
      await timeOutThenFail(scene);
    },
    end: ({ server }) => server.signal('SIGCONT'),
    then: expectLinePerOutage,
  },
  'the connections are closed': { begin: ({ proxy }) => proxy.cut() },
  'the connections are reset': { begin: ({ proxy }) => proxy.reset() },
  'a connection is cut in the middle of a reply': { begin: ({ proxy }) => proxy.cutAfterReplyBytes(7), poolSize: 1 },
  'replies are lost': lossOf('lost replies'),
  'no bytes get through': lossOf('black hole'),
  'the server sends replies without requests': {
    begin: ({ proxy }) => proxy.sendToClients('+HELLO\r\n:1\r\nHTTP/1.1 400 Bad Request\r\n'),
  },
  'the server announces a list of 100,000,000 elements': announced('*100000000', '100000000 elements'),
  'the server announces a string of 512 MB': announced('$536870912', 'a string of 536870912 bytes'),
};

/** Makes the server save its data, and waits for the outcome. */
async function save({ control }: RedisProcess, outcome: 'ok' | 'err'): Promise<void> {
  await control.call('BGSAVE');
  await until('the server has tried to save', async () =>
    (await control.info('persistence')).includes(`rdb_last_bgsave_status:${outcome}`),
  );
}

const REPLY_FAULTS: Courses<Single> = {
  'the server still loads its data': {
    directives: ['--key-load-delay', '10000', '--loading-process-events-interval-bytes', '1024'],
    begin: async ({ server }) => {
      await Promise.all(Array.from({ length: 300 }, (_, n) => server.control.set(`filling${n}`, 'x'.repeat(100))));
      await server.control.call('SAVE');
      await server.crash();
      await server.run({ isReady: /Loading RDB|Ready to accept/ });
    },
    losesData: true,
    then: ({ log }) => expect(log.text).toContain('LOADING'),
  },
  'the server is busy with another script': {
    directives: ['--busy-reply-threshold', '50'],
    begin: async ({ server }) => {
      // The test's client has to be connected before: a busy server rejects the handshake.
      await server.control.ping();
      const socket = connect(server.port, '127.0.0.1').on('error', () => undefined);
      await once(socket, 'connect');
      socket.write('EVAL "while true do end" 0\r\n');
    },
    end: ({ server }) =>
      until('the script is ended', () => server.control.call('SCRIPT', 'KILL').then(Boolean, () => false)),
  },
  'the server is out of memory': {
    begin: ({ server }) => server.control.config('SET', 'maxmemory', '1'),
    end: ({ server }) => server.control.config('SET', 'maxmemory', '0'),
    then: ({ log }) => expect(log.text).toContain('OOM: the counter store is out of memory'),
  },
  'the server accepts no more clients': {
    begin: async ({ server, load, log }) => {
      // Open connections stay open, and the test's own client is one of them.
      await server.control.config('SET', 'maxclients', '1');
      await moreSucceed(load, 50);
      expect(load.seen).toEqual(['OK']);
      await closeConnections(server);
      await until('the log contains the reason', () => log.text.includes('max number of clients'));
    },
    end: ({ server }) => server.control.config('SET', 'maxclients', '10000'),
    then: expectLinePerOutage,
  },
  'the server cannot save': {
    begin: async ({ server }) => {
      // A folder with the name of the file: root cannot write there either.
      await mkdir(join(server.folder, 'dump.rdb'));
      await server.control.config('SET', 'save', '3600 1000000');
      await save(server, 'err');
    },
    end: async ({ server }) => {
      await rmdir(join(server.folder, 'dump.rdb'));
      await save(server, 'ok');
    },
    then: ({ log }) => expect(log.text).toContain('MISCONF: the counter store rejects writes because'),
  },
  'the server becomes a replica': {
    begin: ({ server }) => server.control.call('REPLICAOF', '127.0.0.1', '1'),
    end: ({ server }) => server.control.call('REPLICAOF', 'NO', 'ONE'),
    then: ({ log, proxy }) => {
      expect(log.text).toContain('READONLY: the counter store is a read-only replica');
      // Connections are closed only with KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR.
      expect(proxy.accepted).toBe(CONNECTIONS);
    },
  },
  'the password is changed': {
    begin: async ({ server, log }) => {
      await server.control.config('SET', 'requirepass', 'another');
      await server.control.call('AUTH', 'another');
      await closeConnections(server);
      await until('the log contains the reason', () => log.text.includes('NOAUTH'));
    },
    end: ({ server }) => server.control.config('SET', 'requirepass', ''),
    then: expectLinePerOutage,
  },
  'scripts are flushed': {
    begin: async ({ server, load }) => {
      for (let time = 0; time < 20; time += 1) {
        await server.control.call('SCRIPT', 'FLUSH');
        await moreSucceed(load, 0);
      }
    },
    then: ({ log }) => expect(log.lines).toEqual([]),
  },
  'scripts are forbidden': {
    begin: ({ server }) => server.control.call('ACL', 'SETUSER', 'default', '-eval', '-evalsha'),
    end: async ({ server, load }) => {
      await moreSucceed(load, 50);
      expect(await server.control.ttl(load.hotKey)).toBeGreaterThan(0);
      await server.control.call('ACL', 'SETUSER', 'default', '+@all');
    },
    then: ({ log }) =>
      expect(log.messages).toEqual(['the counter store rejects scripts; counting with plain commands, not atomically']),
  },
  'a key holds a value of another type': {
    begin: async ({ server, load, counters }) => {
      await server.control.multi().del(load.hotKey).rpush(load.hotKey, 'a list').set('text', 'a text').exec();
      const steps = [operation(load.hotKey, 1), operation('text', -1), operation('other', 1)];
      expect(await apply(counters, ...steps)).toMatchObject([
        { message: 'the key of a counter holds a value of another type in the store' },
        { message: 'the key of a counter holds a value that is not an integer' },
        1,
      ]);
    },
    end: async ({ server, load }) => {
      await server.control.del(load.hotKey);
      load.hotCounts.length = 0;
    },
    then: ({ load }) => expect([...load.keys.values()]).not.toContain(false),
  },
};

function anotherMaster({ servers, server }: Scene<Several<RedisSentinels>>): Promise<unknown> {
  return until('there is another master', async () => (await servers.currentMaster()) !== server);
}

/** A fault of sentinels or their master. After each, the log has few lines. */
function sentinelFault(course: Course<Several<RedisSentinels>>): Course<Several<RedisSentinels>> {
  return {
    ...course,
    repair: async (scene) => {
      await scene.servers.neverFailOver();
      await course.repair?.(scene);
    },
    then: (scene) => expectFewLines(scene, 16),
  };
}

/** A fault of the master, which replaces it or loses what it has counted. */
function masterFault(course: Course<Several<RedisSentinels>>): Course<Several<RedisSentinels>> {
  return sentinelFault({ losesData: true, repair: ({ servers }) => servers.rejoin(), ...course });
}

const SENTINEL_FAULTS: Courses<Several<RedisSentinels>> = {
  'the master crashes': masterFault({
    begin: async ({ servers, server }) => {
      await servers.failOverWhenSilent();
      await server.crash();
    },
    end: anotherMaster,
    repair: async ({ servers, server }) => {
      await server.run();
      await servers.rejoin();
    },
  }),
  'the master hangs': masterFault({
    begin: async ({ servers, server }) => {
      await servers.failOverWhenSilent();
      server.signal('SIGSTOP');
    },
    end: async (scene) => {
      await anotherMaster(scene);
      scene.server.signal('SIGCONT');
    },
  }),
  'the sentinels promote another master': masterFault({ begin: ({ servers }) => servers.failOver() }),
  'the master is made a replica without the sentinels': masterFault({
    begin: ({ server }) => server.control.call('REPLICAOF', '127.0.0.1', '1'),
    end: ({ server }) => server.control.call('REPLICAOF', 'NO', 'ONE'),
  }),
  'a sentinel hangs while connections are lost': sentinelFault({
    begin: async ({ servers, server, load }) => {
      // New connections query this sentinel first.
      servers.sentinels[0]!.signal('SIGSTOP');
      await closeConnections(server);
      await until('calls fail', () => load.seen.length > 1);
      await moreSucceed(load, 100);
    },
    end: ({ servers }) => servers.sentinels[0]!.signal('SIGCONT'),
  }),
  'no sentinel answers': sentinelFault({
    begin: async ({ servers, load }) => {
      for (const sentinel of servers.sentinels) sentinel.signal('SIGSTOP');
      await moreSucceed(load, 100);
    },
    end: ({ servers }) => servers.sentinels.forEach((sentinel) => sentinel.signal('SIGCONT')),
  }),
};

async function forbidTakeover({ servers }: RedisCluster, isForbidden: 'yes' | 'no'): Promise<void> {
  for (const { control } of servers) await control.config('SET', 'cluster-replica-no-failover', isForbidden);
}

function takenOver({ servers, server }: Scene<Several<RedisCluster>>): Promise<unknown> {
  return until('the replica has taken over', () => servers.isHealthyWithout(server));
}

/** A fault of a node or of all. After each, the cluster recovers and the log has few lines. */
function clusterFault(course: Course<Several<RedisCluster>>): Course<Several<RedisCluster>> {
  return {
    ...course,
    repair: async (scene) => {
      await course.repair?.(scene);
      await until('the cluster has recovered', () => scene.servers.isHealthy());
      await scene.servers.bePatient();
    },
    then: (scene) => expectFewLines(scene, 20),
  };
}

/** The server is a master that has a replica. */
const CLUSTER_FAULTS: Courses<Several<RedisCluster>> = {
  'a master crashes and its replica takes over': clusterFault({
    begin: async ({ servers, server }) => {
      await servers.failOverWhenSilent();
      await server.crash();
    },
    end: takenOver,
    repair: ({ server }) => server.run(),
    losesData: true,
  }),
  'a master hangs and its replica takes over': clusterFault({
    begin: async ({ servers, server }) => {
      await servers.failOverWhenSilent();
      server.signal('SIGSTOP');
    },
    end: takenOver,
    repair: ({ server }) => server.signal('SIGCONT'),
    losesData: true,
  }),
  'a master crashes and no replica takes over': clusterFault({
    begin: async ({ servers, server, load }) => {
      await servers.failOverWhenSilent();
      await forbidTakeover(servers, 'yes');
      await server.crash();
      const others = servers.servers.filter((each) => each !== server);
      await until('the cluster is down', async () => !(await servers.isHealthy(others)));
      const before = load.count('store_failed');
      await until('calls fail', () => load.count('store_failed') > before + 50);
    },
    end: ({ server }) => server.run(),
    repair: ({ servers }) => forbidTakeover(servers, 'no'),
    losesData: true,
  }),
  'the connections to a node are closed': clusterFault({ begin: ({ server }) => closeConnections(server) }),
  'slots move to another node': clusterFault({
    begin: ({ servers, load }) => {
      const slots = [...load.keys.keys()].map(keySlot).slice(0, 20);
      // While a slot is being moved, its keys are on either node.
      return servers.move([keySlot(load.hotKey), ...slots], () => moreSucceed(load, 50));
    },
  }),
  'a slot moves for 2 s while scripts need several of its keys': clusterFault({
    begin: async ({ servers }) => {
      const patient = await connected(instance(servers.url, { type: 'cluster' }));
      using client = new LaneClient(patient);
      const limit = { requestsPerUnit: 100, lengthSeconds: 86_400, burst: undefined };
      const algorithm = algorithmOf({ ...limit, name: 'sliding_window' });
      const calls: Promise<readonly number[]>[] = [];
      await servers.move([keySlot('{two_seconds}')], async () => {
        for (let made = 0; made < 20; made += 1) {
          calls.push(client.call([operation('{two_seconds}', 1, { limit: 100, lengthSeconds: 86_400, algorithm })]));
          await sleep(100);
        }
      });
      const counts = (await Promise.all(calls)).map(([count]) => count!);
      expect(counts.toSorted((one, other) => one - other)).toEqual(counts.map((_, index) => index + 1));
    },
  }),
  'scripts are flushed': clusterFault({
    begin: async ({ servers, load }) => {
      for (let time = 0; time < 10; time += 1) {
        await Promise.all(servers.servers.map(({ control }) => control.call('SCRIPT', 'FLUSH')));
        await moreSucceed(load, 0);
      }
    },
  }),
};

/** Servers that are started by the first test that needs them, and stopped after the last one. */
function shared<T extends AsyncDisposable>(start: () => Promise<T>): () => Promise<T> {
  let started: Promise<T> | undefined;
  afterAll(async () => (await started)?.[Symbol.asyncDispose]());
  return () => (started ??= start());
}

/**
 * A current master that has a replica to take over from it. Replicas connect some time after the cluster has started.
 */
function masterWithReplica(cluster: RedisCluster): Promise<RedisProcess> {
  return until('a master has a replica', async () => {
    for (const server of cluster.servers) {
      const [role, , replicas] = (await server.control.role()) as [string, number, unknown[]];
      if (role === 'master' && replicas.length > 0) return server;
    }
    return undefined;
  });
}

/** The tests of the rows about Redis that belong to a suite. */
export function redisFaultTests(suite: FaultTests<unknown>['suite']): void {
  function singleServer(heading: string, courses: Courses<Single>, timeout: number): void {
    faultTests(heading, {
      suite,
      courses,
      play: async (course, row) => {
        await using server = await RedisProcess.start({ directives: course.directives ?? [] });
        await using proxy = await FaultProxy.start(() => server);
        const main = { url: proxy.address, timeout };
        const parts = { server, proxy };
        await playFault(course, row, { main, parts, stored: (keys) => storedCounts(server.control, keys) });
      },
    });
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
