import { NEVER, Observable, Subject, ignoreElements, map, mergeMap, of, share } from 'rxjs';
import type { TestScheduler } from 'rxjs/testing';
import type { DecisionError } from '../../src/counting/decision-error';
import { DEFAULT_OPTIONS } from '../../src/limiter/options';
import { Limiter } from '../../src/limiter/limiter';
import { buildRuleset } from '../../src/rules/ruleset';
import { Statistics } from '../../src/statistics/statistics';
import { latest } from '../../src/streams/latest';
import type { CounterLane } from '../../src/streams/ports/counters';
import type { RuleEvent } from '../../src/streams/ports/rule-source';
import { type Awaited, type Health, Readiness, STARTING } from '../../src/streams/readiness';
import { type Service, type ServiceOptions, type ServiceSources, service } from '../../src/streams/service';
import { request } from '../../test/support/data/requests';
import { limit, rulesetOf } from '../../test/support/data/rules';
import { marbles } from '../support/marbles';
import { ScriptedLane, freshCounts, storeOf } from '../support/scripted-lanes';

function loaded(version: string, ruleset = rulesetOf('shop')) {
  return { kind: 'loaded', ruleset, origin: { source: 'xDS server xds:1', version }, warnings: [] } as const;
}

const [A, B] = [10, 20].map((requests) => rulesetOf('shop', { key: 'k', rateLimit: limit(requests, 'MINUTE') }));
/**
 * `1` rules of a domain, `0` rules of none, `x` rejected rules, `r` and `y` the same again; `a` and `b` limit the key
 * `k` to 10 and to 20 per minute.
 */
const RULES: Record<string, RuleEvent> = {
  0: loaded('0', buildRuleset([])),
  1: loaded('1'),
  a: loaded('a', A),
  r: { ...loaded('a', A), isRepeated: true },
  b: loaded('b', B),
  x: { kind: 'rejected', reason: 'version x: bad' },
  y: { kind: 'rejected', reason: 'version x: bad', isRepeated: true },
};
const PHASES = { s: 'starting', o: 'serving', d: 'draining' };
const CONNECTED = { t: true, f: false };
function unhealthy(...names: readonly string[]): Health {
  return { healthy: false, unhealthy: names };
}
const HEALTHY: Health = { healthy: true, unhealthy: [] };
const HEALTH = {
  h: HEALTHY,
  c: unhealthy('configuration'),
  s: unhealthy('counter store'),
  b: unhealthy('counter store', 'configuration'),
  t: unhealthy('termination'),
};

type Given = Partial<ServiceSources & ServiceOptions> & { readonly lane?: CounterLane };

/** The wiring of the process, with sources and a store that the scenario plays. */
function serviceWith(scheduler: TestScheduler, { lane, startsWithoutRules, needsDomain, ...sources }: Given) {
  const statistics = new Statistics(10);
  const { termination$ = new Subject() } = sources;
  return service(
    {
      rules$: new Subject<RuleEvent>(),
      storeConnected$: of(true),
      storeReady$: of(true),
      ...sources,
      termination$: termination$.pipe(share()),
    },
    {
      limiter: new Limiter(DEFAULT_OPTIONS, statistics),
      counters: storeOf(() => lane ?? new ScriptedLane((batch) => of(freshCounts(batch)))),
      statistics,
      scheduler,
      onInternalError: (error) => {
        throw error;
      },
    },
    { startsWithoutRules: startsWithoutRules ?? false, needsDomain: needsDomain ?? false },
  );
}

