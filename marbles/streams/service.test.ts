import { Observable, Subject, ignoreElements, map, mergeMap, of, share } from 'rxjs';
import type { TestScheduler } from 'rxjs/testing';
import { Limiter } from '../../src/limiter/limiter';
import { buildRuleset } from '../../src/rules/ruleset';
import { Statistics } from '../../src/statistics/statistics';
import type { CounterLane } from '../../src/streams/ports/counters';
import type { RuleEvent } from '../../src/streams/ports/rule-source';
import { type Service, type ServiceOptions, type ServiceSources, service } from '../../src/streams/service';
import { request } from '../../test/support/data/requests';
import { limit, rulesetOf } from '../../test/support/data/rules';
import { DEFAULT_OPTIONS } from '../../test/support/data/service';
import { marbles } from '../support/marbles';
import { ScriptedLane, freshCounts, storeOf } from '../support/scripted-lanes';

function loaded(version: string, ruleset = rulesetOf('shop')): RuleEvent {
  return { kind: 'loaded', ruleset, origin: { source: 'xDS server xds:1', version }, warnings: [] };
}

/** `1` rules of a domain, `0` rules of none, `x` rejected rules; `a` and `b` limit the key `k` to 10 and to 20 per minute. */
const RULES: Record<string, RuleEvent> = {
  0: loaded('0', buildRuleset([])),
  1: loaded('1'),
  a: loaded('a', rulesetOf('shop', { key: 'k', rateLimit: limit(10, 'MINUTE') })),
  b: loaded('b', rulesetOf('shop', { key: 'k', rateLimit: limit(20, 'MINUTE') })),
  x: { kind: 'rejected', reason: 'xDS server xds:1, version x: bad' },
};
const PHASES = { s: 'starting', o: 'serving', d: 'draining' };
const CONNECTED = { t: true, f: false };
const HEALTH = {
  h: { healthy: true, unhealthy: [] },
  c: { healthy: false, unhealthy: ['configuration'] },
  s: { healthy: false, unhealthy: ['counter store'] },
  t: { healthy: false, unhealthy: ['termination'] },
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
    ['with first rules that have no domain', false, '                ----0---', '-------', 's---o---'],
    ['not with rejected rules, which do not end it', false, '        -x--x-1-', '-------', 's-----o-'],
    ['never without rules', false, '                                 --------', '-------', 's-------'],
    ['never when a termination precedes the first rules', false, '   --------', '-----t-', 's----d--'],
    ['at once with FORCE_START_WITHOUT_INITIAL_CONFIG', true, '      ----1---', '-------', '(so)----'],
    ['at once with that setting, while rules are rejected', true, '  x---x---', '-------', '(so)----'],
    ['and drains at a termination without any rules', true, '        --------', '-----t-', '(so)-d--'],
  ])('%s', (_, startsWithoutRules, rules, termination, expected) => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const rules$ = cold(rules.trim(), RULES);
      const { config$, phase$ } = serviceWith(scheduler, {
        rules$,
        termination$: hot(termination),
        startsWithoutRules,
      });
      const completes = termination.includes('t') ? expected.replace('d', '(d|)') : expected;
      expectObservable(config$.pipe(ignoreElements()), '^-------!').toBe('--------');
      expectObservable(phase$, ' ^-------!').toBe(completes, PHASES);
      expectSubscriptions(rules$.subscriptions).toBe('^-------!');
    });
  });

  it('when the store has been reached and the first rules are loaded', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const rules$ = cold('      --1------', RULES);
      const storeReady$ = cold(' -----(r|)');
      const expected = '         s----o---';
      const { phase$ } = serviceWith(scheduler, { rules$, storeReady$ });
      expectObservable(phase$, ' ^--------!').toBe(expected, PHASES);
      expectSubscriptions(storeReady$.subscriptions).toBe('^----!');
      expectSubscriptions(rules$.subscriptions).toBe('     ^-!');
    });
  });

  it('never when the store is given up: the phases fail with its error', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const rules$ = cold('      --1------', RULES);
      const storeReady$ = cold(' -----#');
      const expected = '         s----#';
      const { phase$ } = serviceWith(scheduler, { rules$, storeReady$ });
      expectObservable(phase$).toBe(expected, PHASES);
      expectSubscriptions(rules$.subscriptions).toBe('^-!');
      expectSubscriptions(storeReady$.subscriptions).toBe('^----!');
    });
  });
});

describe('the health of the service', () => {
  it.each<[string, string, string]>([
    ['is good from the first rules with a domain on', '---1--1', 'c--h---'],
    ['is bad with rules without a domain', '           ---0---', 'c------'],
    ['is bad again when the last domain is removed', ' -1-0-1-', 'ch-c-h-'],
    ['does not change with rejected rules', '           -x-1-x-', 'c--h---'],
  ])('with HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED %s', (_, rules, expected) => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const rules$ = cold(rules.trim(), RULES);
      const { health$ } = serviceWith(scheduler, { rules$, needsDomain: true });
      expectObservable(health$, '-------!').toBe(expected, HEALTH);
      expectSubscriptions(rules$.subscriptions).toBe('^------!');
    });
  });

  it('follows the connection to the store, and is bad for good from a termination on', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const storeConnected$ = cold('f--t--f-t-----', CONNECTED);
      const termination$ = hot('    ----------t---');
      const expected = '            s--h--s-h-t---';
      const { health$ } = serviceWith(scheduler, { storeConnected$, termination$ });
      expectObservable(health$, '   ^------------!').toBe(expected, HEALTH);
      expectSubscriptions(storeConnected$.subscriptions).toBe('^------------!');
    });
  });

  it('can be read between two changes', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const storeConnected$ = cold('--t--f', CONNECTED);
      const { health$ } = serviceWith(scheduler, { storeConnected$ });
      const read: boolean[] = [];
      for (const frame of [1, 3, 6]) scheduler.schedule(() => read.push(health$.value.healthy), frame);
      expectObservable(health$).toBe('--h--s', HEALTH);
      flush();
      expect(read).toEqual([false, true, false]);
    });
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
      expectObservable(
        streams.config$.pipe(map(({ loaded: active }) => active?.origin.version)),
        '^-----------------!',
      );
      expectObservable(streams.windows$.pipe(map(({ batch }) => batch.length))).toBe('-----1---1---1----', { 1: 1 });
      expectObservable(outcomes(streams, requests$)).toBe(expected, {
        v: 'v:no_configuration',
        w: 'w:9',
        x: 'x:9',
        y: 'y:19',
      });
      expectSubscriptions(rules$.subscriptions).toBe('^-----------------!');
    });
  });

  it('in flight are answered after completion, further ones are rejected, and the windows complete', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const rules$ = cold('     a----------', RULES);
      const requests$ = hot('   -v-----w---');
      const complete$ = hot('   ---c-------');
      const reply = cold('      ---(r|)');
      const expected = '        -----v-w---';
      const lane = new ScriptedLane((batch) => reply.pipe(map(() => freshCounts(batch))), { span: 1 });
      const streams = serviceWith(scheduler, { rules$, lane });
      expectObservable(streams.config$.pipe(map(() => 'rules')), '^---------!');
      expectObservable(streams.windows$.pipe(map(() => 'w'))).toBe('-----(w|)');
      complete$.subscribe(() => streams.complete());
      expectObservable(outcomes(streams, requests$)).toBe(expected, { v: 'v:9', w: 'w:shutting_down' });
      expectSubscriptions(reply.subscriptions).toBe('--^--!');
    });
  });
});
