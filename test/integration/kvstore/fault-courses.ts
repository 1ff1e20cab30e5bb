import { once } from 'node:events';
import { mkdir, rmdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { keySlot } from '../../../src/sinks/counters/kvstore/stores/cluster/key-slot';
import type { RedisCluster } from '../../support/processes/redis/redis-cluster';
import type { RedisProcess } from '../../support/processes/redis/redis-process';
import type { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { type FailoverCourse, type Scene, type SingleFaultCourse, expectLinePerOutage } from './fault-play';
import type { Load } from './load';

type Courses<C> = Readonly<Record<string, C>>;

async function moreSucceed(load: Load, calls: number): Promise<void> {
  const before = load.count('OK');
  await until('calls succeed', () => load.count('OK') > before + calls);
}

/** Closes the connections of all clients but the test's own. */
function closeConnections({ control }: RedisProcess): Promise<unknown> {
  return control.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
}

async function timeOutThenFail({ load }: Scene): Promise<void> {
  await until('calls time out', () => load.count('store_timeout') > 0);
  await until('calls fail immediately', () => load.count('store_failed') > 0);
}

function noFault({ proxy }: Scene): void {
  proxy.fault = 'none';
}

export const CONNECTION_FAULTS: Courses<SingleFaultCourse> = {
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
  'a connection is cut in the middle of a reply': {
    begin: ({ proxy }) => proxy.cutAfterReplyBytes(7),
    poolSize: 1,
  },
  'replies are lost': {
    begin: async (scene) => {
      scene.proxy.fault = 'lost replies';
      await timeOutThenFail(scene);
    },
    end: noFault,
    then: expectLinePerOutage,
  },
  'no bytes get through': {
    begin: async (scene) => {
      scene.proxy.fault = 'black hole';
      await timeOutThenFail(scene);
    },
    end: noFault,
    then: expectLinePerOutage,
  },
  'the server sends replies without requests': {
    begin: ({ proxy }) => proxy.sendToClients('+HELLO\r\n:1\r\nHTTP/1.1 400 Bad Request\r\n'),
  },
};

/** Makes the server save its data, and waits for the outcome. */
async function save({ control }: RedisProcess, outcome: 'ok' | 'err'): Promise<void> {
  await control.call('BGSAVE');
  await until('the server has tried to save', async () =>
    (await control.info('persistence')).includes(`rdb_last_bgsave_status:${outcome}`),
  );
}

export const REPLY_FAULTS: Courses<SingleFaultCourse> = {
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
    then: ({ log }) =>
      expect(log.text).toContain('MISCONF: the counter store rejects writes because it cannot save them'),
  },
  'the server becomes a replica': {
    begin: ({ server }) => server.control.call('REPLICAOF', '127.0.0.1', '1'),
    end: ({ server }) => server.control.call('REPLICAOF', 'NO', 'ONE'),
    then: ({ log, proxy }) => {
      expect(log.text).toContain('READONLY: the counter store is a read-only replica');
      // Connections are closed only with KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR.
      expect(proxy.accepted).toBe(4);
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

function anotherMaster(sentinels: RedisSentinels, former: RedisProcess): Promise<unknown> {
  return until('there is another master', async () => (await sentinels.currentMaster()) !== former);
}

export const SENTINEL_FAULTS: Courses<FailoverCourse<RedisSentinels>> = {
  'the master crashes': {
    begin: async (sentinels) => {
      const master = await sentinels.currentMaster();
      await sentinels.failOverWhenSilent();
      await master.crash();
      return master;
    },
    end: anotherMaster,
    repair: async (sentinels, former) => {
      await former.run();
      await sentinels.rejoin();
    },
    losesData: true,
  },
  'the master hangs': {
    begin: async (sentinels) => {
      const master = await sentinels.currentMaster();
      await sentinels.failOverWhenSilent();
      master.signal('SIGSTOP');
      return master;
    },
    end: async (sentinels, former) => {
      await anotherMaster(sentinels, former);
      former.signal('SIGCONT');
    },
    repair: (sentinels) => sentinels.rejoin(),
    losesData: true,
  },
  'the sentinels promote another master': {
    begin: async (sentinels) => {
      const master = await sentinels.currentMaster();
      await sentinels.failOver();
      return master;
    },
    losesData: true,
  },
  'the master is made a replica without the sentinels': {
    begin: async (sentinels) => {
      const master = await sentinels.currentMaster();
      await master.control.call('REPLICAOF', '127.0.0.1', '1');
      return master;
    },
    end: (_, former) => former.control.call('REPLICAOF', 'NO', 'ONE'),
    repair: (sentinels) => sentinels.rejoin(),
    losesData: true,
  },
  'a sentinel hangs while connections are lost': {
    begin: async (sentinels, load) => {
      const [first] = sentinels.sentinels as [RedisProcess];
      const master = await sentinels.currentMaster();
      // New connections query this sentinel first.
      first.signal('SIGSTOP');
      await closeConnections(master);
      await until('calls fail', () => load.seen.length > 1);
      await moreSucceed(load, 100);
      return first;
    },
    end: (_, first) => first.signal('SIGCONT'),
  },
  'no sentinel answers': {
    begin: async (sentinels, load) => {
      for (const sentinel of sentinels.sentinels) sentinel.signal('SIGSTOP');
      await moreSucceed(load, 100);
      return sentinels.sentinels[0]!;
    },
    end: (sentinels) => {
      for (const sentinel of sentinels.sentinels) sentinel.signal('SIGCONT');
    },
  },
};

/** A current master that has a replica to take over from it. */
async function masterWithReplica(cluster: RedisCluster): Promise<RedisProcess> {
  for (const server of cluster.servers) {
    const [role, , replicas] = (await server.control.role()) as [string, number, unknown[]];
    if (role === 'master' && replicas.length > 0) return server;
  }
  throw new Error('no master has a replica');
}

function takenOver(cluster: RedisCluster, former: RedisProcess): Promise<unknown> {
  return until('the replica has taken over', () => cluster.isHealthyWithout(former));
}

async function forbidTakeover(cluster: RedisCluster, isForbidden: 'yes' | 'no'): Promise<void> {
  for (const { control } of cluster.servers) await control.config('SET', 'cluster-replica-no-failover', isForbidden);
}

export const CLUSTER_FAULTS: Courses<FailoverCourse<RedisCluster>> = {
  'a master crashes and its replica takes over': {
    begin: async (cluster) => {
      await cluster.failOverWhenSilent();
      const master = await masterWithReplica(cluster);
      await master.crash();
      return master;
    },
    end: takenOver,
    repair: (_, former) => former.run(),
    losesData: true,
  },
  'a master hangs and its replica takes over': {
    begin: async (cluster) => {
      await cluster.failOverWhenSilent();
      const master = await masterWithReplica(cluster);
      master.signal('SIGSTOP');
      return master;
    },
    end: takenOver,
    repair: (_, former) => former.signal('SIGCONT'),
    losesData: true,
  },
  'a master crashes and no replica takes over': {
    begin: async (cluster, load) => {
      await cluster.failOverWhenSilent();
      await forbidTakeover(cluster, 'yes');
      const master = await masterWithReplica(cluster);
      await master.crash();
      const others = cluster.servers.filter((each) => each !== master);
      await until('the cluster is down', async () => !(await cluster.isHealthy(others)));
      const before = load.count('store_failed');
      await until('calls fail', () => load.count('store_failed') > before + 50);
      return master;
    },
    end: (_, master) => master.run(),
    repair: (cluster) => forbidTakeover(cluster, 'no'),
    losesData: true,
  },
  'the connections to a node are closed': {
    begin: async (cluster) => {
      const master = await masterWithReplica(cluster);
      await closeConnections(master);
      return master;
    },
  },
  'slots move to another node': {
    begin: async (cluster, load) => {
      const slots = [...load.keys.keys()].map(keySlot).slice(0, 20);
      // While a slot is being moved, its keys are on either node.
      await cluster.move([keySlot(load.hotKey), ...slots], () => moreSucceed(load, 50));
      return cluster.masters[0]!;
    },
  },
  'scripts are flushed': {
    begin: async (cluster, load) => {
      for (let time = 0; time < 10; time += 1) {
        await Promise.all(cluster.servers.map(({ control }) => control.call('SCRIPT', 'FLUSH')));
        await moreSucceed(load, 0);
      }
      return cluster.masters[0]!;
    },
  },
};
