import { isDeepStrictEqual } from 'node:util';
import { NEVER, Subject, VirtualTimeScheduler } from 'rxjs';
import { TokenBucket } from '../../src/counting/algorithms/bucket';
import { FixedWindow } from '../../src/counting/algorithms/fixed';
import { DecisionError } from '../../src/counting/decision-error';
import type { Operation } from '../../src/counting/operation';
import { MemoryCounters } from '../../src/sinks/counters/memory/memory-counters';
import { LONGEST_TABLE_KEY } from '../../src/text/table-key';
import { Channel } from '../../src/workers/channel';
import { RemoteCounters, serveCounters } from '../../src/workers/counters';
import { until } from '../support/waiting/until';
import { serverStates } from '../support/data/server-states';
import { channelPair, duplexPair } from '../support/workers/channel-pair';
import { allOrNothingGroup, counterOf, operation, stopWhenOver } from '../support/data/operations';
import { RecordedLog } from '../support/data/recorded-log';
import { limit as limitOf, rulesetOf } from '../support/data/rules';
import { Service } from '../integration/counters/rule-scenarios';

const MIB = 1024 * 1024;

describe('a channel', () => {
  it.each([1, 7, 99_991])('delivers messages of any length and text in order, in chunks of %i bytes', async (size) => {
    const { primary, worker } = channelPair(size);
    const received: unknown[] = [];
    worker.notifications('one').subscribe((message) => received.push(message));
    const messages = ['', '\n+.\u2028', '\ud800', 'ü'.repeat(size < 10 ? 1_000 : MIB), [1, null, { a: 'b' }]];
    for (const message of messages) {
      primary.notify('one', message);
      primary.notify('other', 'a topic without a subscriber');
    }
    await until('all of them', () => received.length === messages.length);
    expect(received).toEqual(messages);
    primary.close();
  });

  it.each([
    ['is no message', '?[]\n'],
    ['is half a message', '["rules",{\n'],
    ['is no list', '5\n'],
    ['is nothing', 'null\n'],
    ['has an answer without a result', '[1]\n'],
    ['ends an answer that is no message', '[1,"{","piece"]\n[1,"","end"]\n'],
    ['has no end', ' '.repeat(65 * MIB)],
  ])('closes, completes its topics and requests, and then does nothing when a line %s', async (_, bytes) => {
    const [stream, other] = duplexPair();
    const channel = new Channel(stream);
    const completed: string[] = [];
    channel.notifications('topic').subscribe({ complete: () => completed.push('topic') });
    channel.request('method', null).subscribe({ complete: () => completed.push('request') });
    channel.start();
    other.write(bytes);
    await until('it has closed', () => channel.isClosed);
    expect(completed).toEqual(['topic', 'request']);
    channel.notify('topic', 'x');
    await channel.sent();
    expect(await channel.call('method', null)).toEqual([]);
  });

  it('delivers what has arrived before it reads, and answers what arrives together in one write', async () => {
    const [stream, other] = duplexPair();
    const channel = new Channel(stream);
    const written: string[] = [];
    other.on('data', (chunk: Buffer) => written.push(String(chunk)));
    channel.serveNow('next', (count: number) => count + 1);
    other.write('["next",1,7]\n["next",');
    other.write('2,8]\n');
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    channel.start();
    await until('it has answered', () => written.join('').split('\n').length === 3);
    other.write('["next",3,9]\n["next",4,10]\n');
    await until('it has answered again', () => written.join('').split('\n').length === 5);
    expect(written.join('')).toBe('[7,2]\n[8,3]\n[9,4]\n[10,5]\n');
    expect(written.at(-1)).toBe('[9,4]\n[10,5]\n');
    channel.close();
  });

  it('is congested while the other end does not read, and closes rather than keep any amount for it', async () => {
    const [stream, other] = duplexPair();
    const channel = new Channel(stream);
    let sent = 0;
    channel.notify('rules', 'x'.repeat(MIB - 100));
    void channel.sent().then(() => (sent += 1));
    expect(channel.isCongested).toBe(false);
    channel.notify('rules', 'x'.repeat(100));
    expect([channel.isCongested, sent]).toEqual([true, 0]);
    other.resume();
    await until('everything is accepted', () => sent === 1 && !channel.isCongested);
    other.pause();
    for (let count = 0; count < 64; count += 1) {
      expect(channel.isClosed).toBe(false);
      channel.notify('rules', 'x'.repeat(MIB));
    }
    expect(channel.isClosed).toBe(true);
  });
});

