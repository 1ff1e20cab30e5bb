import { lifecycle } from '../../src/streams/lifecycle';
import { marbles } from '../support/marbles';

const phases = { a: 'starting', b: 'serving', c: 'draining' };

describe('the life of the process', () => {
  it('starts, serves when ready, drains at the first signal, and ends there', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const ready$ = cold('      --r--r', { r: 0 });
      const termination$ = hot(' -------t-t');
      const expected = '         a-b----(c|)';
      expectObservable(lifecycle({ ready$, termination$ })).toBe(expected, phases);
      expectSubscriptions(ready$.subscriptions).toBe('^-!');
    });
  });

  it('waits as long as nothing is ready, and does not serve twice', () => {
    marbles(({ cold, hot, expectObservable }) => {
      const never$ = cold('      -------');
      const termination$ = hot(' -------');
      expectObservable(lifecycle({ ready$: never$, termination$ })).toBe('a------', phases);

      const often$ = cold('      -r-r-r-');
      expectObservable(lifecycle({ ready$: often$, termination$ })).toBe('ab-----', phases);
    });
  });

  it('drains without ever having served when the signal comes first', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const ready$ = cold('      -----r');
      const termination$ = hot(' --t---');
      const expected = '         a-(c|)';
      expectObservable(lifecycle({ ready$, termination$ })).toBe(expected, phases);
      expectSubscriptions(ready$.subscriptions).toBe('^-!');
    });
  });

  it('fails when what it waits for fails', () => {
    marbles(({ cold, hot, expectObservable }) => {
      const ready$ = cold('      --#');
      const termination$ = hot(' ---');
      expectObservable(lifecycle({ ready$, termination$ })).toBe('a-#', phases);
    });
  });
});
