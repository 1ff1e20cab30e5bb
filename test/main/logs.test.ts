import { Socket } from 'node:net';
import { Subject, VirtualTimeScheduler } from 'rxjs';
import type { HttpRejection } from '../../src/http/limits';
import { DEFAULT_OPTIONS } from '../../src/limiter/options';
import { Limiter } from '../../src/limiter/limiter';
import { RecentConfigurations } from '../../src/operators/configurations';
import { Rejections } from '../../src/main/rejections';
import type { Ruleset } from '../../src/rules/ruleset';
import { debugLines } from '../../src/sinks/logs/debug-lines';
import { MemoryCounters } from '../../src/sinks/counters/memory/memory-counters';
import { recordLoads } from '../../src/sinks/logs/rule-log';
import { Statistics } from '../../src/statistics/statistics';
import { decisions } from '../../src/streams/decisions';
import type { RuleEvent, RulesLoaded, RulesRejected } from '../../src/streams/ports/rule-source';
import { RecordedLog } from '../support/data/recorded-log';
import { request } from '../support/data/requests';
import { limit, rulesetOf } from '../support/data/rules';
import { until } from '../support/waiting/until';

const ruleset = rulesetOf(
  'shop',
  { key: 'user', rateLimit: limit(2, 'MINUTE') },
  { key: 'free', rateLimit: limit(0, 'MINUTE', { unlimited: true }) },
);

/** Decides the requests one after the other at the Unix time 0, and returns the fields of the lines. */
function logged(...requests: readonly Parameters<typeof request>[]) {
  const log = new RecordedLog(true);
  const scheduler = new VirtualTimeScheduler();
  const statistics = new Statistics(10);
  const counters = new MemoryCounters({ maxKeys: 10, now: () => 0 });
  const path = decisions({
    limiter: new Limiter({ ...DEFAULT_OPTIONS, localCacheBytes: 10_000 }, statistics),
    ruleset: () => ruleset,
    counters,
    statistics,
    scheduler,
    decisionLog: debugLines(log),
    onInternalError: (error) => {
      throw error;
    },
  });
  const flow = path.windows$.subscribe();
  for (const each of requests) {
    path.decide(request(...each), { verdict: () => {}, error: () => {} });
    scheduler.flush();
  }
  flow.unsubscribe();
  void counters.close();
  return log.lines.map(({ level, message, fields }) => ({ level, message, ...fields }));
}

describe('the debug log of decisions', () => {
  const DECISION = { level: 'debug', message: 'decision', domain: 'shop' };
  const ANNA = 'user=anna: rule shop.user, key shop_user_anna_0';

  it('has a line per request, with rule, key, count and answer of each descriptor, or why it was rejected', () => {
    const lines = logged(
      ['shop', ['user=anna', 'free=x', 'other=y']],
      ['shop', ['user=anna'], 2],
      ['shop', ['user=anna']],
      ['', ['user=anna']],
    );
    const first = `${ANNA}, count 1 of 2, OK; free=x: rule shop.free, unlimited, OK; other=y: no rule matches, OK`;
    const rejected = { level: 'debug', message: 'request rejected', domain: '', descriptors: 'user=anna' };
    expect(lines).toEqual([
      { ...DECISION, descriptors: first, answer: 'OK' },
      { ...DECISION, descriptors: `${ANNA}, count 3 of 2, OVER_LIMIT`, answer: 'OVER_LIMIT' },
      { ...DECISION, descriptors: `${ANNA}, over in the local cache, OVER_LIMIT`, answer: 'OVER_LIMIT' },
      { ...rejected, code: 'invalid_request', reason: 'rate limit domain must not be empty' },
    ]);
  });

  it('shortens long texts and lists of callers', () => {
    const long = 'x'.repeat(80_000);
    const many = Array.from({ length: 1000 }, (_, index) => `user=${index}`);
    const entries = Array.from({ length: 20 }, () => `${'k'.repeat(200)}=${'v'.repeat(200)}`).join(',');
    const lines = logged(
      ['shop', [`user=${long}`]],
      [long, [`${long}=${long}`]],
      ['', [`user=${long}`, ...many]],
      ['shop', [Array.from({ length: 100 }, () => 'free=x').join(',')]],
      ['shop', Array.from({ length: 20 }, () => entries)],
    );
    for (const line of lines.slice(0, 4)) expect(JSON.stringify(line).length).toBeLessThan(2_000);
    expect(JSON.stringify(lines[4]).length).toBeLessThan(20_000);
    const key = `key shop_user_${'x'.repeat(246)}…`;
    expect(lines).toMatchObject([
      { descriptors: `user=${'x'.repeat(256)}…: rule shop.user, ${key}, count 1 of 2, OK` },
      {},
      { descriptors: expect.stringMatching(/user=18; 981 more$/) },
      { descriptors: expect.stringMatching(/free=x,80 more: no rule matches, OK$/) },
      { descriptors: expect.stringMatching(/no rule matches, OK; 18 more$/) },
    ]);
  });

  it('is empty, and costs nothing, at a higher level', () => {
    expect(debugLines(new RecordedLog(false))).toBeUndefined();
  });
});

