import { type Observable, type SchedulerLike, filter, map, of, share } from 'rxjs';
import { currentConfig } from '../../src/streams/current-config';
import { health } from '../../src/streams/health';
import { lifecycle } from '../../src/streams/lifecycle';
import type { RuleEvent } from '../../src/streams/ports/rule-source';
import { rulesetOf } from '../../test/support/data/rules';
import { marbles } from '../support/marbles';
import { buildRuleset } from '../../src/rules/ruleset';

function loaded(domains: number): RuleEvent {
  return {
    kind: 'loaded',
    ruleset: domains === 0 ? buildRuleset([]) : rulesetOf('shop'),
    origin: { source: 'xDS server xds:1', version: String(domains) },
    warnings: [],
  };
}
/** `1` rules of a domain, `0` rules of none, `x` bad rules. */
const EVENTS: Record<string, RuleEvent> = {
  0: loaded(0),
  1: loaded(1),
  x: { kind: 'rejected', reason: 'xDS server xds:1, version x: bad' },
};
const LIFE = { s: 'starting', o: 'serving', d: 'draining' };
const HEALTH = {
  h: { healthy: true, unhealthy: [] },
  u: { healthy: false, unhealthy: ['configuration'] },
};

/** As the service puts it together: FORCE_START_WITHOUT_INITIAL_CONFIG. */
function life(
  events$: Observable<RuleEvent>,
  force: boolean,
  termination$: Observable<unknown>,
  scheduler: SchedulerLike,
) {
  const config$ = events$.pipe(currentConfig(scheduler));
  const ready$ = force ? of(true) : config$.pipe(filter((config) => config.loaded !== undefined));
  return lifecycle({ ready$, termination$: termination$.pipe(share()) });
}

/** As the service puts it together: HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED. */
function wellness(events$: Observable<RuleEvent>, scheduler: SchedulerLike) {
  const config$ = events$.pipe(currentConfig(scheduler));
  return health({
    'counter store': of(true),
    configuration: config$.pipe(map((config) => (config.loaded?.ruleset.domains.size ?? 0) > 0)),
  });
}

describe('FORCE_START_WITHOUT_INITIAL_CONFIG', () => {
  it.each<[string, boolean, string, string, string]>([
    ['false: the listeners open with the first good rules', false, '----1--1', '-------', 's---o---'],
    ['false: rules of no domain are good ones too', false, '         ----0---', '-------', 's---o---'],
    ['false: bad rules open nothing, and end nothing', false, '      -x--x-1-', '-------', 's-----o-'],
    ['false: without rules the service waits for ever', false, '     --------', '-------', 's-------'],
    ['false: a termination ends the wait', false, '                  --------', '-----t-', 's----d--'],
    ['true: the listeners open at once', true, '                      ----1---', '-------', '(so)----'],
    ['true: they open even while the rules are bad', true, '          x---x---', '-------', '(so)----'],
    ['true: and a termination ends it all the same', true, '          --------', '-----t-', '(so)-d--'],
  ])('%s', (_, force, events, termination, expected) => {
    marbles(({ cold, hot, expectObservable }, scheduler) => {
      const completes = termination.includes('t') ? expected.replace('d', '(d|)') : expected;
      expectObservable(life(cold(events.trim(), EVENTS), force, hot(termination), scheduler), '--------!').toBe(
        completes,
        LIFE,
      );
    });
  });
});

describe('HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED', () => {
  it.each<[string, string, string]>([
    ['healthy from the first rules of a domain on', '  ---1--1', 'u--h---'],
    ['unhealthy with rules of no domain', '            ---0---', 'u------'],
    ['unhealthy again when the last domain goes', '     -1-0-1-', 'uh-u-h-'],
    ['bad rules change nothing', '                      -x-1-x-', 'u--h---'],
  ])('%s', (_, events, expected) => {
    marbles(({ cold, expectObservable }, scheduler) => {
      expectObservable(wellness(cold(events.trim(), EVENTS), scheduler), '-------!').toBe(expected, HEALTH);
    });
  });
});