describe('requests', () => {
  it('return results of any length, and fail with their error, while others are in progress', async () => {
    const { primary, worker } = channelPair();
    const finish$ = new Subject<string>();
    worker.serve('slow', () => finish$);
    worker.serve('echo', async (parameters: unknown) => parameters);
    worker.serve('nothing', async () => undefined);
    const away = new DecisionError('store_timeout', 'the store is away');
    worker.serve('missing', () => Promise.reject(away));
    worker.serve('broken', () => {
      throw new Error('a fault');
    });
    const slow = primary.call('slow', null);
    const long = { long: 'ü'.repeat(3 * MIB) };
    const results: unknown[] = [];
    primary.request('echo', long).subscribe((result) => results.push(result));
    expect(await primary.call('nothing', null)).toEqual([null]);
    // A long result leaves room for others.
    expect(results.length).toBe(0);
    await until('it has arrived', () => results.length === 1);
    expect(isDeepStrictEqual(results, [long])).toBe(true);
    await expect(primary.call('missing', null)).rejects.toEqual(away);
    await expect(primary.call('broken', null)).rejects.toEqual(new Error('a fault'));
    finish$.next('first');
    finish$.next('last');
    finish$.complete();
    expect(await slow).toEqual(['last']);
    primary.close();
  });

  it('complete without a result when the other end stands still or ends, but wait for what it has begun', async () => {
    const scheduler = new VirtualTimeScheduler();
    const [one, other] = duplexPair();
    const [asking, answering] = [new Channel(one, scheduler), new Channel(other)];
    answering.serve('slow', () => NEVER);
    answering.serveNow('ping', () => null);
    asking.start();
    let completed: string[] = [];
    function request(name: string): void {
      const asked$ = asking.request('slow', null, 2_000);
      asked$.subscribe({ complete: () => completed.push(`${name} at ${scheduler.now()}`) });
    }
    request('standing still');
    scheduler.flush();
    expect(completed).toEqual(['standing still at 2000']);
    completed = [];
    request('begun');
    const begun = asking.call('slow', null);
    answering.start();
    await asking.call('ping', null);
    scheduler.flush();
    expect(completed).toEqual([]);
    answering.close();
    expect(await begun).toEqual([]);
    expect(completed).toEqual([`begun at ${scheduler.now()}`]);
  });
});

