import { defer } from 'rxjs';
import { lastFlush } from '../../src/main/last-flush';
import { marbles } from '../support/marbles';

describe('the last flush of an output', () => {
  it('waits for a flush in flight, and then sends what that one has missed', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const first$ = cold(' ---(a|)');
      const second$ = cold('-(b|)');
      let flushes = 0;
      const flush$ = defer(() => ((flushes += 1) === 1 ? first$ : second$));
      expectObservable(lastFlush(flush$, scheduler)).toBe('---a(b|)');
      expectSubscriptions(first$.subscriptions).toBe(' ^--!');
      expectSubscriptions(second$.subscriptions).toBe('---^!');
    }));

  it('ends after two seconds when the second flush does not', () =>
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const second$ = cold('-');
      let flushes = 0;
      const flush$ = defer(() => ((flushes += 1) === 1 ? cold('500ms (a|)') : second$));
      expectObservable(lastFlush(flush$, scheduler)).toBe('500ms a 1499ms |');
      expectSubscriptions(second$.subscriptions).toBe('   500ms ^ 1499ms !');
    }));

  it('ends after two seconds when a flush in flight does not', () =>
    marbles(({ cold, expectObservable }, scheduler) => {
      expectObservable(lastFlush(cold('-'), scheduler)).toBe('2s |');
    }));
});
