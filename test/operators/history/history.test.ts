import { type IncomingMessage, get } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { Subscription, asyncScheduler } from 'rxjs';
import { readHistory } from '../../../src/http/operators/read-report';
import { RecentConfigurations } from '../../../src/operators/configurations';
import { HistoryRecorder } from '../../../src/operators/history/history';
import type { History } from '../../../src/operators/live-answers';
import { buildRuleset } from '../../../src/rules/ruleset';
import { Statistics } from '../../../src/statistics/statistics';
import { Trip } from '../../../src/streams/deadline';
import type { ServerState } from '../../../src/streams/server-state';
import type { ServerStates } from '../../../src/streams/server-views';
import { ServedApi } from '../../http/operators/served-api';
import { serverStates } from '../../support/data/server-states';
import { heapAfterCollection } from '../../support/processes/collect-garbage';

const START = Date.parse('2026-02-03T04:05:00.000Z');
const INSTANCE = { id: 'own', name: 'vm', version: '1.2.3' };
const RULESET = buildRuleset([]);

/** A clock that only a test moves. */
beforeEach(() => jest.useFakeTimers({ now: START }));
afterEach(() => {
  subscriptions.unsubscribe();
  subscriptions = new Subscription();
  jest.useRealTimers();
});
let subscriptions = new Subscription();

function wait(seconds: number): void {
  jest.advanceTimersByTime(seconds * 1000);
}

function recorded(statistics = new Statistics(100_000)) {
  const configurations = new RecentConfigurations();
  const servers = serverStates({ scheduler: asyncScheduler, failures: 2 });
  const store = { isShared: true, policy: 'deny' } as const;
  const recorder = new HistoryRecorder({ statistics, servers, configurations, instance: INSTANCE, store });
  subscriptions.add(servers.changed$.subscribe(() => recorder.seeServers()));
  function sample(after = 10): void {
    wait(after);
    recorder.sample();
  }
  function read(since?: number): History {
    const { rules, ...history } = recorder.read({ since })!;
    return { ...history, rules: [...rules] };
  }
  return { statistics, servers, configurations, recorder, sample, read };
}

/** A server of a store, whose answers to probes are told by the test. */
function open(servers: ServerStates, server = 'a') {
  const lines = { begins: 'begins', ends: 'ends' };
  const state = servers.open({ name: { server, store: 'main' }, lines, probe: () => undefined });
  state.connected(1);
  return state;
}

function timeAfter(elapsed: number): number {
  return START / 1000 + elapsed;
}

it('a sample has what was counted since the one before, per second', () => {
  const { statistics, servers, recorder, sample, read } = recorded();
  const [user, plan] = [statistics.rule('shop.user'), statistics.rule('shop.plan')];
  user.totalHits = 20;
  user.withinLimit = 20;
  user.nearLimit = 7;
  user.nearLimitPartial = 2;
  plan.totalHits = 12_345;
  plan.overLimit = 12_345;
  plan.shadowMode = 45;
  plan.calls = 10;
  statistics.runtimeRule('shop.plan_free', 'shop.plan').totalHits = 5;
  statistics.counter('ratelimit_server.ShouldRateLimit.total_requests').add(50);
  statistics.timer('ratelimit_server.ShouldRateLimit.response_time').record(3);
  const [one, other] = [open(servers, 'a'), open(servers, 'b')];
  wait(5);
  for (const outcome of ['ok', 'ok', 'bad', 'none'] as const) one.ended(outcome, { size: 1, milliseconds: 4 });
  other.ended('ok', { size: 1, milliseconds: 1 });
  sample(5);
  expect(recorder.latest(1).rules.denials).toEqual([
    { statisticsKey: 'shop.plan', hits: 1240, over: 1230, shadow: 4.5, calls: 1 },
  ]);
  sample(20);
  expect(read()).toEqual({
    interval: 10,
    instances: [{ id: 'own', name: 'vm', until: timeAfter(30) }],
    times: [timeAfter(10), timeAfter(30)],
    rates: {
      ...{ within: [2, 0], near: [0.5, 0], over: [1230, 0], shadow: [4.5, 0] },
      ...{ calls: [5, 0], invalid: [0, 0], storeErrors: [0, 0], noMatch: [0, 0] },
    },
    latency: { p50: [expect.closeTo(3, 1), null], p99: [expect.closeTo(3, 1), null] },
    store: { requests: [0.4, 0], errors: [0.1, 0], latency: [3, null] },
    rules: [
      { statisticsKey: 'shop.plan', hits: [1240, 0], over: [1230, 0] },
      { statisticsKey: 'shop.user', hits: [2, 0], over: [0, 0] },
    ],
    marks: [{ at: timeAfter(0), kind: 'start', text: 'weir 1.2.3 was started', instance: 'vm' }],
  });
});