describe('the log of loads', () => {
  const REJECTED: RulesRejected = { kind: 'rejected', reason: 'shop.yaml:1:1: wrong' };

  function loaded(rules: Ruleset): RulesLoaded {
    return { kind: 'loaded', ruleset: rules, origin: { source: 'files', version: '1' }, warnings: [] };
  }

  function rulesWith(...keys: readonly string[]) {
    return rulesetOf('shop', ...keys.map((key) => ({ key, rateLimit: limit(1, 'MINUTE') })));
  }

  function recorded() {
    const log = new RecordedLog();
    const events$ = new Subject<RuleEvent>();
    const configurations = new RecentConfigurations();
    const records = recordLoads({ statistics: new Statistics(10), log, settings: { configType: 'FILE' } }, (...load) =>
      configurations.compared(...load),
    );
    return { log, configurations, events$, subscription: events$.pipe(records).subscribe() };
  }

  /**
   * The levels, messages and changes of loads, or of rejections, of which the next one waits for the line of the last.
   */
  async function linesOf(...events: readonly (Ruleset | RulesRejected)[]) {
    const { log, events$, subscription } = recorded();
    for (const event of events) {
      const before = log.lines.length;
      events$.next('domains' in event ? loaded(event) : event);
      if ('domains' in event) await until('its line', () => log.messages.slice(before).includes('rules loaded'));
    }
    subscription.unsubscribe();
    return log.lines.map(({ level, message, fields }) => [level, message, fields['changes']]);
  }

  it('says what each later load has changed, at level info if that is nothing', async () => {
    const [long, four] = ['x'.repeat(500), ['a', 'b', 'c', 'd']];
    const rules = [rulesWith('user', 'plan'), rulesWith('user', ...four), rulesWith('user', ...four, long)];
    const [, ...lines] = await linesOf(...rules, rulesetOf('edge'), rulesetOf('edge'));
    expect(lines.map(([level, , changes]) => `${String(level)}: ${String(changes)}`)).toEqual([
      'notice: 4 rules added (shop.a, shop.b, shop.c, …); 1 rule removed (shop.plan)',
      `notice: 1 rule added (shop.${long.slice(0, 55)}…)`,
      'notice: 1 domain added (edge); 1 domain removed (shop); 6 rules removed (shop.user, shop.a, shop.b, …)',
      'info: none',
    ]);
  });

  it('is kept for operators: the last 50 loads, with the first five names of each list, none longer than 257', async () => {
    const { log, configurations, events$, subscription } = recorded();
    const long = 'x'.repeat(5_000);
    for (let load = 0; load < 52; load += 1) {
      events$.next(loaded(rulesWith(...(load % 2 === 0 ? ['a'] : ['b', long, 'd', 'e', 'f', 'g']))));
      await until('its line', () => log.messages.length === load + 1);
      if (load === 0) expect(configurations.loads).toMatchObject([{ rules: 1, version: '1', changes: null }]);
    }
    subscription.unsubscribe();
    const { loads } = configurations;
    expect(loads).toHaveLength(50);
    const none = { count: 0, names: [] };
    expect(loads.at(-1)!.changes).toEqual({
      ...{
        domainsAdded: none,
        domainsRemoved: none,
        rulesChanged: none,
        rulesRemoved: { count: 1, names: ['shop.a'] },
      },
      rulesAdded: { count: 6, names: ['shop.b', `shop.${long.slice(0, 251)}…`, 'shop.d', 'shop.e', 'shop.f'] },
    });
    expect(JSON.stringify(loads).length).toBeLessThan(64 * 1024);
  });

  it('has one line for loads that follow each other faster than they are compared', async () => {
    const { log, events$, subscription } = recorded();
    const large = rulesWith(...Array.from({ length: 2000 }, (_, index) => `key${index}`));
    events$.next(loaded(rulesWith('a')));
    await until('the first line', () => log.lines.length === 1);
    for (const rules of [large, rulesWith('b'), rulesWith('c')]) events$.next(loaded(rules));
    await until('the last line', () => log.lines.length === 3);
    subscription.unsubscribe();
    const first = { source: 'files', version: '1', domains: 1, rules: 1, changes: undefined };
    expect(log.lines[0]).toEqual({ level: 'notice', message: 'rules loaded', fields: first });
    expect(log.lines.map(({ fields }) => fields['changes'])).toEqual([
      undefined,
      '2000 rules added (shop.key0, shop.key1, shop.key2, …); 1 rule removed (shop.a)',
      '1 rule added (shop.c); 2000 rules removed (shop.key0, shop.key1, shop.key2, …)',
    ]);
  });

  it('has a notice when a rejection has ended, and says whether rules are active meanwhile', async () => {
    const repeated: RulesRejected = { ...REJECTED, isRepeated: true };
    const rules = rulesWith('user');
    const lines = await linesOf(REJECTED, rules, REJECTED, repeated, rules);
    expect(lines.map((line) => line.join(' ').trim())).toEqual([
      'error rules rejected; none are active: shop.yaml:1:1: wrong',
      'notice the rules are valid again',
      'notice rules loaded',
      'error new rules rejected; keeping the active rules: shop.yaml:1:1: wrong',
      'notice the rules are valid again',
      'info rules loaded none',
    ]);
  });
});

