import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type HealthOptions, HealthView, worstOf } from '../../src/operators/health';
import type { HealthPart, WorkerInfo } from '../../src/operators/live-answers';
import type { FailurePolicy } from '../../src/rules/rule-config';
import { buildRuleset } from '../../src/rules/ruleset';
import { Statistics } from '../../src/statistics/statistics';
import type { CurrentConfig } from '../../src/streams/config';
import { breakerGauges, requestCounters } from '../../src/streams/server-views';
import { LOADED_AT, always, configOf } from '../http/operators/served-api';
import { domainConfig } from '../support/data/rules';

const SERVER = { store: 'main', server: '10.0.0.1:6379' };
const RULESET = buildRuleset([domainConfig('shop')]);

let now: jest.SpyInstance<number>;
beforeEach(() => {
  now = jest.spyOn(performance, 'now').mockReturnValue(0);
  jest.spyOn(Date, 'now').mockReturnValue(LOADED_AT + 300_000);
});
afterEach(() => jest.restoreAllMocks());

/** A service that nothing is known of, and the statistics that it is seen by. */
function viewed(given: Partial<HealthOptions> = {}) {
  const statistics = new Statistics(1_000);
  const view = new HealthView({
    readiness: { health: { healthy: true, unhealthy: [] }, checks: [] },
    config$: always(configOf(RULESET)),
    statistics,
    store: { kind: 'kvstore', policy: 'error', isChecked: false },
    ...given,
  });
  let connections = 1;
  statistics.gauge('ratelimit.redis_pool.cx_active', () => connections);
  return {
    statistics,
    view,
    disconnect: () => (connections = 0),
    count: requestCounters(statistics)(SERVER)!,
    open: breakerGauges(statistics)(SERVER),
  };
}

function store(policy: FailurePolicy | null, kind: 'kvstore' | 'plaincache' = 'kvstore', isChecked = false) {
  return { store: { kind, policy, isChecked } };
}

/** Each part that a test has seen. */
const seen: HealthPart[] = [];
afterAll(() => {
  const todos = seen.flatMap(({ state, todo }) => (state === 'green' ? [] : [todo]));
  expect(todos.length).toBeGreaterThan(10);
  for (const todo of todos) expect(todo).not.toBeNull();
});