describe('counters in the memory of the primary', () => {
  /** The counts of batches, applied to counters at once. */
  function countsOf(counters: RemoteCounters | MemoryCounters, batches: readonly (readonly Operation[])[]) {
    return Promise.all(batches.map((batch) => counters.apply(batch)));
  }

  it('give a worker the counts of one process, for calls of any size, and fail when the primary ends', async () => {
    const keys = Array.from({ length: 1000 }, (_, index) => `${index}`.padEnd(LONGEST_TABLE_KEY, 'é'));
    const group = stopWhenOver();
    const guarded = keys.map((key) => operation(key, 1, { limit: 3, group }));
    const large = [...keys.slice(0, 950).map((key) => operation(key, 1, { limit: 3 })), ...guarded];
    // The lone surrogate would become another key in UTF-8.
    const small = ['\ud800', '\ud801', '\ud800'].map((key, hits) => operation(key, hits, { limit: 3 }));
    const batches = [large, small, large, small, large];
    const [memory, alone] = [1, 2].map(() => new MemoryCounters({ maxKeys: 10_000, now: () => 0 }));
    const { primary, worker } = channelPair();
    serveCounters(primary, memory!);
    const counters = new RemoteCounters(worker, { windowSpan: 0, servers: serverStates() });
    expect(await countsOf(counters, batches)).toEqual(await countsOf(alone!, batches));
    const inFlight = countsOf(counters, [small]);
    primary.close();
    const failure = { name: 'DecisionError', code: 'store_failed' };
    await expect(inFlight).rejects.toMatchObject(failure);
    await expect(countsOf(counters, [small])).rejects.toMatchObject(failure);
    await Promise.all([counters, memory!, alone!].map((each) => each.close()));
  });

  it('count in a window of the calendar until that ends', async () => {
    const calendar = { timeZone: 'Asia/Tokyo', startsOn: 1 };
    const ruleset = rulesetOf('shop', { key: 'k', rateLimit: limitOf(5, 'DAY', { calendar }) });
    const end = Date.UTC(2026, 0, 2, 15);
    let now = end - 10_000;
    const memory = new MemoryCounters({ maxKeys: 10, now: () => now });
    const { primary, worker } = channelPair();
    serveCounters(primary, memory);
    const counters = new RemoteCounters(worker, { windowSpan: 0, servers: serverStates() });
    using service = new Service(ruleset, counters, {}, () => now);
    const left: number[] = [];
    for (const time of [now, end - 1, end, end + 2 * 86_400_000]) {
      now = time;
      left.push((await service.decide('shop', ['k=x'])).statuses[0]!.limitRemaining);
      memory.removeExpired();
    }
    expect([left, memory.size]).toEqual([[4, 3, 4, 4], 1]);
    await Promise.all([counters, memory].map((each) => each.close()));
  });

  const state = { whole: 1, part: 0, parts: 1, now: 0 };
  it.each([
    ...[null, true, false, '', 'text', '5', [], {}, 1.5, -0.5, 1e300, 2 ** 53, -(2 ** 53)],
    ...[{ parts: 2 }, { part: 1 }, { part: -1 }, { whole: -1 }].map((wrong) => ({ ...state, ...wrong })),
    ...[{ whole: 1e15 }, { whole: '1' }, { now: null }].map((wrong) => ({ ...state, ...wrong })),
    { previous: 0, current: 0, now: 0 },
  ])('end the worker when the primary answers %j where that cannot be', async (value) => {
    const log = new RecordedLog();
    const counter = counterOf('k');
    const bucket = new TokenBucket({ name: 'token_bucket', requestsPerUnit: 4, lengthSeconds: 3600, burst: 9 });
    const lent = operation('k', 1, { limit: 3 });
    lent.lease = { wants: 9, milliseconds: 250, sentAt: 0, granted: 0 };
    type Ask = (counters: RemoteCounters) => Promise<unknown>;
    function change(outcome: unknown, count: unknown, added: unknown): readonly [string, unknown, Ask] {
      const steps = [{ ...counter, hits: 1, denies: 'alone', member: 'c:0:id' } as const];
      const asked = { key: 'r', before: undefined, after: 'text', lifetime: 1000, now: 0, steps };
      const answered = { outcome, steps: [{ count, added, found: '' }] };
      return ['change_reservation', answered, (counters) => counters.changeReservation(asked)];
    }
    const requests: readonly (readonly [method: string, answers: unknown, ask: Ask])[] = [
      ['count', value, (counters) => counters.apply([operation('k', 1)])],
      ['count', [value, 1], (counters) => counters.apply([operation('k', 1), operation('l', 1)])],
      ['count', [value], (counters) => counters.apply([operation('k', 1, { algorithm: bucket })])],
      ['count', [[1, value]], (counters) => counters.apply([lent])],
      ['count', [value], (counters) => counters.readCounter(counter)],
      ['read_record', { value }, (counters) => counters.readRecord('k')],
      ...[change(value, 1, 1), change('done', value, 1), change('done', 1, value)],
      ['read_open', { count: value, first: [] }, (counters) => counters.readOpen(counter, 0)],
      ['read_open', { count: 1, first: [value] }, (counters) => counters.readOpen(counter, 0)],
    ];
    for (const [method, answer, ask] of requests) {
      const { primary, worker } = channelPair();
      primary.serveNow(method, () => answer);
      const counters = new RemoteCounters(worker, { windowSpan: 0, servers: serverStates(), log });
      await expect(ask(counters)).rejects.toMatchObject({ code: 'store_failed' });
      expect(worker.isClosed).toBe(true);
      expect(log.lines.splice(0)).toMatchObject([{ level: 'error', fields: { request: method } }]);
      primary.close();
    }
  });

  it('get every operation as it was, whichever of its numbers are those of the operation before', async () => {
    const group = stopWhenOver();
    const over = stopWhenOver(true);
    const lease = { wants: 9, milliseconds: 250, sentAt: 0, granted: 0 };
    const bucket = new TokenBucket({ name: 'token_bucket', requestsPerUnit: 4, lengthSeconds: 3600, burst: 9 });
    const window = new FixedWindow({ name: 'fixed_window', requestsPerUnit: 4, lengthSeconds: 60, burst: undefined });
    const changes = [
      ...[{}, { hits: 2 }, { lengthSeconds: 3600 }],
      ...[{ endsAt: 1_764_028_800 }, { endsAt: 1_764_547_200 }, { endsAt: undefined }, { limit: 4 }],
      ...[{ group }, { group }, { group: over }, { group: { ...over } }, { group: undefined }],
      ...[{ algorithm: bucket }, { calls: [1, 1] }, {}, { calls: undefined }],
      ...[{ onlyInWindow: 7 }, {}, { onlyInWindow: undefined, lease }, {}, { lease: undefined }, {}],
      ...[{ group: allOrNothingGroup() }, { algorithm: window }, { algorithm: undefined, group: undefined }],
    ];
    const sent = changes.map((_, last) => {
      const all = Object.assign({ hits: 1, limit: 3 }, ...changes.slice(0, last + 1));
      const { hits, lease: request, onlyInWindow, ...parts } = all;
      return Object.assign(operation('k', hits, parts), { lease: request, onlyInWindow });
    });
    const received: Operation[] = [];
    const { primary, worker } = channelPair();
    const store = new MemoryCounters({ maxKeys: 10, now: () => 0 });
    serveCounters(primary, store);
    jest.spyOn(store, 'applyNow').mockImplementation((operations) => {
      received.push(...operations);
      return operations.map(({ limit }) => limit.algorithm?.empty(0) ?? 1);
    });
    const counters = new RemoteCounters(worker, { windowSpan: 0, servers: serverStates() });
    await counters.apply([...sent, ...sent]);
    expect(received).toEqual([...sent, ...sent]);
    // Those of a group follow one another.
    function joined(operations: readonly Operation[]) {
      return operations.map(({ group: own }, index) => own !== undefined && own === operations[index - 1]?.group);
    }
    expect(joined(received)).toEqual(joined([...sent, ...sent]));
    primary.close();
    await store.close();
  });

  it('fail calls that the primary does not answer for five seconds, and later ones at once, until it answers', async () => {
    // The primary is asked again and again while it does not answer.
    const scheduler = new VirtualTimeScheduler(undefined, 5_600);
    const [one, other] = duplexPair();
    const [worker, primary] = [new Channel(one, scheduler), new Channel(other)];
    const memory = new MemoryCounters({ maxKeys: 10, now: () => 0 });
    serveCounters(primary, memory);
    const counters = new RemoteCounters(worker, { windowSpan: 0, servers: serverStates({ scheduler }) });
    const connected: boolean[] = [];
    counters.connected$.subscribe((isConnected) => connected.push(isConnected));
    worker.start();
    const failures: string[] = [];
    function hit(): void {
      counters.apply([operation('k', 1, { limit: 3 })]).then(
        ([count]) => failures.push(`count ${JSON.stringify(count)}`),
        ({ code }: DecisionError) => failures.push(code),
      );
    }
    hit();
    expect(failures).toEqual([]);
    scheduler.flush();
    hit();
    await until('both calls have failed', () => failures.length === 2);
    expect({ failures, connected }).toEqual({ failures: Array(2).fill('store_timeout'), connected: [true, false] });
    primary.start();
    await until('it is connected again', () => connected.length === 3);
    hit();
    await until('it is counted', () => failures.length === 3);
    // What was sent was counted, and what was not sent was not.
    expect([failures[2], connected]).toEqual(['count 2', [true, false, true]]);
    await counters.close();
    scheduler.flush();
    // No timer is left.
    expect(scheduler.now()).toBeLessThan(5_100);
    worker.close();
    await memory.close();
  });
});
