import { randomUUID } from 'node:crypto';
import { type SchedulerLike, filter, firstValueFrom } from 'rxjs';
import { setTimeout as pause } from 'node:timers/promises';
import { RateLimitResponse } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { DecisionError } from '../../src/counting/decision-error';
import { encodeResponse } from '../../src/grpc/rate-limit/encode-response';
import { writeVerdict } from '../../src/http/json/json-handler';
import { DEFAULT_OPTIONS, type LimiterOptions } from '../../src/limiter/options';
import { Limiter } from '../../src/limiter/limiter';
import type { Descriptor } from '../../src/limiter/request';
import type { Verdict } from '../../src/limiter/verdict';
import { turnScheduler } from '../../src/main/turn-scheduler';
import { Statistics } from '../../src/statistics/statistics';
import { decisions } from '../../src/streams/decisions';
import type { CounterAdministration } from '../../src/streams/ports/counter-administration';
import type { Counters } from '../../src/streams/ports/counters';
import { ReservationError, type ReservationStore } from '../../src/streams/ports/reservations';
import { counterOf, operation } from '../support/data/operations';
import { descriptor, request } from '../support/data/requests';
import { limit, rulesetOf } from '../support/data/rules';
import { integersOf } from '../support/data/seeded-random';
import { RecordedLog } from '../support/data/recorded-log';
import { serverStates } from '../support/data/server-states';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { type Reply, CommandServer, encode } from '../support/servers/command-server';
import type { InstanceOptions } from '../../src/sinks/counters/kvstore/deployment';
import { apply } from './counters/scenarios';
import { instance, nextCount, openKvstore } from './kvstore/options';
import { ScriptedServer, openPlaincache } from './plaincache/options';

// Stores whose replies are damaged, or replaced: each call gets an answer that the protocol allows, or an error.

const INTEGERS = [
  ...['0', '1', '-1', '5', '-5', '1000000', '9007199254740991', '9007199254740992', '9223372036854775807'],
  ...['-9223372036854775808', '9'.repeat(400), `-${'9'.repeat(400)}`, 'abc', '', '-', '1.5', '1e3', '+1', ' 1', '0x10'],
  ...['NaN', 'Infinity', '1795941636609000', '00000000000000000000000'],
];
const STRINGS = [
  '$0\r\n',
  '$-1',
  '$1\r\n5',
  '$3\r\nabc',
  '$-2',
  '$99999999999',
  '$2\r\nabc',
  '+OK',
  '+PONG',
  '+',
  '+5',
];
const ERRORS = ['-ERR x', '-NOSCRIPT x', '-WRONGTYPE x', '-MOVED 1 127.0.0.1:99999', '-'];
const LISTS = ['*0', '*-1', '*1\r\n:1', '*2\r\n:1\r\n:2', '*2\r\n*1\r\n:1\r\n:2', '*2\r\n:1', '*1000000', '*x'];
const RESP3 = ['>2\r\n+invalidate\r\n*0', '_', '#t', ',1.5', '(3492890328409238509324850943850', '%1\r\n+a\r\n:1'];
/** Replies of the Redis protocol, or nearly, in the place of others. */
const REPLIES: readonly string[] = [
  ...INTEGERS.map((digits) => `:${digits}`),
  ...STRINGS,
  ...ERRORS,
  ...LISTS,
  ...RESP3,
].map((reply) => `${reply}\r\n`);

/** The lines of memcached in the place of others. */
const LINES: readonly string[] = [
  ...['', '0', '1', '-1', '5', '1.5', '1e3', 'abc', 'NaN', 'Infinity', '9007199254740992', '18446744073709551615'],
  ...['18446744073709551616', '9'.repeat(400), '9'.repeat(2000), 'END', 'STORED', 'NOT_STORED', 'NOT_FOUND', 'DELETED'],
  ...[
    'EXISTS',
    'TOUCHED',
    'OK',
    'ERROR',
    'CLIENT_ERROR x',
    'SERVER_ERROR out of memory',
    'VERSION',
    'VERSION 1.6',
    'EN',
  ],
  ...[
    'HD',
    'VA 1 t30\r\n5',
    'VA 1 t-1\r\nx',
    `VA 1 t${'9'.repeat(400)}\r\n5`,
    'VA 5 t1\r\n5',
    'VALUE',
    'VALUE x 0 1\r\n5',
  ],
  ...['VALUE x 0 99999999', 'VALUE x 0 -1', '5\r\n5', '\0', '\u00ff'],
].map((line) => `${line}\r\n`);

