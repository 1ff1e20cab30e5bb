import { of } from 'rxjs';
import { exhaustMapWithTrailing } from '../../src/streams/exhaust-map-with-trailing';
import { marbles } from '../support/marbles';

describe('exhaustMapWithTrailing', () => {
  it('projects a value immediately when no inner observable runs', () =>
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const hints = hot('  -a-----b----');
      const load = cold('   --x|       ');
      const loads = ['     -^--!       ', '-------^--!'];
      const expected = '   ---x-----x--';

      expectObservable(hints.pipe(exhaustMapWithTrailing(() => load))).toBe(expected);
      expectSubscriptions(load.subscriptions).toBe(loads);
    }));

  it('projects only the latest of the values that arrived while an inner observable ran', () =>
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const hints = hot('  -abcd--------');
      const a = cold('      ----x|       ');
      const d = cold('           ----y|  ');
      const loads = { a, d };
      const expected = '   -----x----y--';

      expectObservable(hints.pipe(exhaustMapWithTrailing((hint) => loads[hint as 'a' | 'd']))).toBe(expected);
      expectSubscriptions(a.subscriptions).toBe('-^----!');
      expectSubscriptions(d.subscriptions).toBe('------^----!');
    }));

  it('runs one inner observable after the other while values keep arriving', () =>
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const hints = hot('  aaaaaaaaa------');
      const load = cold('  ---x|');
      const expected = '   ---x---x---x---';

      expectObservable(hints.pipe(exhaustMapWithTrailing(() => load))).toBe(expected);
      expectSubscriptions(load.subscriptions).toBe(['^---!', '----^---!', '--------^---!']);
    }));

  it('projects every value when the inner observables complete synchronously', () =>
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const hints = hot('  -(abc)--d-|');
      const subscribed = ' ^---------!';
      const expected = '   -(abc)--d-|';

      expectObservable(hints.pipe(exhaustMapWithTrailing((hint) => of(hint)))).toBe(expected);
      expectSubscriptions(hints.subscriptions).toBe(subscribed);
    }));

  it('projects the waiting value after the source has completed', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const hints = cold(' -ab|');
      const load = cold('   ---x|');
      const loads = ['     -^---!    ', '-----^---!'];
      const expected = '   ----x---x|';

      expectObservable(hints.pipe(exhaustMapWithTrailing(() => load))).toBe(expected);
      expectSubscriptions(hints.subscriptions).toBe('^--!');
      expectSubscriptions(load.subscriptions).toBe(loads);
    }));

  it('unsubscribes from the source and the inner observable', () =>
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const hints = hot('  -ab-----');
      const load = cold('   -------x|');
      const subscribed = ' ^---!';

      expectObservable(hints.pipe(exhaustMapWithTrailing(() => load)), subscribed).toBe('-');
      expectSubscriptions(load.subscriptions).toBe('-^--!');
      expectSubscriptions(hints.subscriptions).toBe(subscribed);
    }));

  it('fails when an inner observable fails', () =>
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const hints = hot('  -a---');
      const load = cold('   -#  ', undefined, new Error('broken'));
      const subscribed = ' ^-!';

      expectObservable(hints.pipe(exhaustMapWithTrailing(() => load))).toBe('--#', undefined, new Error('broken'));
      expectSubscriptions(hints.subscriptions).toBe(subscribed);
      expectSubscriptions(load.subscriptions).toBe('-^!');
    }));
});
