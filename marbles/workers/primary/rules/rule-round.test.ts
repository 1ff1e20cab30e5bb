import type { RunHelpers } from 'rxjs/testing';
import { ruleRound } from '../../../../src/workers/primary/rules/rule-round';
import { rulesetOf } from '../../../../test/support/data/rules';
import { marbles } from '../../../support/marbles';
import { ScriptedMember } from '../../../support/scripted-member';

const ruleset = rulesetOf('shop');
const KILLED_IN_HOLD = 'kill: it has not answered for 1000 ms while the rules are replaced';
const KILLED = 'kill: it has not answered for 10000 ms while the rules are replaced';

/** A worker that answers each step after 1 ms. */
function quick({ cold }: RunHelpers) {
  return new ScriptedMember({ prepare: cold('-|'), hold: cold('-|'), commit: cold('-|') });
}

describe('a round that replaces the rules of all workers', () => {
  it('prepares all, then parks the requests of all, and then commits', () =>
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const a = { prepare: cold('--n-|'), hold: cold('    -|     '), commit: cold('      -|  ') };
      const b = { prepare: cold('-|   '), hold: cold('    ---|   '), commit: cold('      ---|') };
      const expected = '         ----           ---               ---|';
      const members = [new ScriptedMember(a), new ScriptedMember(b)];
      expectObservable(ruleRound({ ruleset, deciding: members, joining: [] }, scheduler)).toBe(expected);
      expectSubscriptions(a.prepare.subscriptions).toBe('^---!');
      expectSubscriptions(b.prepare.subscriptions).toBe('^!');
      expectSubscriptions(a.hold.subscriptions).toBe('   ----^!');
      expectSubscriptions(b.hold.subscriptions).toBe('   ----^--!');
      expectSubscriptions(a.commit.subscriptions).toBe(' -------^!');
      expectSubscriptions(b.commit.subscriptions).toBe(' -------^--!');
      flush();
      for (const { received } of members) expect(received).toEqual(['prepare shop', 'hold', 'commit']);
    }));

  it('does not park requests of workers that decide none yet', () =>
    marbles((helpers, scheduler) => {
      const [old, created] = [quick(helpers), quick(helpers)];
      helpers.expectObservable(ruleRound({ ruleset, deciding: [old], joining: [created] }, scheduler)).toBe('---|');
      helpers.flush();
      expect(old.received).toEqual(['prepare shop', 'hold', 'commit']);
      expect(created.received).toEqual(['prepare shop', 'commit']);
    }));

  it('only commits when workers may decide without rules', () =>
    marbles((helpers, scheduler) => {
      const created = quick(helpers);
      helpers
        .expectObservable(ruleRound({ ruleset: undefined, deciding: [], joining: [created] }, scheduler))
        .toBe('-|');
      helpers.flush();
      expect(created.received).toEqual(['commit']);
    }));

  it('completes at once without workers', () =>
    marbles(({ expectObservable }, scheduler) => {
      expectObservable(ruleRound({ ruleset, deciding: [], joining: [] }, scheduler)).toBe('|');
    }));

  it('lets a worker prepare for as long as it makes progress', () =>
    marbles((helpers, scheduler) => {
      const { cold, expectObservable, flush } = helpers;
      const slow = new ScriptedMember({ prepare: cold('9s n 9s n 9s |'), hold: cold('|'), commit: cold('|') });
      expectObservable(ruleRound({ ruleset, deciding: [slow], joining: [] }, scheduler)).toBe('27002ms |');
      flush();
      expect(slow.received).toEqual(['prepare shop', 'hold', 'commit']);
    }));

  it('kills a worker that makes no progress, and continues when its process has ended', () =>
    marbles((helpers, scheduler) => {
      const { cold, hot, expectObservable, flush } = helpers;
      const stuck = new ScriptedMember({ prepare: cold('-n-'), gone$: hot('10011ms g') });
      const other = quick(helpers);
      const expected = '10013ms |';
      expectObservable(ruleRound({ ruleset, deciding: [stuck, other], joining: [] }, scheduler)).toBe(expected);
      flush();
      expect(stuck.received).toEqual(['prepare shop', KILLED]);
      expect(other.received).toEqual(['prepare shop', 'hold', 'commit']);
    }));

  it('kills a worker that does not park requests within a second, and commits only when its process has ended', () =>
    marbles((helpers, scheduler) => {
      const { cold, hot, expectObservable, expectSubscriptions, flush } = helpers;
      const stuck = new ScriptedMember({ prepare: cold('-|'), hold: cold('-'), gone$: hot('1500ms g') });
      const commit = cold('-|');
      const other = new ScriptedMember({ prepare: cold('-|'), hold: cold('-|'), commit });
      expectObservable(ruleRound({ ruleset, deciding: [stuck, other], joining: [] }, scheduler)).toBe('1501ms |');
      expectSubscriptions(commit.subscriptions).toBe('1500ms ^!');
      flush();
      expect(stuck.received).toEqual(['prepare shop', 'hold', KILLED_IN_HOLD]);
    }));

  it('kills a worker that does not commit within ten seconds; the others have committed by then', () =>
    marbles((helpers, scheduler) => {
      const { cold, hot, expectObservable, expectSubscriptions, flush } = helpers;
      const hold = cold('-|');
      const stuck = new ScriptedMember({ prepare: cold('-|'), hold, commit: cold('-'), gone$: hot('10010ms g') });
      const commit = cold('-|');
      const other = new ScriptedMember({ prepare: cold('-|'), hold: cold('-|'), commit });
      expectObservable(ruleRound({ ruleset, deciding: [stuck, other], joining: [] }, scheduler)).toBe('10010ms |');
      expectSubscriptions(commit.subscriptions).toBe('--^!');
      flush();
      expect(stuck.received).toEqual(['prepare shop', 'hold', 'commit', KILLED]);
    }));

  it.each([
    ['preparing', 0, ['prepare shop']],
    ['parking requests', 1, ['prepare shop', 'hold']],
    ['committing', 2, ['prepare shop', 'hold', 'commit']],
  ])('continues without a worker that ends while %s', (_, stepsBefore, received) =>
    marbles((helpers, scheduler) => {
      const { cold, hot, expectObservable, flush } = helpers;
      const answers = Array.from({ length: 3 }, (__, step) => cold(step < stepsBefore ? '-|' : '-'));
      const [prepare, hold, commit] = answers as [(typeof answers)[0], (typeof answers)[0], (typeof answers)[0]];
      const dying = new ScriptedMember({ prepare, hold, commit, gone$: hot('----g') });
      const other = quick(helpers);
      const expected = `${4 + 2 - stepsBefore}ms |`;
      expectObservable(ruleRound({ ruleset, deciding: [dying, other], joining: [] }, scheduler)).toBe(expected);
      flush();
      expect(dying.received).toEqual(received);
      expect(other.received).toEqual(['prepare shop', 'hold', 'commit']);
    }),
  );

  it('completes when all workers have ended', () =>
    marbles(({ hot, expectObservable }, scheduler) => {
      const members = ['--g', '----g'].map((gone) => new ScriptedMember({ gone$: hot(gone) }));
      expectObservable(ruleRound({ ruleset, deciding: members, joining: [] }, scheduler)).toBe('----|');
    }));

  it('does not kill a worker that has ended, nor one that is only slow', () =>
    marbles(({ cold, hot, expectObservable, flush }, scheduler) => {
      const gone = new ScriptedMember({ gone$: hot('--g') });
      const slow = new ScriptedMember({ prepare: cold('-|'), hold: cold('999ms |'), commit: cold('9s |') });
      expectObservable(ruleRound({ ruleset, deciding: [gone, slow], joining: [] }, scheduler)).toBe('10001ms |');
      flush();
      expect(gone.received).toEqual(['prepare shop']);
      expect(slow.received).toEqual(['prepare shop', 'hold', 'commit']);
    }));

  it('stops at the present step when it is unsubscribed from', () =>
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const prepare = cold('-----|');
      const member = new ScriptedMember({ prepare });
      const unsubscribe = ' ---!';
      expectObservable(ruleRound({ ruleset, deciding: [member], joining: [] }, scheduler), unsubscribe).toBe('----');
      expectSubscriptions(prepare.subscriptions).toBe('^--!');
      flush();
      expect(member.received).toEqual(['prepare shop']);
    }));
});
