import { type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { VirtualTimeScheduler, firstValueFrom } from 'rxjs';
import { LARGEST_COUNT as MOST } from '../../../src/counting/operation';
import type { PlaincacheOptions } from '../../../src/sinks/counters/plaincache/plaincache-counters';
import { Statistics } from '../../../src/statistics/statistics';
import { RecordedLog } from '../../support/data/recorded-log';
import { LaneClient } from '../../support/clients/lane-client';
import { until } from '../../support/waiting/until';
import { apply, operation } from '../counters/scenarios';
import { ScriptedServer, openPlaincache, replies } from './options';
import { counterOf } from '../../support/data/operations';

/** A scheduler whose time passes when the test says so. */
class ClockByHand extends VirtualTimeScheduler {
  pass(milliseconds: number): void {
    this.maxFrames = this.frame + milliseconds;
    this.schedule(() => undefined, milliseconds);
    this.flush();
  }
}

let log: RecordedLog;
let statistics: Statistics;
beforeEach(() => {
  log = new RecordedLog();
  statistics = new Statistics(100);
});

function countersOf(server: { readonly address: string }, more: Partial<PlaincacheOptions> = {}) {
  return openPlaincache([server], { log, statistics, expirationJitterMaxSeconds: 0, ...more });
}

/** Hits on keys, as `a+1 b-2`. */
function hits(text: string) {
  return text.split(' ').map((each) => operation(each.slice(0, 1), Number(each.slice(1))));
}

/** Whether calls are not sent to a server. */
function gauge({ address }: { readonly address: string }): number {
  return statistics.readGauge(`ratelimit.store.breaker_open.__server=${address}`);
}

function counted(name: string): number {
  return statistics.counter(`ratelimit.memcache.${name}`).value;
}

describe('the commands for a batch', () => {
  it.each([
    ['join additions to a key, with others between them', 'a+1 b+1 a+2 a+0 b+5', [11, 1, 13, 13, 6], 'a+3 b+6'],
    ['do not join additions across a subtraction', 'a+1 a-30 a+2 a+2', [11, 0, 2, 4], 'a+1 a-30 a+4'],
    ['are none for reads, nor for a subtraction from an absent key', 'a+0 b-1', [10, 0], undefined],
    ['add only the hits that fit below the largest count', 'c+1 c+5 c+5', [MOST - 2, MOST, MOST], 'c+3'],
    ['add to a value that is not a number as to 0', 'd+1', [1], 'd+1'],
  ])('%s', async (_, batch, counts, commands) => {
    const stored: Readonly<Record<string, string>> = { a: '10 ', c: String(MOST - 3), d: '1.5' };
    await using server = await ScriptedServer.start((line) => {
      const [command, ...keys] = line.split(' ');
      if (command !== 'get') return '1\r\n';
      const values = keys
        .filter((key) => key in stored)
        .map((key) => `VALUE ${key} 0 ${stored[key]!.length}\r\n${stored[key]}\r\n`);
      return `${values.join('')}END\r\n`;
    });
    const counters = countersOf(server);
    expect(await apply(counters, ...hits(batch))).toEqual(counts);
    await counters.close();
    const sent =
      commands
        ?.replaceAll(/(\w)\+/g, 'incr $1 ')
        .replaceAll(/(\w)-/g, 'decr $1 ')
        .split(/ (?=incr|decr)/) ?? [];
    expect(server.received.slice(1)).toEqual(sent);
  });

  it('create absent keys, and are repeated for keys that another process creates or removes meanwhile', async () => {
    const answer = { get: 'END\r\n', incr: 'NOT_FOUND\r\n', decr: 'NOT_FOUND\r\n', add: 'NOT_STORED\r\n' };
    await using server = await ScriptedServer.start(replies(answer));
    const counters = countersOf(server);
    expect(await apply(counters, ...hits('a+3 a-1 a+2'))).toEqual([3, 2, 4]);
    await counters.close();
    expect(server.received).toEqual([
      ...['get a', 'incr a 3', 'decr a 1', 'incr a 2'],
      ...['add a 0 61 1', '3', 'decr a 1', 'incr a 2'],
      ...['incr a 3', 'add a 0 61 1', '2'],
    ]);
    expect(['increment.__code=miss', 'add.__code=not_stored'].map(counted)).toEqual([4, 2]);
    // Those that were not counted in any of the three rounds.
    expect(counted('dropped_hits')).toBe(5);
  });

  it('use one connection, and another one without an error when the server has closed it while it was idle', async () => {
    await using server = await ScriptedServer.start(replies({ get: 'VALUE a 0 1\r\n4\r\nEND\r\n', incr: '5\r\n' }));
    const counters = countersOf(server);
    for (let call = 0; call < 5; call += 1) expect(await apply(counters, ...hits('a+1'))).toEqual([5]);
    await apply(counters, ...hits('a+0'));
    expect(server.accepted).toBe(1);
    for (const socket of server.sockets) socket.destroy();
    expect(await apply(counters, ...hits('a+1'))).toEqual([5]);
    expect([server.accepted, log.lines]).toEqual([2, []]);
    await counters.close();
    await until('it is closed', () => server.sockets.size === 0);
  });

  it('fail in time when they are sent again to a server that has closed the connection and no longer replies', async () => {
    await using server = await ScriptedServer.start(replies({ get: 'END\r\n' }));
    const counters = countersOf(server, { timeoutMs: 500 });
    expect(await apply(counters, ...hits('a+0'))).toEqual([0]);
    server.answer = () => undefined;
    for (const socket of server.sockets) socket.destroy();
    expect(await apply(counters, ...hits('a+1'))).toEqual([1]);
    expect(log.messages[0]).toMatch(/^a memcached server does not answer/);
  });

  it('are not sent again when the connection ends before the reply', async () => {
    await using server = await ScriptedServer.start((line, socket) => {
      if (line === 'get a') return 'VALUE a 0 1\r\n4\r\nEND\r\n';
      if (line.startsWith('incr')) socket.destroy();
      return 'VERSION 1.6.18\r\n';
    });
    const counters = countersOf(server);
    expect(await apply(counters, ...hits('a+1'))).toEqual([5]);
    await until('the server answers again', () => log.messages.at(-1) === 'a memcached server answers again');
    expect([server.received, counted('dropped_hits')]).toEqual([['get a', 'incr a 1'], 1]);
  });

  it('share the connection with the checks of the health of the store', async () => {
    let reply = '';
    await using server = await ScriptedServer.start((line) => {
      if (line === 'get a') return 'END\r\n';
      // The reply to the command is held back until a check has followed it.
      if (line === 'version') return `${reply}VERSION 1.6.18\r\n`;
      reply = '1\r\n';
      return undefined;
    });
    const counters = countersOf(server, { timeoutMs: 60_000, checkEvery: 100 });
    expect(await apply(counters, ...hits('a+1'))).toEqual([1]);
    await until('the hit is counted', () => counted('increment.__code=success') === 1);
    expect([server.accepted, log.lines]).toEqual([1, []]);
  });

  it('to a server that is no longer in the record are waited for by the end of the store', async () => {
    const held: Socket[] = [];
    const answer = replies({ get: 'VALUE a 0 1\r\n4\r\nEND\r\n', incr: '7\r\n' });
    await using server = await ScriptedServer.start((line, socket) => {
      if (line !== 'incr a 1') return answer(line, socket);
      held.push(socket);
      return undefined;
    });
    let port = Number(server.address.split(':')[1]);
    const counters = countersOf(server, {
      srv: 'r.test',
      srvRefresh: 1,
      lookUp: () => Promise.resolve([{ name: '127.0.0.1', port }]),
    });
    await firstValueFrom(counters.ready$);
    using client = new LaneClient(counters);
    expect(await client.call(hits('a+1'))).toEqual([5]);
    await until('the hit is sent', () => held.length > 0);
    // Its window waits until this hit is written.
    const next = client.call(hits('a+2'));
    const retired = firstValueFrom(counters.laneOf(operation('a', 1)).retired$);
    port = 1;
    await retired;
    let isClosed = false;
    const closed = counters.close().then(() => (isClosed = true));
    for (let turn = 0; turn < 3; turn += 1) await nextTurn();
    expect(isClosed).toBe(false);
    held[0]!.write('5\r\n');
    await closed;
    expect(await next).toEqual([6]);
    expect([server.received.at(-1), counted('dropped_hits')]).toEqual(['incr a 2', 0]);
  });
});

describe('replies', () => {
  it('are the same wherever they are split', async () => {
    const values =
      'VALUE a 0 2\r\n17\r\nVALUE b 0 3 99\r\n99 \r\nVALUE c 0 3\r\n1.5\r\nVALUE d 0 ' +
      '20\r\n18446744073709551615\r\nEND\r\n';
    const error = 'CLIENT_ERROR cannot increment or decrement non-numeric value\r\n';
    const answer = replies({ get: values, incr: '18\r\n', decr: '98 \r\n', add: 'STORED\r\n' });
    await using server = await ScriptedServer.start((line, socket) => {
      if (line === 'incr c 1') return error;
      return line === 'incr e 1' ? 'NOT_FOUND\r\n' : answer(line, socket);
    }, 1);
    const counters = countersOf(server);
    expect(await apply(counters, ...hits('a+1 b-1 c+1 d+1 e+1'))).toEqual([18, 98, 1, MOST, 1]);
    await counters.close();
    expect(server.received.slice(1)).toEqual(['incr a 1', 'decr b 1', 'incr c 1', 'incr e 1', 'add e 0 61 1', '1']);
    const reasons = ['a counter holds a value that is not a number', `the server replied "${error.trim()}"`];
    expect(log.lines).toMatchObject(
      reasons.map((reason) => ({ message: 'a memcached server rejected a counter', fields: { reason } })),
    );
    const names = ['success', 'miss', 'error'].map((code) => `increment.__code=${code}`);
    expect([...names, 'dropped_hits'].map(counted)).toEqual([1, 1, 1, 1]);
  });

  const LINE_TOO_LONG = /a line is too long/;
  it.each([
    ['get', 'a key that was not requested', 'VALUE x 0 1\r\n1\r\nEND\r\n', /, the server sent "VALUE x 0 1"/, 7],
    ['get', 'a key twice', 'VALUE a 0 1\r\n0\r\nVALUE a 0 1\r\n0\r\nEND\r\n', /, the server sent "VALUE a 0 1"/, 7],
    [
      'get',
      'a value that is longer than announced',
      'VALUE a 0 1\r\n17\r\nEND\r\n',
      /in reply to get, a value is not as long as announced/,
      7,
    ],
    ['get', 'a value that is too long for a count', 'VALUE a 0 1025\r\n', /a value has 1025 bytes/, 7],
    ['get', 'bytes after its end', 'END\r\nEND\r\n', /bytes follow the last reply/, 7],
    ['get', 'a line without end', 'x'.repeat(3000), LINE_TOO_LONG, 7],
    ['incr', 'the reply of another command', 'STORED\r\n', /in reply to incr, the server sent "STORED"/, 7],
    ['incr', 'an error of the connection', 'CLIENT_ERROR line too long\r\n', /in reply to incr/, 7],
    ['incr', 'a number of 400 digits', `${'9'.repeat(400)}\r\n`, /in reply to incr, the server sent "9{60}/, 7],
    ['incr', 'a number and more', '7e1\r\n', /in reply to incr, the server sent "7e1"/, 7],
    ['incr', 'one reply too many', '1\r\n2\r\n', /bytes follow the last reply/, 0],
    ['incr', 'a line without end', '1'.repeat(2000), LINE_TOO_LONG, 7],
  ])('to %s with %s close the connection and drop the hits', async (command, _, reply, reason, dropped) => {
    await using server = await ScriptedServer.start(replies({ get: 'END\r\n', [command]: reply }));
    const counters = countersOf(server);
    expect(await apply(counters, ...hits('a+7'))).toEqual([7]);
    await until('it is logged', () => log.lines.length > 0);
    expect(log.lines[0]!.fields).toEqual({ server: server.address, reason: expect.stringMatching(reason) as string });
    expect(counted('dropped_hits')).toBe(dropped);
    expect(await apply(counters, ...hits('a+7'))).toEqual([7]);
    expect(counted('multiget.__code=error')).toBe(command === 'get' ? 2 : 1);
  });

  it('to `version` show that a server answers again, and nothing else does', async () => {
    await using server = await ScriptedServer.start(() => '+PONG\r\n');
    const counters = countersOf(server);
    expect(await apply(counters, ...hits('a+7'))).toEqual([7]);
    await until('it is tried again', () => log.text.includes('in reply to version, the server sent "+PONG'));
    server.answer = replies({ get: 'VALUE a 0 1\r\n4\r\nEND\r\n', incr: '5\r\n' });
    await until('it answers again', () => log.messages.at(-1) === 'a memcached server answers again');
    expect(await apply(counters, ...hits('a+1'))).toEqual([5]);
  });
});

describe('a server that does not answer', () => {
  const AWAY = 'a memcached server does not answer; its counters count as 0 and its hits are dropped until it does';

  it('is waited for once, tried again and again, and counts again when it answers', async () => {
    const clock = new ClockByHand();
    const [received, held]: [string[], Socket[]] = [[], []];
    await using server = await ScriptedServer.start((line, socket) => {
      received.push(line);
      held.push(socket);
      return undefined;
    });
    const counters = countersOf(server, { scheduler: clock, timeoutMs: 500 });
    const states: boolean[] = [];
    const subscription = counters.connected$.subscribe((state) => states.push(state));
    try {
      const first = apply(counters, ...hits('a+7'));
      await until('it is read', () => received.length === 1);
      clock.pass(499);
      expect([log.lines, gauge(server)]).toEqual([[], 0]);
      clock.pass(1);
      expect(await first).toEqual([7]);
      // Without another request.
      expect(await apply(counters, ...hits('a+5'))).toEqual([5]);
      expect([received, log.messages, gauge(server), states]).toEqual([['get a'], [AWAY], 1, [true, false]]);
      for (const tries of [2, 3]) {
        clock.pass(400);
        await until('it is tried', () => received.length === tries);
        clock.pass(500);
        await nextTurn();
      }
      expect([log.lines.length, counted('dropped_hits')]).toEqual([1, 12]);
      clock.pass(400);
      await until('it is tried', () => received.length === 4);
      server.answer = replies({ get: 'VALUE a 0 1\r\n4\r\nEND\r\n', incr: '5\r\n' });
      held.at(-1)!.write('VERSION 1.6.18\r\n');
      await until('it answers again', () => states.at(-1));
      clock.pass(5_000);
      expect(log.messages.at(-1)).toBe('a memcached server answers again');
      expect([received.slice(1), gauge(server), states.at(-1)]).toEqual([Array(3).fill('version'), 0, true]);
      expect(await apply(counters, ...hits('a+1'))).toEqual([5]);
    } finally {
      subscription.unsubscribe();
    }
  });

  it('is found away by the check of every second while the health of the store is followed, and only then', async () => {
    const clock = new ClockByHand();
    await using server = await ScriptedServer.start(replies({}));
    countersOf(server, { scheduler: clock });
    const counters = countersOf(server, { scheduler: clock, checkEvery: 1_000 });
    await server[Symbol.asyncDispose]();
    const states: boolean[] = [];
    const subscription = counters.connected$.subscribe((state) => states.push(state));
    clock.pass(999);
    expect(states).toEqual([true]);
    clock.pass(1);
    await until('it is missed', () => states.length === 2);
    expect([states, log.messages]).toEqual([[true, false], [AWAY]]);
    subscription.unsubscribe();
  });
});

describe('operators', () => {
  const COUNTER = counterOf('k');
  const DONE = { set: 'STORED\r\n', delete: 'NOT_FOUND\r\n' };

  it('read a counter wherever the reply is split, and set and clear it', async () => {
    await using server = await ScriptedServer.start(replies({ ...DONE, mg: 'VA 3 t17\r\n42 \r\n' }), 1);
    const counters = countersOf(server);
    expect(await counters.readCounter(COUNTER)).toEqual({ count: 42, timeToLive: 17 });
    server.answer = replies({ ...DONE, mg: 'VA 20 t-1\r\n18446744073709551615\r\n' });
    expect(await counters.changeCounter(COUNTER, 9)).toEqual({ count: MOST, timeToLive: null });
    expect(await counters.changeCounter(COUNTER, null)).toEqual({ count: MOST, timeToLive: null });
    expect(server.received).toEqual(['mg k t v', 'mg k t v', 'set k 0 61 1', '9', 'mg k t v', 'delete k']);
    // The longest reply that is read.
    server.answer = replies({ mg: `VA 1010 t17\r\n${'42'.padEnd(1010)}\r\n` });
    expect(await counters.readCounter(COUNTER)).toEqual({ count: 42, timeToLive: 17 });
  });

  it('get no time to live from a server before 1.6, which does not know the command that tells it', async () => {
    const answer = { ...DONE, mg: 'ERROR\r\n', get: 'VALUE k 0 1\r\n4\r\nEND\r\n' };
    await using server = await ScriptedServer.start(replies(answer));
    const counters = countersOf(server);
    expect(await counters.readCounter(COUNTER)).toEqual({ count: 4, timeToLive: null });
    expect(await counters.changeCounter(COUNTER, 9)).toEqual({ count: 4, timeToLive: null });
    expect(await counters.changeCounter(COUNTER, null)).toEqual({ count: 4, timeToLive: null });
    expect(server.received.slice(-3)).toEqual(['mg k t v', 'get k', 'delete k']);
  });

  it.each([
    ['mg', 'a value that is longer than announced', 'VA 1 t17\r\n42\r\n'],
    ['mg', 'another line', 'HD\r\n'],
    ['mg', 'a time to live of 400 digits', `VA 1 t${'9'.repeat(400)}\r\n4\r\n`],
    ['mg', 'a time to live before −1', 'VA 1 t-2\r\n4\r\n'],
    ['mg', 'a line without end', 'x'.repeat(2000)],
    ['set', 'the reply of another command', 'NOT_STORED\r\n'],
    ['set', 'an error', 'SERVER_ERROR out of memory storing object\r\n'],
  ])('get an error when the reply to %s is %s', async (command, _, reply) => {
    await using server = await ScriptedServer.start(replies({ mg: 'EN\r\n', [command]: reply }));
    const counters = countersOf(server);
    await expect(counters.changeCounter(COUNTER, 9)).rejects.toMatchObject({ code: 'store_failed' });
  });

  it('that found a server broken are told so until it answers again', async () => {
    await using server = await ScriptedServer.start(replies({ mg: 'HD\r\n' }));
    const counters = countersOf(server);
    await expect(counters.readCounter(COUNTER)).rejects.toMatchObject({ code: 'store_failed' });
    expect(log.messages[0]).toMatch(/^a memcached server does not answer/);
    server.answer = replies({ mg: 'EN\r\n' });
    await until('it answers again', () => log.messages.at(-1) === 'a memcached server answers again');
    expect(await counters.readCounter(COUNTER)).toMatchObject({ count: 0 });
  });
});

describe('a reply of two parts, to two commands for 1,001 keys', () => {
  const TIMEOUT = 500;
  const batch = Array.from({ length: 1_001 }, (_, index) => operation(`k${index}`, 0));

  /**
   * The counts of the batch on a server that sends the first part at once. @param second called instead of the second
   * part
   */
  async function countsOf(second: (socket: Socket) => void): Promise<readonly unknown[]> {
    let parts = 0;
    await using server = await ScriptedServer.start((_, socket) => {
      parts += 1;
      if (parts === 2) second(socket);
      return parts === 1 ? 'END\r\n' : undefined;
    });
    return await apply(countersOf(server, { timeoutMs: TIMEOUT }), ...batch);
  }

  it('is received when the event loop stands still until the timeout is over, and the first part arrives meanwhile', async () => {
    const counts = await countsOf((socket) =>
      setImmediate(async () => {
        const end = performance.now() + TIMEOUT + 10;
        while (performance.now() < end);
        // What the timer does follows in the turn after it, and is over after the next one.
        for (let turn = 0; turn < 2; turn += 1) await nextTurn();
        socket.write('END\r\n');
      }),
    );
    expect(counts).toEqual(batch.map(() => 0));
    expect([log.lines, counted('multiget.__code=success')]).toEqual([[], 1]);
  });

  it('is given up when bytes arrive, but no part is complete within the timeout', async () => {
    let bytes: NodeJS.Timeout | undefined;
    const counts = await countsOf((socket) => {
      bytes = setInterval(() => socket.write('V'), TIMEOUT / 10);
    });
    clearInterval(bytes);
    expect(counts).toEqual(batch.map(() => 0));
    expect(log.lines[0]?.fields['reason']).toBe(`the server did not answer within ${TIMEOUT} ms`);
  });
});