/** A part as one text; what is to be done leads to a section of the documentation. */
function shown(part: HealthPart): string {
  seen.push(part);
  if (part.todo !== null) {
    const [path = '', anchor = ''] = part.todo.link.split('#');
    const page = readFileSync(join(__dirname, '../..', path), 'utf8');
    const anchors = Array.from(page.matchAll(/^#+ (.+)$/gm), ([, title]) => title!.toLowerCase().replaceAll(' ', '-'));
    expect(anchors).toContain(anchor);
  }
  return `${part.state}: ${part.text}`;
}

describe('a server of the counter store', () => {
  it('is green with its mean time while its requests are answered, and amber when they take long', () => {
    const { view, count } = viewed();
    count(1, 'ok');
    count(2, 'ok');
    count(50, 'none');
    now.mockReturnValue(2_000);
    const { servers, ...whole } = view.health.store;
    expect(shown(servers[0]!)).toBe('green: answers: 1.5 ms for a request on average');
    expect(servers).toMatchObject([{ ...SERVER, isOpen: false, requests: 1, errors: 0, latency: 1.5 }]);
    expect(shown(whole)).toBe('green: 10.0.0.1:6379: answers: 1.5 ms for a request on average');
    count(150, 'ok');
    expect(shown(view.health.store)).toBe('amber: 10.0.0.1:6379: slow: 51 ms for a request on average');
  });

  it.each([
    ['error', 'red', 'calls that need it fail (policy error)'],
    ['allow', 'amber', 'its limits do not apply (policy allow)'],
    ['deny', 'amber', 'what it counts is denied (policy deny)'],
    ['local', 'amber', 'each instance counts by itself (policy local)'],
    [null, 'red', 'its counters count as 0, so that its limits do not apply'],
  ] as const)('that does not answer is shown with what the policy %s makes of it: %s', (policy, state, text) => {
    const { view, open, count } = viewed(store(policy));
    count(1, 'ok');
    open(true);
    expect(view.health.store.policy).toBe(policy);
    expect(shown(view.health.store)).toBe(`${state}: 10.0.0.1:6379: it does not answer: ${text}`);
    open(false);
    expect(view.health.store.state).toBe('green');
  });

  it('is amber while some of its requests fail, and as one that does not answer while all do', () => {
    const { view, count } = viewed(store('allow'));
    count(1, 'bad');
    expect(shown(view.health.store)).toContain('amber: 10.0.0.1:6379: all requests fail: its limits do not apply');
    for (let request = 0; request < 9; request += 1) count(1, 'ok');
    expect(shown(view.health.store)).toBe('amber: 10.0.0.1:6379: 10 % of the requests fail');
    // What happened before the last sample but one is over.
    view.sample();
    expect(view.health.store.state).toBe('amber');
    view.sample();
    expect(shown(view.health.store)).toBe('green: 10.0.0.1:6379: connected; no request in the last 10 s');
  });

  it('without requests is not checked if no connection and no setting shows how it is, and never green then', () => {
    for (const [options, text] of [
      [store(null, 'plaincache'), 'unknown: 10.0.0.1:6379: not checked: no request in the last 10 s'],
      [store(null, 'plaincache', true), 'green: 10.0.0.1:6379: connected; no request in the last 10 s'],
      [store('error'), 'green: 10.0.0.1:6379: connected; no request in the last 10 s'],
    ] as const) {
      expect(shown(viewed(options).view.health.store)).toBe(text);
    }
    const { view, disconnect, statistics } = viewed(store('local'));
    requestCounters(statistics)({ ...SERVER, server: '10.0.0.2:6379' });
    // Connections are not known by server.
    const texts = view.health.store.servers.map(({ text }) => text);
    expect(texts).toEqual(Array(2).fill('not checked: no request in the last 10 s'));
    expect(shown(view.health.store)).toBe(
      'unknown: 10.0.0.1:6379: not checked: no request in the last 10 s; and 1 other like it',
    );
    disconnect();
    expect(shown(view.health.store)).toContain('amber: 10.0.0.1:6379: no connection: each instance counts by itself');
  });

  it('is one of 64 at most, of which the worst are the first', () => {
    const { view, statistics } = viewed();
    const counters = requestCounters(statistics);
    const counts = Array.from({ length: 300 }, (_, index) => counters({ ...SERVER, server: `node-${index}` }));
    // The servers of a cluster can be others each time, and statistics stay.
    expect(counts.filter((count) => count !== undefined)).toHaveLength(256);
    counts[200]!(1, 'bad');
    const { servers } = view.health.store;
    expect([servers.length, servers[0]!.server]).toEqual([64, 'node-200']);
  });
});

describe('a counter store that no call has needed', () => {
  function viewUnused(kind: 'memory' | 'kvstore' | 'plaincache', connections: number, failure?: string) {
    const statistics = new Statistics(1);
    statistics.gauge('ratelimit.redis_pool.cx_active', () => connections);
    const readiness = { health: { healthy: true, unhealthy: [] }, checks: [{ name: 'store' as const, failure }] };
    return viewed({ statistics, readiness, store: { kind, policy: 'error', isChecked: false } }).view.health.store;
  }

  it.each([
    ['memory', 0, undefined, 'green: counters in the memory of this instance'],
    ['kvstore', 1, undefined, 'green: connected; no call has needed it yet'],
    ['kvstore', 0, undefined, 'red: no connection: calls that need it fail (policy error)'],
    ['kvstore', 0, 'waiting for the counter store', 'red: waiting for the counter store'],
    ['plaincache', 0, undefined, 'unknown: not checked: no call has needed it yet'],
  ] as const)('%s with %i connections and the failure %s is shown as %s', (kind, connections, failure, text) => {
    expect(shown(viewUnused(kind, connections, failure))).toBe(text);
  });
});

describe('the rules', () => {
  function rulesOf(config: CurrentConfig, isStreaming = 1) {
    const { view, statistics } = viewed({ config$: always(config) });
    statistics.gauge('ratelimit.xds.connected', () => isStreaming);
    return view.health.rules;
  }
  const rejected = { reason: 'wrong', at: LOADED_AT + 180_000 };

  it('are shown with their version and age, and what keeps newer ones from being active', () => {
    const config = configOf(RULESET);
    expect(rulesOf(config)).toMatchObject({ version: '7', age: 300, isRejected: false });
    expect(shown(rulesOf(config))).toBe('green: 0 rules, loaded 5 min ago');
    expect(shown(rulesOf({ ...config, rejected }))).toBe(
      'amber: newer rules were rejected 2 min ago; the active ones: 0 rules, loaded 5 min ago',
    );
    expect(shown(rulesOf(config, 0))).toContain('amber: no stream to the management server');
  });

  it('are red while none are active', () => {
    expect(shown(rulesOf({ loaded: undefined, rejected: undefined }))).toBe('red: no rules are active yet');
    const none = rulesOf({ loaded: undefined, rejected });
    expect(shown(none)).toBe('red: no rules are active: those that were loaded were rejected');
    expect(none).toMatchObject({ version: null, age: null, isRejected: true });
  });
});

describe('the process', () => {
  function processOf(name: 'draining' | 'listeners', failure: string | undefined, workers: Partial<WorkerInfo>[] = []) {
    const readiness = { health: { healthy: false, unhealthy: ['waiting for x'] }, checks: [{ name, failure }] };
    return viewed({ readiness, workers: () => workers as WorkerInfo[] }).view.health.process;
  }

  it('is amber while it starts and red while it drains', () => {
    expect(shown(processOf('listeners', 'not open yet'))).toBe('amber: starting: waiting for x');
    expect(shown(processOf('draining', 'a signal'))).toBe('red: draining: the process ends');
    expect(processOf('draining', 'a signal').phase).toBe('draining');
    expect(shown(processOf('listeners', undefined))).toBe('green: serving');
  });

  it('is green only with all of its workers', () => {
    const ready = { isServing: true, isResponsive: true };
    expect(shown(processOf('listeners', undefined, [ready, ready]))).toBe('green: serving with 2 workers');
    const silent = { ...ready, isResponsive: false };
    expect(shown(processOf('listeners', undefined, [ready, silent]))).toBe('amber: 1 of 2 workers ready');
    expect(shown(processOf('listeners', undefined, [silent]))).toBe('red: 0 of 1 worker ready');
  });
});

it('the worst of several states is that of all, and one that is not known is no state', () => {
  expect(worstOf(['green', 'unknown'])).toBe('green');
  expect(worstOf(['unknown', 'unknown'])).toBe('unknown');
  expect(worstOf(['green', 'amber', 'unknown'])).toBe('amber');
  expect(worstOf(['amber', 'red', 'green'])).toBe('red');
});
