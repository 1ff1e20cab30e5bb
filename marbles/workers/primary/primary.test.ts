import { NEVER, type Observable, ReplaySubject, defer } from 'rxjs';
import type { TestScheduler } from 'rxjs/testing';
import type { RuleEvent } from '../../../src/streams/ports/rule-source';
import { patientTimer } from '../../../src/workers/primary/patient-timer';
import { responsiveness } from '../../../src/workers/primary/responsiveness';
import { distributeRules } from '../../../src/workers/primary/rules/distribute-rules';
import type { RuleMember } from '../../../src/workers/primary/rules/rule-member';
import { rulesetOf } from '../../../test/support/data/rules';
import { marbles } from '../../support/marbles';

function loaded(name: string): RuleEvent {
  return { kind: 'loaded', ruleset: rulesetOf(name), origin: { source: 'files', version: name }, warnings: [] };
}
const a = loaded('a');
const events: Record<string, RuleEvent> = {
  ...{ a, b: loaded('b'), c: loaded('c'), d: loaded('d') },
  A: { ...a, isRepeated: true },
  x: { kind: 'rejected', reason: 'bad' },
};

/** `gone$` is hot. */
type Script = Partial<Record<'prepare' | 'hold' | 'commit' | 'gone$', Observable<unknown>>>;

/** A worker that answers as the scenario says, and records what it is sent. Without a script for a step it never answers. */
function scripted({ prepare = NEVER, hold = NEVER, commit = NEVER, gone$ = NEVER }: Script) {
  const received: string[] = [];
  const ended$ = new ReplaySubject<unknown>(1);
  gone$.subscribe(ended$);
  function step(name: string, script: Observable<unknown>): Observable<unknown> {
    return defer(() => {
      received.push(name);
      return script;
    });
  }
  const member: RuleMember = {
    prepare: ({ domains }) => step(`prepare ${[...domains.keys()].join()}`, prepare),
    hold: () => step('hold', hold),
    commit: () => step('commit', commit),
    kill: (reason) => void received.push(`kill: ${reason}`),
    gone$: ended$,
  };
  return { member, received };
}

function distributed(
  source: Observable<RuleEvent>,
  scheduler: TestScheduler,
  members$: Observable<RuleMember> = NEVER,
) {
  return source.pipe(distributeRules({ members$, startsWithoutRules: false, scheduler }));
}

const FIRST = ['prepare a', 'commit'];

describe('the distribution of rules', () => {
  it('gives workers the last of several loads that arrive during a round, but no active rules again, and emits all in order', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const { member, received } = scripted({ prepare: cold('--|'), hold: cold('-|'), commit: cold('-|') });
      const members$ = hot('m', { m: member });
      const source = cold('  a----A-xa-----bcxd--------', events);
      const expected = '     ---a-A-xa---------b---(cxd)';
      expectObservable(distributed(source, scheduler, members$)).toBe(expected, events);
      flush();
      const rounds = ['prepare b', 'hold', 'commit', 'prepare d', 'hold', 'commit'];
      expect(received).toEqual([...FIRST, ...rounds]);
    }));

  it('gives the active rules to a worker that starts later, before further ones', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const early = scripted({ prepare: cold('|'), hold: cold('|'), commit: cold('|') });
      const late = scripted({ prepare: cold('---|'), hold: cold('|'), commit: cold('|') });
      const members$ = hot('  e--l', { e: early.member, l: late.member });
      const source = cold('   a---b', events);
      const expected = '      a--------b';
      expectObservable(distributed(source, scheduler, members$)).toBe(expected, events);
      flush();
      for (const { received } of [early, late]) expect(received).toEqual([...FIRST, 'prepare b', 'hold', 'commit']);
    }));

  it('continues without a worker that ends at any step, or that it kills because it makes no progress for ten seconds', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const joining = scripted({ gone$: hot('---g') });
      const committing = scripted({ prepare: cold('-|'), gone$: hot('----g') });
      const stuck = scripted({ prepare: cold('-n-'), gone$: hot('10010ms g') });
      const slow = scripted({ prepare: cold('9s n 9s n |'), commit: cold('|') });
      const all = [joining, committing, stuck, slow];
      const members$ = hot('  (0123)', Object.fromEntries(all.map(({ member }, index) => [index, member])));
      const source = cold('   a', events);
      const expected = '      18002ms a';
      expectObservable(distributed(source, scheduler, members$)).toBe(expected, events);
      flush();
      const kill = expect.stringMatching(/^kill: it has not answered for 10000 ms/);
      const [prepare] = FIRST;
      expect(all.map(({ received }) => received)).toEqual([[prepare], [prepare], [prepare, kill], FIRST]);
    }));

  it('emits rules at once without workers, fails with its source, and stops at the present step when unsubscribed from', () =>
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const expected = '-a-x-b';
      expectObservable(distributed(cold('-a-x-b', events), scheduler)).toBe(expected, events);
      expectObservable(distributed(cold<RuleEvent>('--#'), scheduler)).toBe('--#');
      const prepare = cold('     ------|');
      const members$ = hot('  m', { m: scripted({ prepare }).member });
      const source = cold('   -a', events);
      const unsubscribe = '   ----!';
      expectObservable(distributed(source, scheduler, members$), unsubscribe).toBe('-');
      expectSubscriptions(source.subscriptions).toBe('^---!');
      expectSubscriptions(members$.subscriptions).toBe('^---!');
      expectSubscriptions(prepare.subscriptions).toBe('-^--!');
    }));
});

describe('the responsiveness of a worker', () => {
  it('is asked for every second, changes after ten seconds of silence and back with the next answer, and after a minute', () =>
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const asked: number[] = [];
      const answers$ = cold('1s a 9s a 11998ms a');
      const expected = '     r 20000ms s 1998ms r 9999ms s 49999ms k';
      const states$ = responsiveness({ ask: () => asked.push(scheduler.now()), answers$, scheduler });
      expectObservable(states$, '90s !').toBe(expected, { r: 'responsive', s: 'silent', k: 'stuck' });
      flush();
      expect(asked).toEqual(Array.from({ length: 90 }, (_, second) => second * 1000));
    }));

  it('is measured with several timers, so that answers are read after the primary itself stood still', () =>
    marbles(({ expectObservable, flush }, scheduler) => {
      const schedule = jest.spyOn(scheduler, 'schedule');
      expectObservable(patientTimer(100, scheduler)).toBe('100ms (x|)', { x: 0 });
      flush();
      expect(schedule.mock.calls.flatMap(([, delay]) => (delay === 10 ? [delay] : []))).toHaveLength(10);
      schedule.mockRestore();
    }));
});