const integer = integersOf('strange replies');

function oneOf<T>(values: readonly T[]): T {
  return values[integer(values.length)] as T;
}

/** A text with one to three of its bytes changed, left out or added; sometimes with itself after it. */
function damaged(text: string): string {
  let bytes = text;
  for (let change = integer(3); change >= 0; change -= 1) {
    const at = integer(bytes.length + 1);
    const byte = oneOf([String.fromCharCode(integer(256)), oneOf('0123456789:$*+-\r\n>'.split(''))]);
    bytes = bytes.slice(0, at) + oneOf(['', byte, byte + bytes.slice(at, at + 1)]) + bytes.slice(at + 1);
  }
  return integer(8) === 0 ? bytes + text : bytes;
}

const HANDSHAKE = new Set(['AUTH', 'SELECT', 'PING', 'ROLE', 'SCRIPT', 'version']);

/** Replaces replies of a server: all of it, an element of a list, or bytes of it; and leaves others as they are. */
class Replacement {
  isOn = false;
  /** How many were replaced, by their commands. */
  readonly replaced = new Map<string, number>();
  readonly #table: readonly string[];

  constructor(table: readonly string[]) {
    this.#table = table;
  }

  of(command: string, reply: string): string {
    // Fewer of those without which there is no connection.
    if (!this.isOn || integer(HANDSHAKE.has(command) ? 8 : 3) > 0) return reply;
    this.replaced.set(command, (this.replaced.get(command) ?? 0) + 1);
    const way = integer(3);
    if (way === 0) return oneOf(this.#table);
    if (way === 1) return damaged(reply);
    const elements = [...reply.matchAll(/:-?\d+\r\n/g)];
    if (elements.length === 0) return oneOf(this.#table);
    // Two integers change their places, or one is another reply.
    const [one, other] = [oneOf(elements), oneOf(elements)];
    const [from, to] = one.index < other.index ? [one, other] : [other, one];
    if (integer(2) === 0 || from === to) {
      return reply.slice(0, from.index) + oneOf(this.#table) + reply.slice(from.index + from[0].length);
    }
    const between = reply.slice(from.index + from[0].length, to.index);
    return reply.slice(0, from.index) + to[0] + between + from[0] + reply.slice(to.index + to[0].length);
  }
}

const RULES = rulesetOf(
  'd',
  { key: 'fixed', rateLimit: limit(10, 'MINUTE') },
  { key: 'second', rateLimit: limit(10, 'SECOND') },
  { key: 'slid', rateLimit: limit(10, 'MINUTE', { algorithm: 'sliding_window' }) },
  { key: 'bucket', rateLimit: limit(60, 'MINUTE', { algorithm: 'token_bucket', burst: 7 }) },
  { key: 'parts', rateLimit: limit(7, 'MINUTE', { algorithm: 'token_bucket' }) },
  { key: 'several', rateLimits: [limit(10, 'MINUTE'), limit(20, 'HOUR')] },
  {
    key: 'all',
    rateLimits: [limit(10, 'MINUTE'), limit(20, 'HOUR', { algorithm: 'sliding_window' })],
    allOrNothing: true,
  },
);
const ALGORITHMS = ['slid', 'bucket', 'parts', 'all'];
const MOST = { limit: 60, reset: 2 * 3600 };

interface StrangeStore {
  readonly counters: Counters & CounterAdministration;
  readonly reservations: ReservationStore | undefined;
  readonly hasAlgorithms: boolean;
}

/**
 * Sends calls of all kinds to a store, one or a few at once, and checks what they get. Returns how many had a verdict.
 */
async function callStrangeStore(store: StrangeStore, calls: number): Promise<number> {
  const errors: Error[] = [];
  const paths = [{}, { stopIncrementWhenOverLimit: true }].map((options) => pathOn(store.counters, options, errors));
  const names = ['fixed', 'second', 'several', ...(store.hasAlgorithms ? ALGORITHMS : [])];
  let verdicts = 0;
  const kinds = [
    async () => {
      const descriptors = Array.from({ length: 1 + integer(3) }, () =>
        descriptor(`${oneOf(names)}=${integer(3)}`, { hitsAddend: 1 + integer(2), isNegativeHits: integer(8) === 0 }),
      );
      const verdict = await oneOf(paths)(descriptors);
      if (verdict === undefined) return;
      expectValid(verdict);
      verdicts += 1;
    },
    async () => {
      const { count, timeToLive } = await store.counters.readCounter(counterOf('read'));
      expect(Number.isSafeInteger(count) && count >= 0).toBe(true);
      expect(timeToLive === null || (Number.isInteger(timeToLive) && timeToLive >= 0)).toBe(true);
    },
    () =>
      oneOf([0, 1]) === 0
        ? store.counters.changeCounter(counterOf('set'), 5)
        : store.counters.changeCounter(counterOf('set'), null),
    async () => {
      if (!store.hasAlgorithms) return;
      const lent = operation('lent', 1, { limit: 1000 });
      lent.lease = { wants: 20, milliseconds: 250, sentAt: 0, granted: 0 };
      await apply(store.counters, lent);
      expect([0, ...Array.from({ length: 19 }, (_, hits) => hits + 2)]).toContain(lent.lease.granted);
    },
    async () => {
      if (store.reservations === undefined) return;
      const counter = counterOf('reserved');
      const steps = [{ ...counter, hits: 2, denies: 'alone', member: `c:0:${randomUUID()}` } as const];
      const opens = { ttl: 1000, isDenied: false, domain: 'd' };
      const change = {
        key: randomUUID(),
        before: undefined,
        after: 'text',
        lifetime: 1000,
        now: Date.now(),
        steps,
        opens,
      };
      const result = await store.reservations.changeReservation(change);
      if (result.outcome === 'done')
        expect(result.steps.flatMap(({ count, added }) => [count, added]).every(Number.isSafeInteger)).toBe(true);
      const open = await store.reservations.readOpen(counter, Date.now());
      for (const { expiresAt } of open.first) expect(() => new Date(expiresAt).toISOString()).not.toThrow();
      expect(Number.isSafeInteger(open.count)).toBe(true);
    },
  ];
  for (let done = 0; done < calls;) {
    // Otherwise most calls find no connection.
    await firstValueFrom(store.counters.connected$.pipe(filter(Boolean)));
    const together = Array.from({ length: 1 + integer(4) }, async () => {
      const outcome = oneOf([kinds[0]!, oneOf(kinds)])();
      const hangs = pause(LONGEST_CALL, true, { ref: false });
      if ((await Promise.race([withoutError(outcome), hangs])) === true) errors.push(new Error('a call hangs'));
    });
    await Promise.all(together);
    expect(errors).toEqual([]);
    done += together.length;
  }
  return verdicts;
}

/** Milliseconds: far above the timeout of the stores, also on a busy machine. */
const LONGEST_CALL = 30_000;

/** A call that the store fails is fine, by the errors that callers know. */
async function withoutError(outcome: Promise<unknown>): Promise<unknown> {
  return outcome.then(
    () => undefined,
    (error: unknown) => {
      if (!(error instanceof DecisionError) && !(error instanceof ReservationError)) throw error;
    },
  );
}

/** Decides on a store. Resolves with undefined for a call that the store fails. */
function pathOn(counters: Counters, options: Partial<LimiterOptions>, errors: Error[]) {
  const statistics = new Statistics(100);
  const names = { limit: 'l', remaining: 'm', reset: 'r' };
  const headers = { responseHeaders: names, hasStructuredHeaders: true, hasRetryAfter: true, dynamicMetadata: true };
  const limiter = new Limiter({ ...DEFAULT_OPTIONS, ...headers, metadataDecisions: true, ...options }, statistics);
  const { decide, windows$ } = decisions({
    ...{ limiter, counters, statistics, scheduler: turnScheduler, ruleset: () => RULES },
    onInternalError: (error) => errors.push(error as Error),
  });
  windows$.subscribe();
  return (descriptors: readonly Descriptor[]) =>
    new Promise<Verdict | undefined>((resolve) => {
      decide(request('d', descriptors), { verdict: resolve, error: () => resolve(undefined) });
    });
}

/** A verdict in all forms in which it is sent. */
function expectValid(verdict: Verdict): void {
  const json = writeVerdict(verdict);
  expect(json).not.toMatch(/NaN|Infinity|null|:-?\d*\.|:-/);
  JSON.parse(json);
  const { statuses } = RateLimitResponse.decode(encodeResponse(verdict));
  for (const [index, { limitRemaining, secondsUntilReset }] of verdict.statuses.entries()) {
    const { currentLimit } = verdict.statuses[index]!;
    expect(Number.isSafeInteger(limitRemaining) && limitRemaining >= 0).toBe(true);
    expect(limitRemaining).toBeLessThanOrEqual(currentLimit?.burst ?? currentLimit?.requestsPerUnit ?? MOST.limit);
    expect(Number.isSafeInteger(secondsUntilReset) && secondsUntilReset! >= 0).toBe(true);
    expect(secondsUntilReset).toBeLessThanOrEqual(MOST.reset);
    expect(statuses[index]).toMatchObject({
      limitRemaining,
      durationUntilReset: { seconds: BigInt(secondsUntilReset!), nanos: 0 },
    });
  }
  for (const { value } of verdict.responseHeaders)
    expect(value.replaceAll(/"[^"]*"/g, '')).not.toMatch(/NaN|Infinity|-\d|e\d|\.\d/);
}

/** Waits a tenth of the time, so that connections are soon made again. */
const impatient: SchedulerLike = {
  now: () => turnScheduler.now(),
  schedule: (...[work, delay = 0, state]: Parameters<SchedulerLike['schedule']>) =>
    turnScheduler.schedule(work, delay / 10, state),
};
/** Milliseconds of that scheduler. */
const TIMEOUT = 2000;

/** The deployments of Redis, with commands whose replies are replaced: those of nearly every call, and rarer ones. */
const DEPLOYMENTS: readonly (readonly [
  name: string,
  parts: Partial<InstanceOptions>,
  usual: readonly string[],
  rare: readonly string[],
])[] = [
  [
    'Redis',
    { url: 'redis://u:password@HOST/1' },
    ['AUTH', 'SELECT', 'PING', 'SCRIPT', 'EVALSHA', 'GET', 'TTL'],
    ['EVAL', 'INCRBY', 'SET', 'DEL', 'ZCOUNT', 'ZRANGEBYSCORE'],
  ],
  ['Redis that rejects scripts', {}, ['EVALSHA', 'INCRBY', 'GET', 'TTL'], ['DECRBY', 'EXPIRE', 'SET']],
  [
    'Redis behind a sentinel',
    { type: 'sentinel', url: 'counters,HOST' },
    ['ROLE', 'EVALSHA'],
    ['SENTINEL', 'SUBSCRIBE', 'INCRBY'],
  ],
  ['a Redis cluster', { type: 'cluster', url: 'HOST' }, ['EVALSHA', 'GET'], ['CLUSTER', 'INCRBY']],
];

/** @param calls to each store; with 1,000 and more, rare commands are among them, and all deployments are played */
export function strangeReplyTests(calls: number): void {
  jest.setTimeout(600_000);

  it.each(calls < 1_000 ? DEPLOYMENTS.slice(0, 1) : DEPLOYMENTS)(
    '%s gives its calls valid answers or errors, and lets none hang',
    async (name, { url = 'HOST', ...parts }, usual, rare) => {
      await using redis = await RedisProcess.start();
      const replacement = new Replacement(REPLIES);
      await using server = await CommandServer.start(async (command, args) => {
        const reply = await replyOf(command, args);
        return Buffer.from(replacement.of(command.toUpperCase(), encode(reply)), 'latin1');
      });
      async function replyOf(command: string, args: readonly string[]): Promise<Reply> {
        if (command === 'auth' || command === 'select' || command === 'asking') return 'OK';
        if (command === 'subscribe') return ['subscribe', args[0]!, 1];
        if (command === 'sentinel') return args[0] === 'sentinels' ? [] : ['127.0.0.1', `${server.port}`];
        if (command === 'cluster') return [[0, 16_383, ['127.0.0.1', server.port]]];
        if (command.startsWith('eval') && name.includes('rejects'))
          return new Error(`ERR unknown command '${command}'`);
        return redis.control.call(command, ...args).catch((error: Error) => error) as Promise<Reply>;
      }
      const log = new RecordedLog();
      const more = { poolSize: 4, timeout: TIMEOUT, ...parts };
      const startup = { initialInterval: 5, maxInterval: 20, maxElapsedTime: 0 };
      const counters = openKvstore(instance(url.replace('HOST', server.address), more), {
        log,
        startup,
        scheduler: impatient,
        // So that each call gets a reply, although most fail.
        servers: serverStates({ log, failures: 0 }),
      });
      await firstValueFrom(counters.ready$);
      replacement.isOn = true;
      const store = { counters, reservations: counters.reservations, hasAlgorithms: !name.includes('rejects') };
      expect(await callStrangeStore(store, calls)).toBeGreaterThan(0);
      const expected = [...usual, ...(calls < 1000 ? [] : rare)];
      // Pooled connections are made again, and topologies are read: more often until rare commands were among them.
      for (let round = 0; round < calls / 2; round += 1) {
        if (round >= calls / 20 && expected.every((command) => replacement.replaced.has(command))) break;
        server.cut();
        await callStrangeStore(store, 2);
      }
      replacement.isOn = false;
      await nextCount(counters, 'after');
      expect([...replacement.replaced.keys()]).toEqual(expect.arrayContaining(expected));
      const invalid = log.lines.filter(({ message }) => message.includes('do not fit their commands'));
      expect(invalid.length).toBeGreaterThan(0);
      expect(invalid.length).toBeLessThanOrEqual(8);
      for (const { fields } of invalid) expect(fields['reason']).toMatch(/^(?:the reply to [A-Z]+|a reply) /);
    },
  );

  it('memcached gives its calls valid answers or errors, and lets none hang', async () => {
    const replacement = new Replacement(LINES);
    await using server = await ScriptedServer.start((line) => {
      const [command = ''] = line.split(' ');
      const reply = {
        ...{
          get: `VALUE ${line.split(' ')[1]} 0 1\r\n4\r\nEND\r\n`,
          mg: 'VA 1 t30\r\n4\r\n',
          incr: '5\r\n',
          decr: '5\r\n',
        },
        ...{ add: 'STORED\r\n', set: undefined, delete: 'DELETED\r\n', version: 'VERSION 1.6\r\n' },
      }[command];
      if (line === '5' || line === '1') return replacement.of('set', 'STORED\r\n');
      return reply === undefined ? undefined : replacement.of(command, reply);
    });
    const counters = openPlaincache([server], {
      ...{ timeoutMs: TIMEOUT, scheduler: impatient },
      servers: serverStates({ scheduler: impatient, failures: 0 }),
    });
    replacement.isOn = true;
    const store = { counters, reservations: undefined, hasAlgorithms: false };
    expect(await callStrangeStore(store, calls)).toBeGreaterThan(0);
    replacement.isOn = false;
    await nextCount(counters as never, 'after');
    expect([...replacement.replaced.keys()]).toEqual(
      expect.arrayContaining(calls < 1000 ? ['get', 'incr', 'mg'] : ['get', 'incr', 'decr', 'mg', 'set', 'delete']),
    );
  });
}
