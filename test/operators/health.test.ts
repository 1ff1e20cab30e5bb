import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { asyncScheduler } from 'rxjs';
import type { ServerOutcome } from '../../src/counting/batch';
import { type HealthOptions, HealthView, worstOf } from '../../src/operators/health';
import type { HealthPart, WorkerInfo } from '../../src/operators/live-answers';
import type { FailurePolicy } from '../../src/rules/rule-config';
import { buildRuleset } from '../../src/rules/ruleset';
import { Statistics } from '../../src/statistics/statistics';
import type { CurrentConfig } from '../../src/streams/config';
import { Trip } from '../../src/streams/deadline';
import type { ServerName } from '../../src/streams/server-report';
import type { ServerStates } from '../../src/streams/server-views';
import { LOADED_AT, always, configOf } from '../http/operators/served-api';
import { domainConfig, limit, rulesetOf } from '../support/data/rules';
import { serverStates } from '../support/data/server-states';

const SERVER = { store: 'main', server: '10.0.0.1:6379' };
const LINES = { begins: 'begins', ends: 'ends' };
const RULESET = buildRuleset([domainConfig('shop')]);

beforeEach(() => jest.useFakeTimers({ now: LOADED_AT + 300_000 }));
afterEach(() => jest.useRealTimers());

/** Time passes. */
function wait(seconds: number): void {
  jest.advanceTimersByTime(seconds * 1000);
}

/** A service with a server, and what is known of that. */
function viewed({ servers = opened(), ...given }: Partial<HealthOptions> & { readonly servers?: ServerStates } = {}) {
  const statistics = new Statistics(1_000);
  const view = new HealthView({
    readiness: { health: { healthy: true, unhealthy: [] }, checks: [] },
    config$: always(configOf(RULESET)),
    statistics,
    store: { isShared: true, policy: 'error' },
    servers,
    ...given,
  });
  const [server] = servers.states;
  function request(outcome: ServerOutcome, milliseconds = 1): void {
    server!.sent();
    server!.ended(outcome, { size: 1, milliseconds, reason: 'LOADING Redis is loading', trouble: 'failing' });
  }
  return { statistics, view, servers, server: server!, request };
}

/** Servers whose connections are watched, or not. */
function opened({ connections = 1, names = [SERVER] }: { connections?: number; names?: ServerName[] } = {}) {
  const servers = serverStates({ scheduler: asyncScheduler, failures: 2 });
  for (const name of names) {
    const state = servers.open({ name, lines: LINES, probe: () => undefined });
    if (connections > 0) state.connected(connections);
  }
  return servers;
}

