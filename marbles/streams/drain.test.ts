import { EMPTY } from 'rxjs';
import { type DrainStep, drain } from '../../src/streams/drain';
import { marbles } from '../support/marbles';

const drained = { kind: 'drained' } as const;

function scenario(): { failures: string[]; onFailure: (step: string, error: unknown) => void } {
  const failures: string[] = [];
  return { failures, onFailure: (step, error) => failures.push(`${step}: ${String(error)}`) };
}

describe('a drain', () => {
  it('ends one thing after another, each when the one before has ended', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const door = cold('     --|');
      const windows = cold('    -w-|');
      const sinks = cold('         |');
      const expected = '      -----(d|)';
      const steps = named({ door, windows, sinks });
      const signal$ = hot('   ---------');
      expectObservable(drain({ steps, signal$, deadline: 10, scheduler, ...scenario() })).toBe(expected, {
        d: drained,
      });
      expectSubscriptions(door.subscriptions).toBe('    ^-!');
      expectSubscriptions(windows.subscriptions).toBe(' --^--!');
      expectSubscriptions(sinks.subscriptions).toBe('   -----(^!)');
    });
  });

  it('goes on after a step that fails, and tells of it', () => {
    const { failures, onFailure } = scenario();
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const door = cold('     --#', {}, new Error('stuck'));
      const windows = cold('    -|');
      const expected = '      ---(d|)';
      const steps = named({ door, windows });
      const signal$ = hot('   ------');
      expectObservable(drain({ steps, signal$, deadline: 10, scheduler, onFailure })).toBe(expected, { d: drained });
      expectSubscriptions(windows.subscriptions).toBe('--^!');
    });
    expect(failures).toEqual(['door: Error: stuck']);
  });

  it('is cut short at the deadline, naming the step that did not end', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const door = cold('     --|');
      const windows = cold('    -----');
      const expected = '      -----(d|)';
      const steps = named({ door, windows });
      const signal$ = hot('   ------');
      expectObservable(drain({ steps, signal$, deadline: 5, scheduler, ...scenario() })).toBe(expected, {
        d: { kind: 'cut short', why: 'deadline', step: 'windows' },
      });
      expectSubscriptions(windows.subscriptions).toBe('--^--!');
    });
  });

  it('is cut short by a second signal', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }, scheduler) => {
      const door = cold('     ------');
      const signal$ = hot('   ---s--');
      const expected = '      ---(d|)';
      const steps = named({ door });
      expectObservable(drain({ steps, signal$, deadline: 5, scheduler, ...scenario() })).toBe(expected, {
        d: { kind: 'cut short', why: 'second signal', step: 'door' },
      });
      expectSubscriptions(door.subscriptions).toBe('^--!');
    });
  });

  it('of nothing is done at once', () => {
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