it('numbers beyond what other instances accept are the largest that they do', () => {
  const { statistics, recorder, sample, read } = recorded();
  sample();
  Object.assign(statistics.rule('shop.user'), { totalHits: 2 ** 60, overLimit: 2 ** 60, calls: 200 });
  sample();
  const { rates, rules } = readHistory(JSON.stringify(read()));
  expect([rates.over.at(-1), rules[0]?.hits.at(-1), rules[0]?.over.at(-1)]).toEqual([9e15, 9e15, 9e15]);
  expect(recorder.latest(1)).toMatchObject({ rates: { over: 9e15 }, rules: { hits: [{ hits: 9e15, over: 9e15 }] } });
});

it('the calls of rules that are followed are known of ten minutes, with those of keys with values of requests', () => {
  const { statistics, recorder, sample } = recorded();
  for (let number = 1; number <= 3; number += 1) {
    for (const rule of [statistics.rule('shop.plan'), statistics.runtimeRule('shop.plan_free', 'shop.plan')]) {
      rule.totalHits += 20 * number;
      rule.calls += 5 * number;
    }
    sample(number === 3 ? 100 : 10);
  }
  const known: unknown[] = [];
  for (const seconds of [0, 420, 60, 60]) {
    wait(seconds);
    known.push([...recorder.recentCalls]);
  }
  expect(known).toEqual([60, 60, 30, 30].map((calls) => [['shop.plan', calls]]));
  sample(60);
  expect([...recorder.recentCalls]).toEqual([['shop.plan', 0]]);
});

it('the last 360 samples are kept, of which those after a time can be read alone', () => {
  const { statistics, sample, read } = recorded();
  const user = statistics.rule('shop.user');
  for (let number = 0; number < 400; number += 1) {
    user.totalHits += number * 10;
    sample();
  }
  const { times, rates, rules } = read();
  const [rule] = rules;
  expect([times.length, rates.calls.length, rule!.hits.length]).toEqual([360, 360, 360]);
  expect([times[0], times.at(-1)]).toEqual([timeAfter(410), timeAfter(4_000)]);
  expect([rule!.hits[0], rule!.hits.at(-1)]).toEqual([40, 399]);
  const newest = read(timeAfter(3_980));
  expect(newest).toMatchObject({ times: [timeAfter(3_990), timeAfter(4_000)], rules: [{ hits: [398, 399] }] });
  expect(read(timeAfter(4_000))).toMatchObject({ times: [], rates: { over: [] } });
});

it('the rules with lines of their own are the 50 with the most hits; one that becomes busy takes the place of one that was idle for long', () => {
  const { statistics, recorder, sample, read } = recorded();
  const rules = Array.from({ length: 120 }, (_, number) => statistics.rule(`shop.r${number}`));
  function hitAll(): void {
    for (const [number, rule] of rules.entries()) rule.totalHits += 10 * (number + 1);
    sample();
  }
  for (let times = 0; times < 3; times += 1) hitAll();
  const listed = read().rules.map(({ statisticsKey }) => statisticsKey);
  expect(listed).toEqual(Array.from({ length: 50 }, (_, place) => `shop.r${119 - place}`));
  // One with fewer hits than the 100 that are followed, in two keys.
  for (const key of ['shop.rare_a', 'shop.rare_b']) statistics.runtimeRule(key, 'shop.rare').totalHits += 100;
  hitAll();
  const followed = recorder.latest(1_000).rules.hits.map(({ statisticsKey }) => statisticsKey);
  expect(followed).toEqual(Array.from({ length: 100 }, (_, place) => `shop.r${119 - place}`));
  statistics.rule('shop.new').totalHits += 100_000;
  hitAll();
  const { rules: now } = read();
  expect(now[0]).toMatchObject({ statisticsKey: 'shop.new', hits: [null, null, null, null, 10_000] });
  // One that has stopped stays listed while it was one of the busiest, as long as no other needs its place.
  for (let times = 0; times < 60; times += 1) sample();
  const [stopped] = read().rules.filter(({ statisticsKey }) => statisticsKey === 'shop.r119');
  expect([stopped!.hits.slice(0, 3), stopped!.hits.at(-1)]).toEqual([[120, 120, 120], 0]);
});

