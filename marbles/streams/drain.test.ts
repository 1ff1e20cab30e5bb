import { EMPTY } from 'rxjs';
import { type DrainStep, drain } from '../../src/streams/drain';
import { marbles } from '../support/marbles';

const drained = { kind: 'drained' } as const;

function scenario(delay = 0) {
  const failures: string[] = [];
  function onFailure(step: string, error: unknown): void {
    failures.push(`${step}: ${String(error)}`);
  }
  return { failures, delay, onBegin: (): void => undefined, onFailure };
}

describe('a drain', () => {
  it('runs its steps in order, each after the one before has ended', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const calls = cold('     --|');
      const windows = cold('    -w-|');
      const sinks = cold('         |');
      const expected = '      -----(d|)';
      const steps = named({ calls, windows, sinks });
      const signal$ = hot('   ---------');
      expectObservable(drain({ steps, signal$, deadline: 10, scheduler, ...scenario() })).toBe(expected, {
        d: drained,
      });
      expectSubscriptions(calls.subscriptions).toBe('    ^-!');
      expectSubscriptions(windows.subscriptions).toBe(' --^--!');
      expectSubscriptions(sinks.subscriptions).toBe('   -----(^!)');
    });
  });

  it('reports a step that fails and continues with the next one', () => {
    const { failures, ...rest } = scenario();
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const calls = cold('     --#', {}, new Error('stuck'));
      const windows = cold('    -|');
      const expected = '      ---(d|)';
      const steps = named({ calls, windows });
      const signal$ = hot('   ------');
      expectObservable(drain({ steps, signal$, deadline: 10, scheduler, ...rest })).toBe(expected, { d: drained });
      expectSubscriptions(windows.subscriptions).toBe('--^!');
    });
    expect(failures).toEqual(['calls: Error: stuck']);
  });

  it('is aborted at the deadline, and names the step that did not end', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const calls = cold('     --|');
      const windows = cold('    -----');
      const expected = '      -----(d|)';
      const steps = named({ calls, windows });
      const signal$ = hot('   ------');
      expectObservable(drain({ steps, signal$, deadline: 5, scheduler, ...scenario() })).toBe(expected, {
        d: { kind: 'aborted', why: 'deadline', step: 'windows' },
      });
      expectSubscriptions(windows.subscriptions).toBe('--^--!');
    });
  });

  it('is aborted by a second signal', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const calls = cold('     ------');
      const signal$ = hot('   ---s--');
      const expected = '      ---(d|)';
      const steps = named({ calls });
      expectObservable(drain({ steps, signal$, deadline: 5, scheduler, ...scenario() })).toBe(expected, {
        d: { kind: 'aborted', why: 'second signal', step: 'calls' },
      });
      expectSubscriptions(calls.subscriptions).toBe('^--!');
    });
  });

  it('begins its steps, and reports it, when the delay is over, to which the deadline is added', () => {
    const began: number[] = [];
    marbles(({ cold, hot, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const calls = cold('        --|');
      const windows = cold('         ---------');
      const expected = '         ---------(d|)';
      const steps = named({ calls, windows });
      const signal$ = hot('      ----------');
      function onBegin() {
        began.push(scheduler.now());
      }
      expectObservable(drain({ ...scenario(4), onBegin, steps, signal$, deadline: 5, scheduler })).toBe(expected, {
        d: { kind: 'aborted', why: 'deadline', step: 'windows' },
      });
      expectSubscriptions(calls.subscriptions).toBe('  ----^-!');
      expectSubscriptions(windows.subscriptions).toBe('------^--!');
      flush();
    });
    expect(began).toEqual([4]);
  });

  it('is aborted by a second signal during the delay, before any step', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const calls = cold('     --|');
      const signal$ = hot('   --s---');
      const expected = '      --(d|)';
      const steps = named({ calls });
      expectObservable(drain({ ...scenario(4), steps, signal$, deadline: 5, scheduler })).toBe(expected, {
        d: { kind: 'aborted', why: 'second signal', step: 'shutdown delay' },
      });
      expectSubscriptions(calls.subscriptions).toBe([]);
    });
  });

  it('without steps is done at once', () => {
    marbles(({ expectObservable }, scheduler) => {
      const expected = '      (d|)';
      expectObservable(drain({ steps: [], signal$: EMPTY, deadline: 5, scheduler, ...scenario() })).toBe(expected, {
        d: drained,
      });
    });
  });
});

function named(streams: Record<string, ReturnType<DrainStep['run']>>): DrainStep[] {
  return Object.entries(streams).map(([name, stream]) => ({ name, run: () => stream }));
}
