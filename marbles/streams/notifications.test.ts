import { NEVER } from 'rxjs';
import { type NotificationOptions, notifications } from '../../src/streams/notifications';
import { marbles } from '../support/marbles';

const STATUS = { a: 'starting', b: 'serving', c: 'unhealthy' };
const MESSAGES = {
  a: ['STATUS=starting'],
  b: ['STATUS=serving'],
  c: ['STATUS=unhealthy'],
  r: ['READY=1'],
  s: ['STOPPING=1', 'STATUS=stopping after SIGTERM', 'EXTEND_TIMEOUT_USEC=12000000'],
  w: ['WATCHDOG=1'],
};

function options(scheduler: NotificationOptions['scheduler'], watchdog?: number): NotificationOptions {
  return { watchdog, stopTimeout: 12_000, scheduler };
}

describe('the notifications of a service manager', () => {
  it('are each change of the status, ready once, and the end, after which there is nothing', () => {
    marbles(({ hot, cold, expectObservable, expectSubscriptions }, scheduler) => {
      const status$ = cold('     a--aa-b--c--b--a', STATUS);
      const ready$ = cold('      ----r--r--------');
      const termination$ = hot(' ------------s--s', { s: 'SIGTERM' });
      const expected = '         a---r-b--c--(s|)';
      const messages = notifications({ status$, ready$, termination$ }, options(scheduler));
      expectObservable(messages).toBe(expected, MESSAGES);
      expectSubscriptions(status$.subscriptions).toBe('^-----------!');
      expectSubscriptions(ready$.subscriptions).toBe(' ^---!');
    });
  });

  it('never report a service as ready that ends before it is', () => {
    marbles(({ hot, cold, expectObservable, expectSubscriptions }, scheduler) => {
      const status$ = cold('     a---', STATUS);
      const ready$ = cold('      ---r');
      const termination$ = hot(' --s-', { s: 'SIGTERM' });
      const expected = '         a-(s|)';
      expectObservable(notifications({ status$, ready$, termination$ }, options(scheduler))).toBe(expected, MESSAGES);
      expectSubscriptions(ready$.subscriptions).toBe('^-!');
    });
  });

  it('are signs of life twice per period of the watchdog, from the start, also after the signal', () => {
    marbles(({ hot, expectObservable }, scheduler) => {
      const termination$ = hot(' -------s----', { s: 'SIGTERM' });
      const expected = '         w--w--ws-w--';
      const unsubscribe = '      -----------!';
      const sources = { status$: NEVER, ready$: NEVER, termination$ };
      expectObservable(notifications(sources, options(scheduler, 6)), unsubscribe).toBe(expected, MESSAGES);
    });
  });
});