it('starts, loads of rules, rejections and replaced workers are marked once each', () => {
  const { statistics, configurations, sample, read } = recorded();
  wait(3);
  configurations.record({ kind: 'loaded', ruleset: RULESET, origin: { source: 's', version: 'v1' }, warnings: [] });
  sample(7);
  configurations.record({ kind: 'rejected', reason: 'x'.repeat(1_000) });
  statistics.counter('ratelimit.workers.restarts').add(2);
  sample();
  wait(1);
  configurations.record({ kind: 'loaded', ruleset: RULESET, origin: { source: 's', version: 'v2' }, warnings: [] });
  const { marks } = read();
  expect(marks).toMatchObject([
    { at: timeAfter(0), kind: 'start', text: 'weir 1.2.3 was started' },
    { at: timeAfter(3), kind: 'reload', text: '0 rules loaded, version v1' },
    { at: timeAfter(10), kind: 'rejection', text: expect.stringMatching(/^rules rejected: x+…$/) },
    { at: timeAfter(20), kind: 'worker', text: '2 workers replaced' },
    { at: timeAfter(21), kind: 'reload', text: '0 rules loaded, version v2' },
  ]);
  for (let number = 0; number < 300; number += 1) {
    statistics.counter('ratelimit.workers.restarts').add(1);
    sample();
  }
  expect(read(timeAfter(0)).marks).toHaveLength(200);
});

describe('an outage of a server', () => {
  function outages({ marks }: History) {
    return marks.filter(({ kind }) => kind === 'store');
  }

  it('is one mark, which says until when it lasted and what it cost, also if it began anew within five seconds', () => {
    const { servers, read } = recorded();
    const server = open(servers);
    wait(10);
    server.trips.begin(new Trip());
    server.sent();
    wait(1.5);
    const mark = { kind: 'store', server: 'a', store: 'main', at: timeAfter(11), instance: 'vm', policy: 'deny' };
    expect(outages(read())).toEqual([{ ...mark, text: 'a is silent', until: null, calls: 0 }]);
    server.refused(7);
    expect(outages(read())).toEqual([{ ...mark, text: 'a is silent', until: null, calls: 7 }]);
    wait(10);
    answer(server);
    wait(1);
    expect(outages(read())).toMatchObject([
      { ...mark, text: 'a was silent for 11 s; 7 calls have missed it', until: timeAfter(22), calls: 7 },
    ]);
    server.connected(0, 'it has ended');
    wait(1);
    expect(outages(read())).toMatchObject([{ ...mark, text: 'a is not connected', until: null }]);
    server.connected(1);
    wait(6);
    const text = 'a was not connected for 12 s; 7 calls have missed it';
    const first = { ...mark, text, until: timeAfter(24), calls: 7 };
    expect(outages(read())).toEqual([first]);
    wait(20);
    server.connected(0);
    wait(3);
    server.connected(1);
    wait(6);
    const again = 'a was not connected for 3 s; no call has missed it';
    expect(outages(read())).toMatchObject([first, { text: again, at: timeAfter(50), until: timeAfter(53) }]);
  });

  it('of another server is another mark, and ends when it is no longer used', () => {
    const { servers, read } = recorded();
    const [one, other] = [open(servers, 'a'), open(servers, 'b')];
    one.connected(0);
    other.connected(0);
    wait(2);
    one.end();
    wait(1);
    expect(outages(read())).toMatchObject([
      { server: 'a', until: timeAfter(2), text: 'a was not connected for 2 s' },
      { server: 'b', until: null },
    ]);
  });

  it('is one of the last 200', () => {
    const { servers, read } = recorded();
    const server = open(servers);
    for (let number = 0; number < 210; number += 1) {
      server.connected(0);
      wait(1);
      server.connected(1);
      wait(9);
    }
    expect(outages(read())).toHaveLength(200);
  });
});

/** The server answers again: a late reply makes a probe of it. */
function answer(server: ServerState): void {
  server.heard();
  server.checked();
}

/** In bytes. */
function memory(): number {
  return heapAfterCollection() + process.memoryUsage().arrayBuffers;
}

