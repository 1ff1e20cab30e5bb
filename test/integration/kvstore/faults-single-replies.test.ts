import { once } from 'node:events';
import { mkdir, rmdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { RedisProcess } from '../../support/processes/redis/redis-process';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { type FaultRow, faultTests } from './fault-table';
import { type SingleFaultCourse, expectLinePerOutage, playSingleFault } from './play-single-fault';

/** The server answers at once: on a busy machine, too, no call ends before its reply has been read. */
function play(row: FaultRow, course: SingleFaultCourse): Promise<void> {
  return playSingleFault(row, { timeout: 5_000, ...course });
}

/** Makes the server save its data, and waits for the outcome. */
async function save({ control }: RedisProcess, outcome: 'ok' | 'err'): Promise<void> {
  await control.call('BGSAVE');
  await until('the server has tried to save', async () =>
    (await control.info('persistence')).includes(`rdb_last_bgsave_status:${outcome}`),
  );
}

describe('a single server under load, with error replies', () => {
  faultTests('Single server: error replies', {
    'the server still loads its data': (row) =>
      play(row, {
        directives: ['--key-load-delay', '10000', '--loading-process-events-interval-bytes', '1024'],
        begin: async ({ server }) => {
          await server.control.call('DEBUG', 'POPULATE', '300', 'filling', '100').catch(() => undefined);
          await Promise.all(Array.from({ length: 300 }, (_, n) => server.control.set(`filling${n}`, 'x'.repeat(100))));
          await server.control.call('SAVE');
          await server.crash();
          await server.run({ isReady: /Loading RDB|Ready to accept/ });
        },
        losesData: true,
        then: ({ log }) => expect(log.text).toContain('LOADING'),
      }),

    'the server is busy with another script': (row) =>
      play(row, {
        directives: ['--busy-reply-threshold', '50'],
        begin: async ({ server }) => {
          // The test's client has to be connected before: a busy server rejects the handshake.
          await server.control.ping();
          const socket = connect(server.port, '127.0.0.1').on('error', () => undefined);
          await once(socket, 'connect');
          socket.write('EVAL "while true do end" 0\r\n');
        },
        end: async ({ server }) => {
          await until('the script is ended', () =>
            server.control.call('SCRIPT', 'KILL').then(
              () => true,
              () => false,
            ),
          );
        },
      }),

    'the server is out of memory': (row) =>
      play(row, {
        begin: ({ server }) => server.control.config('SET', 'maxmemory', '1'),
        end: ({ server }) => server.control.config('SET', 'maxmemory', '0'),
        then: async ({ log }) => {
          expect(log.text).toContain('OOM: the counter store is out of memory');
        },
      }),

    'the server accepts no more clients': (row) =>
      play(row, {
        begin: async ({ server, load, log }) => {
          // Open connections stay open, and the test's own client is one of them.
          await server.control.config('SET', 'maxclients', '1');
          const before = load.count('OK');
          await until('calls succeed', () => load.count('OK') > before + 50);
          expect(load.seen).toEqual(['OK']);
          await server.control.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
          await until('the log contains the reason', () => log.text.includes('max number of clients'));
        },
        end: ({ server }) => server.control.config('SET', 'maxclients', '10000'),
        then: expectLinePerOutage,
      }),

    'the server cannot save': (row) =>
      play(row, {
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
        then: ({ log }) => {
          expect(log.text).toContain('MISCONF: the counter store rejects writes because it cannot save them');
        },
      }),

    'the server becomes a replica': (row) =>
      play(row, {
        begin: ({ server }) => server.control.call('REPLICAOF', '127.0.0.1', '1'),
        end: ({ server }) => server.control.call('REPLICAOF', 'NO', 'ONE'),
        then: ({ log, proxy }) => {
          expect(log.text).toContain('READONLY: the counter store is a read-only replica');
          // Connections are closed only with KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR.
          expect(proxy.accepted).toBe(4);
        },
      }),

    'the password is changed': (row) =>
      play(row, {
        begin: async ({ server, log }) => {
          await server.control.config('SET', 'requirepass', 'another');
          await server.control.call('AUTH', 'another');
          await server.control.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
          await until('the log contains the reason', () => log.text.includes('NOAUTH'));
        },
        end: ({ server }) => server.control.config('SET', 'requirepass', ''),
        then: expectLinePerOutage,
      }),

    'scripts are flushed': (row) =>
      play(row, {
        begin: async ({ server, load }) => {
          for (let time = 0; time < 20; time += 1) {
            await server.control.call('SCRIPT', 'FLUSH');
            const before = load.count('OK');
            await until('calls succeed', () => load.count('OK') > before);
          }
        },
        then: ({ log }) => expect(log.lines).toEqual([]),
      }),

    'scripts are forbidden': (row) =>
      play(row, {
        begin: ({ server }) => server.control.call('ACL', 'SETUSER', 'default', '-eval', '-evalsha'),
        end: async ({ server, load }) => {
          const before = load.count('OK');
          await until('calls succeed', () => load.count('OK') > before + 50);
          expect(await server.control.ttl(load.hotKey)).toBeGreaterThan(0);
          await server.control.call('ACL', 'SETUSER', 'default', '+@all');
        },
        then: ({ log }) =>
          expect(log.messages).toEqual([
            'the counter store rejects scripts; counting with plain commands, not atomically',
          ]),
      }),

    'a key holds a value of another type': (row) =>
      play(row, {
        begin: async ({ server, load, counters }) => {
          await server.control.multi().del(load.hotKey).rpush(load.hotKey, 'a list').set('text', 'a text').exec();
          const steps = [operation(load.hotKey, 1), operation('text', -1), operation('other', 1)];
          const [list, text, other] = await apply(counters, ...steps);
          expect(list).toMatchObject({ message: 'the key of a counter holds a value of another type in the store' });
          expect(text).toMatchObject({ message: 'the key of a counter holds a value that is not an integer' });
          expect(other).toBe(1);
        },
        end: async ({ server, load }) => {
          await server.control.del(load.hotKey);
          load.hotCounts.length = 0;
        },
        then: ({ load }) => expect([...load.keys.values()]).not.toContain(false),
      }),
  });
});
