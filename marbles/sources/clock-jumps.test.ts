import type { TestScheduler } from 'rxjs/testing';
import { clockJumps } from '../../src/sources/clock-jumps';
import { marbles } from '../support/marbles';

const HOUR = 3_600_000;

/** The clocks of a machine in virtual time, whose system clock is set at these times by these milliseconds. */
function clocksOf(scheduler: TestScheduler, jumps: readonly (readonly [at: number, by: number])[]) {
  return {
    system: () =>
      1_700_000_000_000 + scheduler.now() + jumps.reduce((sum, [at, by]) => (at < scheduler.now() ? sum + by : sum), 0),
    monotonic: () => 5_000 + scheduler.now(),
  };
}

describe('the jumps of the system clock', () => {
  it('are emitted once each, within a second, with how far and in which direction', () => {
    marbles(({ expectObservable }, scheduler) => {
      const clocks = clocksOf(scheduler, [
        [1500, 2 * HOUR],
        [4500, -2 * HOUR],
      ]);
      expectObservable(clockJumps(clocks, scheduler), '8s !').toBe('2s a 2999ms b', { a: 2 * HOUR, b: -2 * HOUR });
    });
  });

  it('do not include adjustments below a second, as long as each is one', () => {
    marbles(({ expectObservable }, scheduler) => {
      const clocks = clocksOf(scheduler, [
        [1500, 999],
        [2500, -999],
        [3500, 999],
      ]);
      expectObservable(clockJumps(clocks, scheduler), '8s !').toBe('');
    });
  });

  it('are not emitted for a clock that runs evenly, however late the subscription', () => {
    marbles(({ expectObservable }, scheduler) => {
      const clocks = clocksOf(scheduler, [[500, HOUR]]);
      expectObservable(clockJumps(clocks, scheduler), '1s ^ 8s !').toBe('');
    });
  });
});
