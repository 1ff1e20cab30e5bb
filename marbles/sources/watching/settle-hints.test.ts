import { settleHints } from '../../../src/sources/watching/settle-hints';
import { marbles } from '../../support/marbles';

const SETTLING = { quiet: 3, maxWait: 10 };
function settled(hint: string) {
  return { [hint]: undefined };
}

describe('hints that settle', () => {
  it('are one for a burst, told when it has been quiet for a while', () =>
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const hints = hot('  --a-bc--------d------');
      const expected = '   --------s--------s---';
      const subscribed = ' ^--------------------!';

      expectObservable(hints.pipe(settleHints(SETTLING)), subscribed).toBe(expected, settled('s'));
      expectSubscriptions(hints.subscriptions).toBe(subscribed);
    }));

  it('are told at the longest when a burst goes on, and again for what follows', () =>
    marbles(({ hot, expectObservable }) => {
      const hints = hot(' a-a-a-a-a-a-a-a-a-----');
      const expected = '  ----------s--------s---';

      expectObservable(hints.pipe(settleHints(SETTLING)), '^----------------------!').toBe(expected, settled('s'));
    }));

  it('are never told when none come', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const hints = cold('   -');
      const subscribed = '   ^---------!';

      expectObservable(hints.pipe(settleHints(SETTLING)), subscribed).toBe('-');
      expectSubscriptions(hints.subscriptions).toBe(subscribed);
    }));

  it('are over when there will be none', () =>
    marbles(({ cold, expectObservable }) => {
      expectObservable(cold('|').pipe(settleHints(SETTLING))).toBe('|');
    }));

  it('are told before the end when a burst was under way then', () =>
    marbles(({ cold, expectObservable }) => {
      const hints = cold('-a-a|');
      const expected = '  ----(s|)';

      expectObservable(hints.pipe(settleHints(SETTLING))).toBe(expected, settled('s'));
    }));

  it('are not told when nobody listens any more', () =>
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const hints = hot('  -a-a-----');
      const subscribed = ' ^---!';

      expectObservable(hints.pipe(settleHints(SETTLING)), subscribed).toBe('-');
      expectSubscriptions(hints.subscriptions).toBe(subscribed);
    }));

  it('fail when the hints do', () =>
    marbles(({ cold, expectObservable }) => {
      const hints = cold('-a#', undefined, new Error('broken'));

      expectObservable(hints.pipe(settleHints(SETTLING))).toBe('--#', undefined, new Error('broken'));
    }));
});
