import { settleHints } from '../../../src/sources/watching/settle-hints';
import { marbles } from '../../support/marbles';

const TIMING = { quiet: 3, maxWait: 10 };
function settled(hint: string) {
  return { [hint]: undefined };
}

describe('settleHints', () => {
  it('emits once per burst, after the quiet time', () =>
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const hints = hot('  --a-bc--------d------');
      const expected = '   --------s--------s---';
      const subscribed = ' ^--------------------!';

      expectObservable(hints.pipe(settleHints(TIMING)), subscribed).toBe(expected, settled('s'));
      expectSubscriptions(hints.subscriptions).toBe(subscribed);
    }));

  it('emits after the maximum wait during a long burst, and again for the rest', () =>
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const hints = hot('  a-a-a-a-a-a-a-a-a-----');
      const expected = '   ----------s--------s---';
      const subscribed = ' ^----------------------!';

      expectObservable(hints.pipe(settleHints(TIMING)), subscribed).toBe(expected, settled('s'));
      expectSubscriptions(hints.subscriptions).toBe(subscribed);
    }));

  it('emits nothing without a hint', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const hints = cold('   -');
      const subscribed = '   ^---------!';

      expectObservable(hints.pipe(settleHints(TIMING)), subscribed).toBe('-');
      expectSubscriptions(hints.subscriptions).toBe(subscribed);
    }));

  it('completes with an empty source', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const hints = cold(' |');

      expectObservable(hints.pipe(settleHints(TIMING))).toBe('|');
      expectSubscriptions(hints.subscriptions).toBe('(^!)');
    }));

  it('emits before completing when the source completes during a burst', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const hints = cold(' -a-a|');
      const expected = '   ----(s|)';
      const subscribed = ' ^---!';

      expectObservable(hints.pipe(settleHints(TIMING))).toBe(expected, settled('s'));
      expectSubscriptions(hints.subscriptions).toBe(subscribed);
    }));

  it('emits nothing after unsubscribing during a burst', () =>
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const hints = hot('  -a-a-----');
      const subscribed = ' ^---!';

      expectObservable(hints.pipe(settleHints(TIMING)), subscribed).toBe('-');
      expectSubscriptions(hints.subscriptions).toBe(subscribed);
    }));

  it('fails when the source fails', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const hints = cold(' -a#', undefined, new Error('broken'));
      const subscribed = ' ^-!';

      expectObservable(hints.pipe(settleHints(TIMING))).toBe('--#', undefined, new Error('broken'));
      expectSubscriptions(hints.subscriptions).toBe(subscribed);
    }));
});
