import { of } from 'rxjs';
import { exhaustMapWithTrailing } from '../../../src/sources/watching/exhaust-map-with-trailing';
import { marbles } from '../../support/marbles';

describe('loads of which one runs at a time', () => {
  it('start at once when none runs', () =>
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const hints = hot('  -a-----b----');
      const load = cold('   --x|       ');
      const loads = ['     -^--!       ', '-------^--!'];
      const expected = '   ---x-----x--';

      expectObservable(hints.pipe(exhaustMapWithTrailing(() => load))).toBe(expected);
      expectSubscriptions(load.subscriptions).toBe(loads);
    }));

  it('are followed by exactly one more for all hints that came while one ran, which gets the latest', () =>
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

  it('go on one by one while hints keep coming', () =>
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const hints = hot('  aaaaaaaaa------');
      const load = cold('  ---x|');
      const expected = '   ---x---x---x---';

      expectObservable(hints.pipe(exhaustMapWithTrailing(() => load))).toBe(expected);
      expectSubscriptions(load.subscriptions).toBe(['^---!', '----^---!', '--------^---!']);
    }));

  it('that end at once are one for each hint', () =>
    marbles(({ hot, expectObservable }) => {
      const hints = hot(' -(abc)--d-|');
      const expected = '  -(abc)--d-|';

      expectObservable(hints.pipe(exhaustMapWithTrailing((hint) => of(hint)))).toBe(expected);
    }));

  it('finish what was hinted at when no more hints will come', () =>
    marbles(({ cold, expectObservable }) => {
      const hints = cold('-ab|');
      const load = cold('  ---x|');
      const expected = '  ----x---x|';

      expectObservable(hints.pipe(exhaustMapWithTrailing(() => load))).toBe(expected);
    }));

  it('end with who listens to them', () =>
    marbles(({ hot, cold, expectObservable, expectSubscriptions }) => {
      const hints = hot('  -ab-----');
      const load = cold('   -------x|');
      const subscribed = ' ^---!';

      expectObservable(hints.pipe(exhaustMapWithTrailing(() => load)), subscribed).toBe('-');
      expectSubscriptions(load.subscriptions).toBe('-^--!');
      expectSubscriptions(hints.subscriptions).toBe(subscribed);
    }));

  it('fail when one fails', () =>
    marbles(({ hot, cold, expectObservable }) => {
      const hints = hot('  -a---');
      const load = cold('   -#  ', undefined, new Error('broken'));

      expectObservable(hints.pipe(exhaustMapWithTrailing(() => load))).toBe('--#', undefined, new Error('broken'));
    }));
});
