import { NEVER, type Observable } from 'rxjs';
import type { TestScheduler } from 'rxjs/testing';
import type { RuleEvent } from '../../../../src/streams/ports/rule-source';
import { distributeRules } from '../../../../src/workers/primary/rules/distribute-rules';
import type { RuleMember } from '../../../../src/workers/primary/rules/rule-member';
import { rulesetOf } from '../../../../test/support/data/rules';
import { marbles } from '../../../support/marbles';
import { ScriptedMember } from '../../../support/scripted-member';

function loaded(name: string): RuleEvent {
  return { kind: 'loaded', ruleset: rulesetOf(name), origin: { source: 'files', version: name }, warnings: [] };
}
const a = loaded('a');
const events: Record<string, RuleEvent> = {
  ...{ a, b: loaded('b'), c: loaded('c'), d: loaded('d') },
  A: { ...a, isRepeated: true },
  x: { kind: 'rejected', reason: 'bad' },
};

interface Given {
  readonly members$?: Observable<RuleMember>;
  readonly startsWithoutRules?: boolean;
}

function distributed(source: Observable<RuleEvent>, scheduler: TestScheduler, given: Given = {}) {
  return source.pipe(distributeRules({ members$: NEVER, startsWithoutRules: false, scheduler, ...given }));
}

const FIRST = ['prepare a', 'commit'];
const KILLED = /^kill: it has not answered for 10000 ms/;

describe('the distribution of rules', () => {
  it('gives workers only the last of several loads that arrive during a round, and emits all of them in order', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const member = new ScriptedMember({ prepare: cold('--|'), hold: cold('-|'), commit: cold('-|') });
      const members$ = hot('m', { m: member });
      const source = cold('  a-----bcxd--------', events);
      const expected = '     ---a------b---(cxd)';
      expectObservable(distributed(source, scheduler, { members$ })).toBe(expected, events);
      flush();
      const rounds = ['prepare b', 'hold', 'commit', 'prepare d', 'hold', 'commit'];
      expect(member.received).toEqual([...FIRST, ...rounds]);
    }));

  it('does not transfer rules that are active already: a repeated load, or their return after a rejection', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const member = new ScriptedMember({ prepare: cold('--|'), commit: cold('-|') });
      const members$ = hot('m', { m: member });
      const source = cold('  a----A-xa', events);
      const expected = '     ---a-A-xa';
      expectObservable(distributed(source, scheduler, { members$ })).toBe(expected, events);
      flush();
      expect(member.received).toEqual(FIRST);
    }));

  it('gives the active rules to a worker that starts later, before further ones', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const early = new ScriptedMember({ prepare: cold('|'), hold: cold('|'), commit: cold('|') });
      const late = new ScriptedMember({ prepare: cold('---|'), hold: cold('|'), commit: cold('|') });
      const members$ = hot('  e--l', { e: early, l: late });
      const source = cold('   a---b', events);
      const expected = '      a--------b';
      expectObservable(distributed(source, scheduler, { members$ })).toBe(expected, events);
      flush();
      for (const { received } of [early, late]) expect(received).toEqual([...FIRST, 'prepare b', 'hold', 'commit']);
    }));

  it('lets workers wait for the first rules, or decide without if the settings allow it', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const [waiting, deciding] = [
        new ScriptedMember({ prepare: cold('-|') }),
        new ScriptedMember({ commit: cold('-|') }),
      ];
      const source = cold('   --x----', events);
      expectObservable(distributed(source, scheduler, { members$: hot('m', { m: waiting }) })).toBe('--x', events);
      const given = { members$: hot('m', { m: deciding }), startsWithoutRules: true };
      expectObservable(distributed(cold('------'), scheduler, given)).toBe('-');
      flush();
      expect([waiting.received, deciding.received]).toEqual([[], ['commit']]);
    }));

  it('continues without a worker that ends at any step, or that it kills because it makes no progress', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const steps = { prepare: cold('|'), hold: cold('|'), commit: cold('|') };
      const [joining, committing] = [{ gone$: hot('---g') }, { prepare: cold('-|'), gone$: hot('----g') }];
      const stuck = new ScriptedMember({ prepare: cold('-n-'), gone$: hot('10010ms g') });
      const slow = new ScriptedMember({ ...steps, prepare: cold('9s n 9s n |') });
      const others = [new ScriptedMember(joining), new ScriptedMember(committing)] as const;
      const members$ = hot('  (abks)', { a: others[0], b: others[1], k: stuck, s: slow });
      const source = cold('   a', events);
      const expected = '      18002ms a';
      expectObservable(distributed(source, scheduler, { members$ })).toBe(expected, events);
      flush();
      expect(slow.received).toEqual(FIRST);
      expect(stuck.received).toEqual(['prepare a', expect.stringMatching(KILLED)]);
      expect(others.map(({ received }) => received)).toEqual([['prepare a'], ['prepare a']]);
    }));

  it('emits rules at once without workers, fails with its source, and stops at the present step when unsubscribed from', () =>
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const expected = '-a-x-b';
      expectObservable(distributed(cold('-a-x-b', events), scheduler)).toBe(expected, events);
      expectObservable(distributed(cold<RuleEvent>('--#'), scheduler)).toBe('--#');
      const prepare = cold('     ------|');
      const members$ = hot('  m', { m: new ScriptedMember({ prepare }) });
      const source = cold('   -a', events);
      const unsubscribe = '   ----!';
      expectObservable(distributed(source, scheduler, { members$ }), unsubscribe).toBe('-');
      expectSubscriptions(source.subscriptions).toBe('^---!');
      expectSubscriptions(members$.subscriptions).toBe('^---!');
      expectSubscriptions(prepare.subscriptions).toBe('-^--!');
    }));
});
