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
  A: { kind: 'loaded', ruleset: first, origin: origin('1'), warnings: [], isRepeated: true },
  X: { kind: 'rejected', reason: 'shop.yaml:1:1: bad', isRepeated: true },
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
  it('keeps the active rules while new ones are rejected, and reports the rejection until the next good ones', () => {
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

  it('emits nothing and keeps its times when the last load is repeated', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('  --a--A--x--X--|', events);
      const expected = '     0-1-----2-----|';
      const subscribed = '   ^-------------!';
      expectObservable(source.pipe(currentConfig(scheduler))).toBe(expected, {
        0: nothing,
        1: { loaded: loadedFirst(2), rejected: undefined },
        2: { loaded: loadedFirst(2), rejected: rejected(8) },
      });
      expectSubscriptions(source.subscriptions).toBe(subscribed);
    });
  });

  it('has no active rules until the first good ones, when the first ones are rejected', () => {
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

  it('emits at once that nothing is loaded, and nothing more without events', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const source = cold('  ---', events);
      const expected = '     0--';
      expectObservable(source.pipe(currentConfig(scheduler))).toBe(expected, { 0: nothing });
    });
  });

  it('fails with its source, and unsubscribes from it when it is unsubscribed from', () => {
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