test('rejections of the HTTP listeners are counted, and logged at level debug, or when they begin and end if they last', () => {
  const BEGINS = 'an HTTP listener has too many connections; it closes idle ones for new ones, or else the new ones';
  const ENDS = 'an HTTP listener no longer closes connections for new ones';
  const MEMORY =
    'unfinished bodies of HTTP requests use all of the memory for them; the largest and oldest are rejected';
  const statistics = new Statistics(10);
  const log = new RecordedLog();
  const time = new VirtualTimeScheduler();
  const rejections = new Rejections({ settings: { grpcMaxConnections: 10 }, statistics, log });
  rejections.logConditions(time).subscribe();
  function reject(kind: HttpRejection, listener = 'HTTP') {
    rejections.http(listener)(kind, new Socket(), 'reason');
  }
  function linesAt(level: string) {
    return log.lines.filter((line) => line.level === level).map(({ message }) => message);
  }

  for (const kind of ['malformed', 'malformed', 'data_dribble'] as const) reject(kind);
  expect(linesAt('debug')).toEqual(Array(3).fill('HTTP connection or request rejected'));
  for (let count = 0; count < 1_000; count += 1) reject('connections');
  reject('request_memory');
  reject('connections', 'debug');
  expect(linesAt('warn')).toEqual([BEGINS, MEMORY, BEGINS]);
  time.flush();
  expect(linesAt('notice').filter((message) => message === ENDS)).toHaveLength(2);
  reject('connections');
  expect(linesAt('warn').at(-1)).toBe(BEGINS);
  const names = ['malformed', 'data_dribble', 'connections', 'request_memory'];
  const counts = names.map((name) => statistics.counter(`ratelimit_server.http.${name}`).value);
  expect(counts).toEqual([2, 1, 1_002, 1]);
});
