import { flushing } from '../../src/streams/flushing';
import { marbles } from '../support/marbles';

describe('flushing', () => {
  it('starts a flush at every tick, and emits nothing', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const flush = cold('             x|');
      const flushes$ = flushing(() => flush, 4, scheduler);
      const subscription = '       ^------------!';
      const expected = '           --------------';
      expectObservable(flushes$, subscription).toBe(expected);
      expectSubscriptions(flush.subscriptions).toBe(['----^!', '--------^!', '------------^!']);
    });
  });

  it('does not interrupt a slow flush: ticks during it are skipped', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const flush = cold('             ------|');
      const flushes$ = flushing(() => flush, 4, scheduler);
      const subscription = '       ^------------------!';
      const expected = '           --------------------';
      expectObservable(flushes$, subscription).toBe(expected);
      expectSubscriptions(flush.subscriptions).toBe(['----^-----!', '------------^-----!']);
    });
  });

  it('unsubscribes from the flush when it is unsubscribed from', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const flush = cold('             ------');
      const flushes$ = flushing(() => flush, 4, scheduler);
      const subscription = '       ^-----!';
      const expected = '           -------';
      expectObservable(flushes$, subscription).toBe(expected);
      expectSubscriptions(flush.subscriptions).toBe('----^-!');
    });
  });

  it('fails with a flush that fails', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const flush = cold('             -#', {}, new Error('bug'));
      const flushes$ = flushing(() => flush, 4, scheduler);
      const expected = '           -----#';
      expectObservable(flushes$).toBe(expected, {}, new Error('bug'));
    });
  });
});
