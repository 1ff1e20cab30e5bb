import { currentConfig } from '../../src/streams/current-config';
import type { RuleEvent } from '../../src/streams/ports/rule-source';
import { rulesetOf } from '../../test/support/data/rules';
import { marbles } from '../support/marbles';

const first = rulesetOf('first');
const second = rulesetOf('second');
function origin(version: string) {
  return { source: 'files', version };
}
const events: Record<string, RuleEvent> = {
  a: { kind: 'loaded', ruleset: first, origin: origin('1'), warnings: [] },
  b: { kind: 'loaded', ruleset: second, origin: origin('2'), warnings: [] },
  x: { kind: 'rejected', reason: 'shop.yaml:1:1: bad' },
};

const nothing = { loaded: undefined, rejected: undefined };
function loadedFirst(at: number) {
  return { ruleset: first, origin: origin('1'), at };
}
function loadedSecond(at: number) {
  return { ruleset: second, origin: origin('2'), at };
}
function rejected(at: number) {
  return { reason: 'shop.yaml:1:1: bad', at };
}

describe('the current configuration', () => {
  it('good, bad, good: the bad one changes nothing but is told, the next good one takes over', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  --a--x--b--|', events);
      const expected = '     0-1--2--3--|';
      const subscribed = '   ^----------!';
      expectObservable(source.pipe(currentConfig(scheduler))).toBe(expected, {
        0: nothing,
        1: { loaded: loadedFirst(2), rejected: undefined },
        2: { loaded: loadedFirst(2), rejected: rejected(5) },
        3: { loaded: loadedSecond(8), rejected: undefined },
      });
      expectSubscriptions(source.subscriptions).toBe(subscribed);
    });
  });

  it('bad from the start: nothing is loaded until a good one comes', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  x----x--a', events);
      const expected = '     (01)-2--3';
      expectObservable(source.pipe(currentConfig(scheduler))).toBe(expected, {
        0: nothing,
        1: { loaded: undefined, rejected: rejected(0) },
        2: { loaded: undefined, rejected: rejected(5) },
        3: { loaded: loadedFirst(8), rejected: undefined },
      });
      expectSubscriptions(source.subscriptions).toBe('^--------');
    });
  });

  it('no events: says at once that nothing is loaded, and stays there', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const source = cold('  ---', events);
      const expected = '     0--';
      expectObservable(source.pipe(currentConfig(scheduler))).toBe(expected, { 0: nothing });
    });
  });

  it('a source that fails fails it, and unsubscribing lets go of the source', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const failing = cold(' --#', events);
      const expected = '     0-#';
      expectObservable(failing.pipe(currentConfig(scheduler))).toBe(expected, { 0: nothing });

      const source = cold('  --a--a--a', events);
      const unsubscribe = '  ---!';
      expectObservable(source.pipe(currentConfig(scheduler)), unsubscribe).toBe('0-1', {
        0: nothing,
        1: { loaded: loadedFirst(2), rejected: undefined },
      });
      expectSubscriptions(source.subscriptions).toBe('^--!');
    });
  });
});
