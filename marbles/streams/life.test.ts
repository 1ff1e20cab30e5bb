import { NEVER } from 'rxjs';
import type { TestScheduler } from 'rxjs/testing';
import { type DrainOptions, drain } from '../../src/streams/drain';
import { type NotificationOptions, notifications } from '../../src/streams/notifications';
import { marbles } from '../support/marbles';

type Cold = ReturnType<Parameters<Parameters<typeof marbles>[0]>[0]['cold']>;

describe('a drain', () => {
  const OUTCOMES = {
    d: { kind: 'drained' },
    w: { kind: 'aborted', why: 'deadline', step: 'windows' },
    s: { kind: 'aborted', why: 'second signal', step: 'calls' },
    y: { kind: 'aborted', why: 'second signal', step: 'shutdown delay' },
  };

  /** A drain of these steps within 5 ms after the delay. */
  function drained(scheduler: TestScheduler, steps: Readonly<Record<string, Cold>>, more: Partial<DrainOptions> = {}) {
    const log: string[] = [];
    const outcome$ = drain({
      steps: Object.entries(steps).map(([name, stream]) => ({ name, run: () => stream })),
      ...{ signal$: NEVER, deadline: 5, delay: 0, scheduler },
      onBegin: () => log.push(`begun at ${scheduler.now()}`),
      onFailure: (step, error) => log.push(`${step}: ${String(error)}`),
      ...more,
    });
    return { outcome$, log };
  }

  it('runs its steps in order, each after the one before has ended', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const calls = cold('     --|');
      const windows = cold('    -w|');
      const sinks = cold('         |');
      expectObservable(drained(scheduler, { calls, windows, sinks }).outcome$).toBe('----(d|)', OUTCOMES);
      expectSubscriptions(calls.subscriptions).toBe('    ^-!');
      expectSubscriptions(windows.subscriptions).toBe(' --^-!');
      expectSubscriptions(sinks.subscriptions).toBe('   ----(^!)');
    });
  });

  it('reports a step that fails and continues with the next one', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const calls = cold('      --#', {}, new Error('stuck'));
      const windows = cold('     -|');
      const { outcome$, log } = drained(scheduler, { calls, windows }, { delay: 1 });
      expectObservable(outcome$).toBe('----(d|)', OUTCOMES);
      expectSubscriptions(windows.subscriptions).toBe('---^!');
      flush();
      expect(log).toEqual(['begun at 1', 'calls: Error: stuck']);
    });
  });

  it('is aborted at the deadline, which begins after the delay, and names the step that did not end', () => {
    marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const calls = cold('        --|');
      const windows = cold('         ---------');
      const { outcome$, log } = drained(scheduler, { calls, windows }, { delay: 4 });
      expectObservable(outcome$).toBe('---------(w|)', OUTCOMES);
      expectSubscriptions(calls.subscriptions).toBe('  ----^-!');
      expectSubscriptions(windows.subscriptions).toBe('------^--!');
      flush();
      expect(log).toEqual(['begun at 4']);
    });
  });

  it.each([
    ['during a step', 0, '---(s|)', '^--!'],
    ['during the delay, before any step', 4, '---(y|)', []],
  ])('is aborted by a second signal %s', (_, delay, expected, subscriptions) => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const calls = cold('     ------');
      const signal$ = hot('   ---s--');
      expectObservable(drained(scheduler, { calls }, { delay, signal$ }).outcome$).toBe(expected, OUTCOMES);
      expectSubscriptions(calls.subscriptions).toBe(subscriptions);
    });
  });
});

describe('the notifications of a service manager', () => {
  const STATUS = { a: 'starting', b: 'serving', c: 'unhealthy' };
  const STOPPING = ['STOPPING=1', 'STATUS=stopping after SIGTERM', 'EXTEND_TIMEOUT_USEC=12000000'];
  const MESSAGES = {
    ...{ a: ['STATUS=starting'], b: ['STATUS=serving'], c: ['STATUS=unhealthy'] },
    ...{ r: ['READY=1'], s: STOPPING, w: ['WATCHDOG=1'] },
  };
  function options(scheduler: TestScheduler, watchdog?: number): NotificationOptions {
    return { watchdog, stopTimeout: 12_000, scheduler };
  }

  it.each([
    ['each change of the status, ready once, and the end', 'a--aa-b--c--b', '----r--r', '--------s--s', 'a---r-b-(s|)'],
    ['never ready for a service that ends before it is', '  a----', '       ---r', '    --s-', '        a-(s|)'],
  ])('are %s', (_, status, ready, termination, expected) => {
    marbles(({ hot, cold, expectObservable, expectSubscriptions }, scheduler) => {
      const status$ = cold(status.trim(), STATUS);
      const ready$ = cold(ready.trim());
      const termination$ = hot(termination.trim(), { s: 'SIGTERM' });
      const messages$ = notifications({ status$, ready$, termination$ }, options(scheduler));
      expectObservable(messages$).toBe(expected.trim(), MESSAGES);
      expectSubscriptions(status$.subscriptions).toBe(`^${'-'.repeat(termination.trim().indexOf('s') - 1)}!`);
      expectSubscriptions(ready$.subscriptions).toBe(expected.includes('r') ? '^---!' : '^-!');
    });
  });

  it('are signs of life twice per period of the watchdog, from the start, also after the signal', () => {
    marbles(({ hot, expectObservable }, scheduler) => {
      const termination$ = hot(' -------s----', { s: 'SIGTERM' });
      const expected = '         w--w--ws-w--';
      const messages$ = notifications({ status$: NEVER, ready$: NEVER, termination$ }, options(scheduler, 6));
      expectObservable(messages$, '----------!').toBe(expected, MESSAGES);
    });
  });
});