describe('the service opens its listeners', () => {
  it.each<[string, boolean, string, string, string]>([
    ['with the first rules', false, '                                ----1--1', '-------', 's---o---'],
    ['not with rejected rules, which do not end it', false, '        -x--x-1-', '-------', 's-----o-'],
    ['never when a termination precedes the first rules', false, '   --------', '-----t-', 's----d--'],
    ['at once with FORCE_START_WITHOUT_INITIAL_CONFIG', true, '      ----1---', '-------', '(so)----'],
    ['at once with that setting, while rules are rejected', true, '  x---x---', '-------', '(so)----'],
    ['and drains at a termination without any rules', true, '        --------', '-----tt', '(so)-d--'],
  ])('%s', (_, startsWithoutRules, rules, termination, expected) => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const rules$ = cold(rules.trim(), RULES);
      const termination$ = hot(termination);
      const { config$, readiness } = serviceWith(scheduler, { rules$, termination$, startsWithoutRules });
      const completes = termination.includes('t') ? expected.replace('d', '(d|)') : expected;
      expectObservable(config$.pipe(ignoreElements()), '^-------!').toBe('--------');
      expectObservable(readiness.phase$, ' ^-------!').toBe(completes, PHASES);
      expectSubscriptions(rules$.subscriptions).toBe('^-------!');
    });
  });

  it.each([
    ['--1--1---', '-----(r|)', 'a-s--(n|)', 's----o---', '^-!', '^----!'],
    ['-----1---', '--r------', 'a-r--(n|)', 's----o---', '^----!', '^-!'],
    ['--1------', '-----#   ', 'a-s--|   ', 's----#   ', '^-!', '^----!'],
    ['---------', '---------', 'a--------', 's--------', '^--------!', '^--------!'],
  ])(
    'when the rules are loaded, %s, and the store has been reached, %s',
    (rules, store, list, phases, untilRules, untilStore) => {
      marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
        const rules$ = cold(rules.trim(), RULES);
        const storeReady$ = cold(store.trim());
        const { awaited$, phase$ } = serviceWith(scheduler, { rules$, storeReady$ }).readiness;
        const LISTS = { a: ['rules', 'counter store'], r: ['rules'], s: ['counter store'], n: [] };
        expectObservable(awaited$, '^--------!').toBe(list.trim(), LISTS);
        expectObservable(phase$, '  ^--------!').toBe(phases.trim(), PHASES);
        expectSubscriptions(rules$.subscriptions).toBe(untilRules);
        expectSubscriptions(storeReady$.subscriptions).toBe(untilStore);
      });
    },
  );
});

it('the active rules stay while new ones are rejected, with the rejection until the next good ones; repeated events change nothing', () => {
  marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
    const rules$ = cold(' x----a-r-x-y-b-', RULES);
    const expected = '    (nx)-a---y---b-';
    const { config$ } = serviceWith(scheduler, { rules$ });
    const origin = { source: 'xDS server xds:1' };
    const atA = { ruleset: A, origin: { ...origin, version: 'a' }, at: 5 };
    const atB = { ruleset: B, origin: { ...origin, version: 'b' }, at: 13 };
    const reason = 'version x: bad';
    expectObservable(config$, '^--------------!').toBe(expected, {
      n: { loaded: undefined, rejected: undefined },
      x: { loaded: undefined, rejected: { reason, at: 0 } },
      a: { loaded: atA, rejected: undefined },
      y: { loaded: atA, rejected: { reason, at: 9 } },
      b: { loaded: atB, rejected: undefined },
    });
    expectSubscriptions(rules$.subscriptions).toBe('^--------------!');
  });
});

describe('the health of the service', () => {
  it.each<[string, boolean, string, string, string, string]>([
    ['is good from the first rules with a domain on', true, '---1--1', 't------', '-------', 'c--h---'],
    ['does not change with rejected rules', true, '          -x-1-x-', 't------', '-------', 'c--h---'],
    ['names each component that is bad', true, '             ---1--0', 'f-t--f-', '-------', 'b-ch-sb'],
    ['does not need rules by default', false, '              -------', 't------', '-------', 'h------'],
    ['follows the connection to the store', false, '         -------', 'f-tt-f-', '-------', 's-h--s-'],
    ['is bad for good from a termination on', false, '       -------', 't------', '---t--t', 'h--t---'],
    ['is not known before the store reports', false, '       -------', '--t----', '-------', '--h----'],
  ])('%s', (_, needsDomain, rules, store, termination, expected) => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const rules$ = cold(rules.trim(), RULES);
      const storeConnected$ = cold(store, CONNECTED);
      const sources = { rules$, storeConnected$, termination$: hot(termination) };
      const { health$ } = serviceWith(scheduler, { ...sources, needsDomain }).readiness;
      const before = health$.value;
      expectObservable(health$, '-------!').toBe(expected, HEALTH);
      expectSubscriptions(rules$.subscriptions).toBe(needsDomain ? '^------!' : []);
      expectSubscriptions(storeConnected$.subscriptions).toBe('^------!');
      flush();
      const last = expected.replaceAll('-', '').at(-1) as keyof typeof HEALTH;
      expect([before, health$.value]).toEqual([STARTING, HEALTH[last]]);
    });
  });

  const ALL = ['configuration', 'store', 'draining'];
  function containing(text: string) {
    return expect.stringContaining(text) as string;
  }
  const UNREPORTED = Object.fromEntries(ALL.map((name) => [name, 'not reported yet']));
  const WAITING = { configuration: 'waiting for the first valid rules', store: 'waiting for the counter store' };
  const RULES_AND_STORE = { awaited: ['rules', 'counter store'], hasWorkers: false } as const;
  it.each<
    [string, Health, { readonly awaited?: readonly Awaited[]; readonly hasWorkers: boolean }, Record<string, string>]
  >([
    ['good', HEALTHY, { hasWorkers: true }, {}],
    ['bad', HEALTH.c, { hasWorkers: true }, { configuration: 'no domain in the active rules' }],
    ['bad', HEALTH.s, { hasWorkers: true }, { store: 'no connection to the counter store' }],
    ['bad', unhealthy('workers'), { hasWorkers: true }, { workers: 'no worker is ready' }],
    ['bad', HEALTH.t, { hasWorkers: false }, { draining: 'the process has received a termination signal' }],
    ['bad while something is awaited', HEALTH.s, RULES_AND_STORE, WAITING],
    ['good', HEALTHY, { awaited: ['workers'], hasWorkers: true }, { workers: 'waiting for the workers' }],
    ['not known', STARTING, { hasWorkers: false }, UNREPORTED],
  ])('that is %s, %j with %j, fails the checks %j', (_, health, { awaited = [], hasWorkers }, failures) => {
    const readiness = new Readiness({
      health$: latest(NEVER, health),
      awaited$: latest(NEVER, awaited),
      termination$: NEVER,
      hasWorkers,
    });
    const missing = awaited.length === 0 ? ['opening the listeners'] : awaited;
    expect(readiness.health).toEqual({ healthy: false, unhealthy: [...health.unhealthy, ...missing.map(containing)] });
    if (awaited.length === 0) readiness.opened();
    if (readiness.hasOpened) expect(readiness.health).toEqual(health);
    const all = readiness.checks;
    const names = hasWorkers ? ['configuration', 'store', 'workers', 'draining'] : ALL;
    expect(all.map(({ name }) => name)).toEqual([...names, 'listeners']);
    const failed = all.filter(({ failure }) => failure !== undefined).map(({ name, failure }) => [name, failure]);
    const expected = readiness.hasOpened ? failures : { ...failures, listeners: 'not open yet' };
    expect(Object.fromEntries(failed)).toEqual(expected);
  });
});

