import { latest } from '../../src/streams/latest';
import { marbles } from '../support/marbles';

describe('the latest value of a stream', () => {
  it('is the initial one before the source emits, then the last one', () => {
    marbles(({ cold, expectObservable, flush }, scheduler) => {
      const source = cold('  --a--b|');
      const expected = '     --a--b|';
      const values$ = latest(source, 'none');
      const read: string[] = [];
      for (const frame of [1, 3, 7]) scheduler.schedule(() => read.push(values$.value), frame);
      expectObservable(values$).toBe(expected);
      flush();
      expect(read).toEqual(['none', 'a', 'b']);
    });
  });

  it('is emitted at once to a late subscriber, from the one subscription to the source', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('  --a----b--');
      const early = '        ^--------!';
      const late = '         ----^----!';
      const values$ = latest(source, 'none');
      expectObservable(values$, early).toBe('--a----b--');
      expectObservable(values$, late).toBe(' ----a--b--');
      expectSubscriptions(source.subscriptions).toBe('^--------!');
    });
  });

  it('survives the last subscriber, who unsubscribes from the source', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }) => {
      const source = cold('  -a---b---');
      const values$ = latest(source, 'none');
      expectObservable(values$, '^--!').toBe('-a--');
      flush();
      expect(values$.value).toBe('a');
      expectSubscriptions(source.subscriptions).toBe('^--!');
    });
  });

  it('stays what it was when the source fails', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }) => {
      const source = cold('  -a-#');
      const values$ = latest(source, 'none');
      expectObservable(values$).toBe('-a-#');
      flush();
      expect(values$.value).toBe('a');
      expectSubscriptions(source.subscriptions).toBe('^--!');
    });
  });
});
