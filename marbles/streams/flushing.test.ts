import { flushing } from '../../src/streams/flushing';
import { marbles } from '../support/marbles';

describe('flushing', () => {
  it('begins a flush at every tick, and emits nothing', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const flush = cold('             x|');
      const flushes$ = flushing(() => flush, 4, scheduler);
      const subscription = '       ^------------!';
      const expected = '           --------------';
      expectObservable(flushes$, subscription).toBe(expected);
      expectSubscriptions(flush.subscriptions).toBe(['----^!', '--------^!', '------------^!']);
    });
  });

  it('leaves a slow flush alone: the ticks that fall into it are skipped', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const flush = cold('             ------|');
      const flushes$ = flushing(() => flush, 4, scheduler);
      const subscription = '       ^------------------!';
      const expected = '           --------------------';
      expectObservable(flushes$, subscription).toBe(expected);
      expectSubscriptions(flush.subscriptions).toBe(['----^-----!', '------------^-----!']);
    });
  });

  it('lets go of a flush when nobody waits for it any more', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const flush = cold('             ------');
      const flushes$ = flushing(() => flush, 4, scheduler);
      const subscription = '       ^-----!';
      const expected = '           -------';
      expectObservable(flushes$, subscription).toBe(expected);
      expectSubscriptions(flush.subscriptions).toBe('----^-!');
    });
  });

  it('ends with a flush that fails', () => {
    marbles(({ cold, expectObservable }, scheduler) => {
      const flush = cold('             -#', {}, new Error('defect'));
      const flushes$ = flushing(() => flush, 4, scheduler);
      const expected = '           -----#';
      expectObservable(flushes$).toBe(expected, {}, new Error('defect'));
    });
  });
});