describe('the decisions of the service', () => {
  /** What is left of the limit for each request, or the code of its error. */
  function outcomes({ decide }: Service, requests$: Observable<string>): Observable<string> {
    return requests$.pipe(
      mergeMap(
        (value) =>
          new Observable<string>((subscriber) => {
            decide(request('shop', [`k=${value}`]), {
              verdict: ({ statuses }) => subscriber.next(`${value}:${statuses[0]?.limitRemaining}`),
              error: (error) => subscriber.next(`${value}:${error.code}`),
            });
          }),
      ),
    );
  }

  it('use the rules that are active when the request arrives', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const rules$ = cold('     --a---x--b--------', RULES);
      const requests$ = hot('   v---w---x---y-----');
      const expected = '        v----w---x---y----';
      const lane = new ScriptedLane((batch) => of(freshCounts(batch)), { span: 1 });
      const streams = serviceWith(scheduler, { rules$, lane });
      expectObservable(streams.config$.pipe(ignoreElements()), '^-----------------!').toBe('-');
      expectObservable(streams.windows$.pipe(map(({ operations }) => operations.length))).toBe('-----1---1---1----', {
        1: 1,
      });
      const values = { v: 'v:no_configuration', w: 'w:9', x: 'x:9', y: 'y:19' };
      expectObservable(outcomes(streams, requests$)).toBe(expected, values);
      expectSubscriptions(rules$.subscriptions).toBe('^-----------------!');
    });
  });

  it('in flight are answered after completion, further ones are rejected, and the windows complete', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const rules$ = cold('     a----------', RULES);
      const requests$ = hot('   -v-----w---');
      const complete$ = hot('   ---c-------');
      const reply = cold('      ---(r|)');
      const expected = '        -----v-w---';
      const lane = new ScriptedLane((batch) => reply.pipe(map(() => freshCounts(batch))), { span: 1 });
      const streams = serviceWith(scheduler, { rules$, lane });
      expectObservable(streams.config$.pipe(ignoreElements()), '^---------!').toBe('-');
      expectObservable(streams.windows$.pipe(map(() => 'w'))).toBe('-----(w|)');
      const reads: string[] = [];
      const observer = { settled: () => reads.push('settled'), failed: ({ code }: DecisionError) => reads.push(code) };
      streams.apply([], observer);
      complete$.subscribe(() => {
        streams.complete();
        streams.apply([], observer);
      });
      expectObservable(outcomes(streams, requests$)).toBe(expected, { v: 'v:9', w: 'w:shutting_down' });
      expectSubscriptions(reply.subscriptions).toBe('--^--!');
      flush();
      expect(reads).toEqual(['settled', 'shutting_down']);
    });
  });
});
