import type { RedisProcess } from '../../support/processes/redis/redis-process';
import { RedisSentinels } from '../../support/processes/redis/redis-sentinels';
import { until } from '../../support/waiting/until';
import { type FaultRow, faultTests } from './fault-table';
import { type FaultCourse, playFailover } from './play-failover';
import { storedCounts } from './stored-counts';

let sentinels: RedisSentinels;
beforeAll(async () => {
  sentinels = await RedisSentinels.start();
});
afterAll(() => sentinels[Symbol.asyncDispose]());

function play(row: FaultRow, course: FaultCourse): Promise<void> {
  return playFailover(
    {
      type: 'sentinel',
      url: sentinels.url,
      timeout: 400,
      stored: async (keys) => storedCounts((await sentinels.currentMaster()).control, keys),
      maxLogLines: 16,
    },
    row,
    {
      ...course,
      repair: async () => {
        await sentinels.neverFailOver();
        await course.repair?.();
      },
    },
  );
}

function anotherMasterThan(former: RedisProcess): Promise<unknown> {
  return until('there is another master', async () => (await sentinels.currentMaster()) !== former);
}

describe('a master that sentinels monitor, under load', () => {
  let former: RedisProcess;

  faultTests('Sentinels', {
    'the master crashes': (row) =>
      play(row, {
        begin: async () => {
          former = await sentinels.currentMaster();
          await sentinels.failOverWhenSilent();
          await former.crash();
        },
        end: () => anotherMasterThan(former),
        repair: async () => {
          await former.run();
          await sentinels.rejoin();
        },
        losesData: true,
      }),

    'the master hangs': (row) =>
      play(row, {
        begin: async () => {
          former = await sentinels.currentMaster();
          await sentinels.failOverWhenSilent();
          former.signal('SIGSTOP');
        },
        end: async () => {
          await anotherMasterThan(former);
          former.signal('SIGCONT');
        },
        repair: () => sentinels.rejoin(),
        losesData: true,
      }),

    'the sentinels promote another master': (row) => play(row, { begin: () => sentinels.failOver(), losesData: true }),

    'the master is made a replica without the sentinels': (row) =>
      play(row, {
        begin: async () => {
          former = await sentinels.currentMaster();
          await former.control.call('REPLICAOF', '127.0.0.1', '1');
        },
        end: () => former.control.call('REPLICAOF', 'NO', 'ONE'),
        repair: () => sentinels.rejoin(),
        losesData: true,
      }),

    'a sentinel hangs while connections are lost': (row) =>
      play(row, {
        begin: async (load) => {
          former = await sentinels.currentMaster();
          sentinels.sentinels[0]?.signal('SIGSTOP');
          // New connections query this sentinel first.
          await former.control.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
          await until('calls fail', () => load.seen.length > 1);
          const before = load.count('OK');
          await until('calls succeed again', () => load.count('OK') > before + 100);
        },
        end: () => sentinels.sentinels[0]?.signal('SIGCONT'),
      }),

    'no sentinel answers': (row) =>
      play(row, {
        begin: async (load) => {
          for (const sentinel of sentinels.sentinels) sentinel.signal('SIGSTOP');
          const before = load.count('OK');
          await until('calls succeed', () => load.count('OK') > before + 100);
        },
        end: () => {
          for (const sentinel of sentinels.sentinels) sentinel.signal('SIGCONT');
        },
      }),
  });
});