it('the memory has at most 2 MB, however many rules and texts there are, computed and measured', () => {
  const statistics = new Statistics(100_000);
  const long = 'x'.repeat(900);
  for (let number = 0; number < 55_000; number += 1) statistics.rule(`shop.${number}${number < 200 ? long : ''}`);
  const before = memory();
  const { recorder, configurations, sample } = recorded(statistics);
  for (let number = 0; number < 400; number += 1) {
    for (const [index, rule] of statistics.rules.entries()) {
      if (index < 200 || number < 2) rule.totalHits += 1 + ((index * 7 + number) % 200);
    }
    configurations.record({ kind: 'rejected', reason: `${number}${long}` });
    sample();
  }
  const measured = memory() - before;
  expect(recorder.bytes).toBeGreaterThan(1_000_000);
  expect(recorder.bytes).toBeLessThan(2_000_000);
  // What is measured has objects, too, and what the statistics have made meanwhile.
  expect(measured).toBeLessThan(2_000_000);
  expect([...recorder.read()!.rules]).toHaveLength(50);
});

describe('the history of other instances', () => {
  const OTHER = { id: 'other', name: 'vm (10.0.0.2:6070)' };
  const THIRD = { id: 'third', name: 'vm (10.0.0.3:6070)' };

  /** What an instance answers to another one. */
  function sent(recorder: HistoryRecorder, since = 0, instance = 'own'): History {
    const { rules, ...history } = recorder.read({ since, instance, most: 120 })!;
    return JSON.parse(JSON.stringify({ ...history, rules: [...rules] })) as History;
  }

  it('is in the sums, each sample once however often and by whomever it was sent, and has its instance in its marks', () => {
    const [own, other, third] = [recorded(), recorded(), recorded()];
    for (const [index, { statistics, recorder }] of [own, other, third].entries()) {
      for (const name of ['shop.user', `shop.${index}`]) statistics.rule(name).totalHits += 100;
      statistics.rule('shop.user').overLimit += 10 ** index;
      statistics.timer('ratelimit_server.ShouldRateLimit.response_time').record(index + 1);
      expect(recorder.lastOf('other')).toBe(0);
    }
    wait(10);
    for (const { recorder } of [own, other, third]) recorder.sample();
    third.recorder.take(OTHER, sent(other.recorder));
    own.recorder.take(OTHER, sent(other.recorder));
    own.recorder.take(THIRD, sent(third.recorder));
    for (const each of [sent(other.recorder), sent(third.recorder, 0, 'other')]) own.recorder.take(OTHER, each);
    own.recorder.take({ id: 'own', name: 'itself' }, sent(third.recorder));
    const { instances, rates, latency, rules, marks } = own.read();
    expect(instances).toEqual([
      { id: 'own', name: 'vm', until: timeAfter(10) },
      ...[OTHER, THIRD].map((instance) => ({ ...instance, until: timeAfter(10) })),
    ]);
    expect([rates.over, latency.p99]).toEqual([[11.1], [expect.closeTo(3, 1)]]);
    const hits = rules.map((rule) => `${rule.statisticsKey} ${rule.hits.join()}`);
    expect(hits).toEqual(['shop.user 30', 'shop.0 10', 'shop.1 10', 'shop.2 10']);
    const starts = ['vm', OTHER.name, THIRD.name].map((name) => `start ${name}`);
    expect(marks.map(({ kind, instance }) => `${kind} ${instance}`)).toEqual(starts);
    expect(sent(own.recorder, 0, 'other')).toMatchObject({ rates: { over: [1] }, marks: [{ instance: OTHER.name }] });
    expect(own.recorder.read({ instance: 'nobody' })).toBeUndefined();
  });

  it('has the samples after those that are known, in parts; a sum ends where all have a sample that still send some', () => {
    const [own, other] = [recorded(), recorded()];
    for (let number = 0; number < 200; number += 1) {
      wait(10);
      own.recorder.sample();
      other.recorder.sample();
    }
    const first = sent(other.recorder);
    expect([first.times.length, first.times.at(-1)]).toEqual([120, timeAfter(1_200)]);
    own.recorder.take(OTHER, first);
    expect(own.read().times).toHaveLength(200);
    const second = sent(other.recorder, own.recorder.lastOf('other'));
    expect([second.times.length, second.times[0]]).toEqual([80, timeAfter(1_210)]);
    own.recorder.take(OTHER, second);
    own.sample();
    expect(own.read().times.at(-1)).toBe(timeAfter(2_000));
    for (let number = 0; number < 4; number += 1) own.sample();
    expect(own.read().times.at(-1)).toBe(timeAfter(2_050));
  });

  it('keeps of a wrong answer nothing but samples of the last hour, in its bounds', () => {
    const { recorder, read } = recorded();
    wait(7_200);
    const now = timeAfter(7_200);
    const { rates, latency, store } = sent(recorder);
    const wrong = { ...rates, over: [1, 2, 3, 4], calls: [5], within: Array<number>(9).fill(2 ** 53 - 1) };
    const times = [0, now - 7_000, now - 10, now + 3_600];
    const given = { ...{ interval: 1, instances: [], times, rates: wrong, latency, store, rules: [], marks: [] } };
    recorder.take(OTHER, readHistory(JSON.stringify(given)));
    const { times: kept, rates: of } = read();
    expect([kept, of.over, of.calls, of.within]).toEqual([[now - 10], [3], [null], [9e15]]);
    for (const [member, value] of Object.entries({ times: [-1], rates: {}, marks: [{ at: 1 }], rules: 'x' }))
      expect(() => readHistory(JSON.stringify({ ...given, [member]: value }))).toThrow(member);
    const many = readHistory(JSON.stringify({ ...given, times: Array<number>(500).fill(now) }));
    expect(many.times).toHaveLength(120);
  });

  it('ends with the part of an interval before the end of the process', () => {
    const { statistics, recorder, sample, read } = recorded();
    sample();
    statistics.rule('shop.user').overLimit += 30;
    wait(2);
    recorder.leave();
    const { times, rates, marks } = read();
    expect({ times, over: rates.over }).toEqual({ times: [timeAfter(10), timeAfter(20)], over: [0, 3] });
    expect(marks.at(-1)).toMatchObject({ at: timeAfter(12), kind: 'stop', text: 'weir 1.2.3 was stopped' });
  });

  it('is that of the 100 that had samples last, of samples of the last hour, in at most 2 MB', () => {
    const { recorder, read } = recorded();
    wait(7_200);
    const now = timeAfter(7_200);
    const [before, bytes] = [memory(), recorder.bytes];
    for (let number = 0; number < 110; number += 1) {
      const times = Array.from({ length: 400 }, (_, index) => now - 10 * (400 - index) + (number < 5 ? -100 : 0));
      const line = times.map((_, index) => index + number);
      const text = `${number}`.padEnd(200, 'x');
      const [rules, marks] = [9, 24].map((length) => Array.from({ length }, (_, index) => index));
      recorder.take({ id: `id ${number}`, name: text }, {
        ...{ interval: 10, instances: [], times, latency: { p50: line, p99: line } },
        rates: Object.fromEntries(RATES.map((name) => [name, line])),
        store: { requests: line, errors: line, latency: line },
        rules: rules!.map((rule) => ({ statisticsKey: text + rule, hits: line, over: line })),
        marks: marks!.map((mark) => ({ at: now - number - mark, kind: 'worker', text: text + mark })),
      } as unknown as History);
    }
    const { instances, times, marks } = read();
    expect([instances.length, times.length, marks.length]).toEqual([101, 359, 200]);
    expect(instances.map(({ id }) => id)).not.toContain('id 0');
    expect(recorder.bytes - bytes).toBeLessThan(2_000_000);
    expect(memory() - before).toBeLessThan(2_000_000);
  });
});