function store(policy: FailurePolicy | null, isShared = true) {
  return { store: { isShared, policy } };
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
    const { view, request } = viewed();
    request('ok', 1);
    request('ok', 2);
    request('none', 50);
    const { servers, ...whole } = view.health.store;
    expect(shown(servers[0]!)).toBe('green: answers: 1.5 ms for a request on average');
    expect(servers).toMatchObject([
      { ...SERVER, condition: 'answering', isOpen: false, requests: 0.2, errors: 0, latency: 1.5 },
    ]);
    expect(shown(whole)).toBe('green: 10.0.0.1:6379: answers: 1.5 ms for a request on average');
    request('ok', 150);
    wait(5);
    expect(shown(view.health.store)).toBe('amber: 10.0.0.1:6379: slow for 4 s: 51 ms for a request on average');
  });

  it.each([
    ['error', 'red', 'calls that need it fail (policy error)'],
    ['allow', 'amber', 'its limits do not apply (policy allow)'],
    ['deny', 'amber', 'what it counts is denied (policy deny)'],
    ['local', 'amber', 'each instance counts by itself (policy local)'],
    [null, 'red', 'its counters count as 0, so that its limits do not apply'],
  ] as const)('that is silent is shown with what the policy %s makes of it: %s', (policy, state, text) => {
    const { view, server } = viewed(store(policy));
    server.trips.begin(new Trip());
    server.sent();
    wait(1.2);
    expect(view.health.store.policy).toBe(policy);
    expect(shown(view.health.store)).toBe(`${state}: 10.0.0.1:6379: silent for 0 s: ${text}`);
    wait(30);
    expect(shown(view.health.store)).toBe(`${state}: 10.0.0.1:6379: silent for 30 s: ${text}`);
    expect(view.health.store.servers).toMatchObject([{ condition: 'silent', isOpen: true }]);
    // A late reply makes a probe of it.
    server.heard();
    server.checked();
    expect(view.health.store.state).toBe('green');
  });

  it('that is silent is red where some rules cannot count by themselves, so that their calls fail', () => {
    const rateLimit = { ...limit(10, 'MINUTE'), algorithm: 'sliding_window' } as const;
    const ruleset = rulesetOf('shop', { key: 'user', rateLimit });
    expect(ruleset.notLocal.count).toBe(1);
    const { view, server } = viewed({ ...store('local'), config$: always(configOf(ruleset)) });
    server.connected(0, 'connect ECONNREFUSED');
    expect(shown(view.health.store)).toBe(
      'red: 10.0.0.1:6379: not connected for 0 s (connect ECONNREFUSED): each instance counts by ' +
        'itself (policy local), but calls for 1 rule fail',
    );
  });

  it('is amber while some of its requests fail, in trouble with the reason while many do, and green at once after that', () => {
    const { view, request, server } = viewed(store('allow'));
    wait(11);
    for (let requests = 0; requests < 9; requests += 1) request('ok');
    request('bad');
    expect(shown(view.health.store)).toBe('amber: 10.0.0.1:6379: 10 % of the requests fail');
    request('bad');
    expect(shown(view.health.store)).toBe(
      'amber: 10.0.0.1:6379: failing for 0 s (LOADING Redis is loading): its limits do not apply (policy allow)',
    );
    wait(0.1);
    server.checked();
    request('ok');
    wait(1);
    expect(shown(view.health.store)).toBe('green: 10.0.0.1:6379: answers: 1 ms for a request on average');
    wait(12);
    expect(shown(view.health.store)).toBe('green: 10.0.0.1:6379: connected; no request in the last 10 s');
  });

  it('is red while its few requests all fail', () => {
    const { view, request } = viewed();
    wait(11);
    request('bad');
    expect(shown(view.health.store)).toContain('red: 10.0.0.1:6379: all requests fail: calls that need it fail');
  });

  it('without connections that are watched is not checked without requests, and never green then', () => {
    const { view, request } = viewed({ ...store(null), servers: opened({ connections: 0 }) });
    expect(shown(view.health.store)).toBe('unknown: 10.0.0.1:6379: not checked: no call has needed it yet');
    request('ok');
    expect(view.health.store.state).toBe('green');
    wait(12);
    expect(shown(view.health.store)).toBe('unknown: 10.0.0.1:6379: not checked: no request in the last 10 s');
  });

  it('is one of 64 at most, of which the worst are the first', () => {
    const names = Array.from({ length: 300 }, (_, index) => ({ ...SERVER, server: `node-${index}` }));
    const servers = opened({ names });
    servers.states[200]!.connected(0);
    const { servers: listed, ...whole } = viewed({ servers }).view.health.store;
    expect([listed.length, listed[0]!.server]).toEqual([64, 'node-200']);
    expect(shown(whole)).toContain('red: node-200: not connected for 0 s: ');
    servers.states[100]!.connected(0);
    expect(viewed({ servers }).view.health.store.text).toMatch(/^node-100: .*; and 1 other like it$/);
  });
});

describe('a counter store none of whose servers is known', () => {
  function viewUnknown(isShared: boolean, failure?: string) {
    const readiness = { health: { healthy: true, unhealthy: [] }, checks: [{ name: 'store' as const, failure }] };
    return viewed({ servers: opened({ names: [] }), readiness, ...store('error', isShared) }).view.health.store;
  }

  it.each([
    [false, undefined, 'green: counters in the memory of this instance'],
    [true, undefined, 'red: its servers are not known yet: calls that need it fail (policy error)'],
    [true, 'waiting for the counter store', 'red: waiting for the counter store'],
  ] as const)('shared: %s, with the failure %s, is shown as %s', (isShared, failure, text) => {
    expect(shown(viewUnknown(isShared, failure))).toBe(text);
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

it('each part has the time at which its state began, which stays while the state does', () => {
  const readiness = { health: { healthy: true, unhealthy: [] as string[] }, checks: [] as unknown[] };
  const { view, server } = viewed({ readiness: readiness as never });
  function since(): readonly (string | null)[] {
    const { health } = view;
    return [health.store.since, health.rules.since, health.process.since];
  }
  const [start, connected] = [new Date().toISOString(), new Date().toISOString()];
  expect(since()).toEqual([connected, start, start]);
  wait(60);
  server.connected(0, 'gone');
  wait(3);
  readiness.checks = [{ name: 'draining', failure: 'it drains' }];
  const began = new Date(Date.now() - 3_000).toISOString();
  expect(view.health.store.state).toBe('red');
  expect(since()).toEqual([began, start, new Date().toISOString()]);
  const [, , drains] = since();
  wait(10);
  expect(since()).toEqual([began, start, drains]);
});
