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
  a,
  b: loaded('b'),
  c: loaded('c'),
  d: loaded('d'),
  A: { ...a, isRepeated: true },
  x: { kind: 'rejected', reason: 'bad' },
};

interface Given {
  readonly members$?: Observable<RuleMember>;
  readonly startsWithoutRules?: boolean;
}

function distributed(
  events$: Observable<RuleEvent>,
  scheduler: TestScheduler,
  { members$ = NEVER, startsWithoutRules = false }: Given,
) {
  return events$.pipe(distributeRules({ members$, startsWithoutRules, scheduler }));
}

const FIRST_ROUND = ['prepare a', 'commit'];

describe('the distribution of rules', () => {
  it('emits rules at once while there are no workers', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  -a-x-b', events);
      const expected = '     -a-x-b';
      expectObservable(distributed(source, scheduler, {}), '------!').toBe(expected, events);
      expectSubscriptions(source.subscriptions).toBe('^-----!');
    }));

  it('emits rules when all workers decide with them', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const member = new ScriptedMember({ prepare: cold('--|'), hold: cold('-|'), commit: cold('-|') });
      const members$ = hot('(m)', { m: member });
      const source = cold('  a--------b----', events);
      const expected = '     ---a---------b';
      expectObservable(distributed(source, scheduler, { members$ })).toBe(expected, events);
      flush();
      expect(member.received).toEqual([...FIRST_ROUND, 'prepare b', 'hold', 'commit']);
    }));

  it('gives workers only the last of several loads that arrive during a round, and emits all of them in order', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const member = new ScriptedMember({ prepare: cold('--|'), hold: cold('-|'), commit: cold('-|') });
      const members$ = hot('m', { m: member });
      const source = cold('  a-----bcxd--------', events);
      const expected = '     ---a------b---(cxd)';
      expectObservable(distributed(source, scheduler, { members$ })).toBe(expected, events);
      flush();
      const rounds = ['prepare b', 'hold', 'commit', 'prepare d', 'hold', 'commit'];
      expect(member.received).toEqual([...FIRST_ROUND, ...rounds]);
    }));

  it('ends with the newest rules when loads arrive faster than workers receive them', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const member = new ScriptedMember({ prepare: cold('3ms |'), hold: cold('|'), commit: cold('|') });
      const members$ = hot('m', { m: member });
      const source = cold('  a-----bcbcbcbcbd---', events);
      const emitted: RuleEvent[] = [];
      distributed(source, scheduler, { members$ }).subscribe((event) => emitted.push(event));
      expectObservable(source).toBe('a-----bcbcbcbcbd', events);
      flush();
      expect(emitted.map((event) => event.kind === 'loaded' && event.origin.version).join('')).toBe('abcbcbcbcbd');
      expect(member.received.filter((step) => step.startsWith('prepare')).at(-1)).toBe('prepare d');
      expect(member.received.at(-1)).toBe('commit');
    }));

  it('keeps a rejection in the order of the loads, and does not bother workers with it', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const member = new ScriptedMember({ prepare: cold('--|'), hold: cold('-|'), commit: cold('-|') });
      const members$ = hot('m', { m: member });
      const source = cold('  a----x--bx-----', events);
      const expected = '     ---a-x------(bx)';
      expectObservable(distributed(source, scheduler, { members$ })).toBe(expected, events);
      flush();
      expect(member.received).toEqual([...FIRST_ROUND, 'prepare b', 'hold', 'commit']);
    }));

  it('does not transfer rules that are active already: a repeated load, or their return after a rejection', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const member = new ScriptedMember({ prepare: cold('--|'), commit: cold('-|') });
      const members$ = hot('m', { m: member });
      const source = cold('  a----A-xa', events);
      const expected = '     ---a-A-xa';
      expectObservable(distributed(source, scheduler, { members$ })).toBe(expected, events);
      flush();
      expect(member.received).toEqual(FIRST_ROUND);
    }));

  it('gives the active rules to a worker that starts later, which then decides with them', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const early = new ScriptedMember({ prepare: cold('|'), hold: cold('|'), commit: cold('|') });
      const late = new ScriptedMember({ prepare: cold('--|'), commit: cold('-|') });
      const members$ = hot('  e----l', { e: early, l: late });
      const source = cold('   -a', events);
      expectObservable(distributed(source, scheduler, { members$ })).toBe('-a', events);
      scheduler.schedule(() => expect(late.received).toEqual(['prepare a']), 6);
      flush();
      expect([early.received, late.received]).toEqual([FIRST_ROUND, FIRST_ROUND]);
    }));

  it('lets a worker that starts during a round wait for its end, and then gives it the new rules', () =>
    marbles(({ cold, hot, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const prepare = cold('                 -|');
      const early = new ScriptedMember({ prepare: cold('--|'), hold: cold('-|'), commit: cold('-|') });
      const late = new ScriptedMember({ prepare, commit: cold('-|') });
      const members$ = hot('  e------l', { e: early, l: late });
      const source = cold('   a----b', events);
      const expected = '      ---a-----b';
      expectObservable(distributed(source, scheduler, { members$ })).toBe(expected, events);
      expectSubscriptions(prepare.subscriptions).toBe('---------^!');
      flush();
      expect(late.received).toEqual(['prepare b', 'commit']);
    }));

  it('keeps new rules waiting while a worker receives the active ones, and then parks its requests, too', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const early = new ScriptedMember({ prepare: cold('|'), hold: cold('|'), commit: cold('|') });
      const late = new ScriptedMember({ prepare: cold('---|'), hold: cold('|'), commit: cold('|') });
      const members$ = hot('  e--l', { e: early, l: late });
      const source = cold('   a---b', events);
      const expected = '      a--------b';
      expectObservable(distributed(source, scheduler, { members$ })).toBe(expected, events);
      flush();
      expect(late.received).toEqual([...FIRST_ROUND, 'prepare b', 'hold', 'commit']);
      expect(early.received).toEqual([...FIRST_ROUND, 'prepare b', 'hold', 'commit']);
    }));

  it('lets workers wait for the first rules', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const member = new ScriptedMember({ prepare: cold('-|'), commit: cold('-|') });
      const members$ = hot('  m', { m: member });
      const source = cold('   --x---a', events);
      const expected = '      --x-----a';
      expectObservable(distributed(source, scheduler, { members$ })).toBe(expected, events);
      scheduler.schedule(() => expect(member.received).toEqual([]), 5);
      flush();
      expect(member.received).toEqual(FIRST_ROUND);
    }));

  it('lets workers decide without rules when the settings allow it; the first rules are then a reload', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const member = new ScriptedMember({ prepare: cold('-|'), hold: cold('-|'), commit: cold('-|') });
      const members$ = hot('  m', { m: member });
      const source = cold('   ------a', events);
      const expected = '      ---------a';
      expectObservable(distributed(source, scheduler, { members$, startsWithoutRules: true })).toBe(expected, events);
      scheduler.schedule(() => expect(member.received).toEqual(['commit']), 2);
      flush();
      expect(member.received).toEqual(['commit', 'prepare a', 'hold', 'commit']);
    }));

  it('forgets a worker that has ended, also while it joins', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const gone = new ScriptedMember({ prepare: cold('|'), commit: cold('|'), gone$: hot('--g') });
      const dying = new ScriptedMember({ prepare: cold('-|'), gone$: hot('------g') });
      const members$ = hot('  g--d', { g: gone, d: dying });
      const source = cold('   a-------b', events);
      const expected = '      a-------b';
      expectObservable(distributed(source, scheduler, { members$ })).toBe(expected, events);
      flush();
      expect([gone.received, dying.received]).toEqual([FIRST_ROUND, FIRST_ROUND]);
    }));

  it('fails with its source, and unsubscribes from source, workers and round', () =>
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      expectObservable(distributed(cold<RuleEvent>('--#'), scheduler, {})).toBe('--#');

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