const RATES = ['within', 'near', 'over', 'shadow', 'calls', 'invalid', 'storeErrors', 'noMatch'];

describe('/api/history', () => {
  beforeEach(() => jest.useRealTimers());

  it('answers with the samples since a time, compressed for callers that accept it', async () => {
    const statistics = new Statistics(1_000);
    await using api = await ServedApi.start({ statistics });
    for (let number = 0; number < 60; number += 1) {
      statistics.rule(`shop.r${number}`).totalHits += 1;
      jest.spyOn(Date, 'now').mockReturnValueOnce(START + 10_000 * number);
      api.operator.sample();
    }
    const all = (await api.json('/api/history')) as History;
    expect([all.times.length, all.rules.length]).toEqual([60, 50]);
    const none = (await api.json(`/api/history?since=${all.times.at(-1)!}`)) as History;
    expect([none.times, none.rates.calls, none.rules[0]!.hits]).toEqual([[], [], []]);
    const headers = { 'Accept-Encoding': 'gzip' };
    const response = await new Promise<IncomingMessage>((resolve) => {
      get(`${api.server.url}/api/history`, { headers }, resolve);
    });
    expect(response.headers).toMatchObject({ 'content-encoding': 'gzip', vary: expect.stringContaining('Encoding') });
    expect(JSON.parse(gunzipSync(await buffer(response)).toString())).toEqual(all);
    const refused = await api.send('/api/history?since=yesterday');
    const detail = 'since must be a time in Unix seconds';
    expect([refused.status, await refused.json()]).toMatchObject([400, { detail }]);
  });
});
