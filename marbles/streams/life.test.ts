import { NEVER, EMPTY, ignoreElements, timer } from 'rxjs';
import type { TestScheduler } from 'rxjs/testing';
import { type Connections, type DrainOptions, drain, shutdownDelay } from '../../src/streams/drain';
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

  /** A drain of these steps within 6 s. */
  function drained(
    scheduler: TestScheduler,
    steps: Readonly<Record<string, Cold>>,
    { delay = 0, signal$ = NEVER }: { readonly delay?: number; readonly signal$?: DrainOptions['signal$'] } = {},
  ) {
    const log: string[] = [];
    const outcome$ = drain({
      steps: Object.entries(steps).map(([name, stream]) => ({
        name,
        run: (within) => {
          log.push(`${name} within ${within}`);
          return stream;
        },
      })),
      ...{ signal$, deadline: 6_000, scheduler },
      delay$: delay === 0 ? EMPTY : timer(delay, scheduler).pipe(ignoreElements()),
      onBegin: () => log.push(`begun at ${scheduler.now()}`),
      onFailure: (step, error) => log.push(`${step}: ${String(error)}`),
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
      expect(log).toEqual(['begun at 1', 'calls within 5999', 'calls: Error: stuck', 'windows within 5999']);
    });
  });

  it.each([
    ['since the signal', 500, '6s (w|)', '500ms ^-!', '502ms ^ 5497ms !', 5_500],
    ['and at least 4.5 s after the delay', 3_000, '7500ms (w|)', '3s ^-!', '3002ms ^ 4497ms !', 4_500],
  ])(
    'is aborted at the deadline, %s, and names the step that did not end',
    (_, delay, expected, first, second, within) => {
      marbles(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
        const calls = cold('  --|');
        const windows = cold('-----');
        const { outcome$, log } = drained(scheduler, { calls, windows }, { delay });
        expectObservable(outcome$).toBe(expected, OUTCOMES);
        expectSubscriptions(calls.subscriptions).toBe(first);
        expectSubscriptions(windows.subscriptions).toBe(second);
        flush();
        expect(log).toEqual([`begun at ${delay}`, `calls within ${within}`, `windows within ${within}`]);
      });
    },
  );

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

describe('the shutdown delay', () => {
  const NONE: Connections = { open: 0, accepted: 7 };

  it.each([
    ['lasts as long as it is set while a connection is open', [{ open: 1, accepted: 7 }], '3s |'],
    ['ends after half a second if no connection is open', [NONE], '500ms |'],
    [
      'ends half a second after the last connection',
      [{ open: 2, accepted: 7 }, { open: 1, accepted: 7 }, NONE],
      '1500ms |',
    ],
    [
      'lasts while callers open a connection for each call, also if none is open at a look',
      Array.from({ length: 7 }, (_, look) => ({ open: 0, accepted: look })),
      '3s |',
    ],
    ['is never longer than it is set', [NONE], '200ms |', 200],
  ])('%s', (_, looks: readonly Connections[], expected, delay = 3_000) => {
    marbles(({ expectObservable }, scheduler) => {
      let look = 0;
      function connections(): Connections {
        look += 1;
        return looks[Math.min(look, looks.length) - 1] ?? NONE;
      }
      expectObservable(shutdownDelay(delay, connections, scheduler)).toBe(expected);
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
