import { unixClock } from '../../../src/sinks/traces/unix-clock';

describe('the clock of spans', () => {
  let steady: number;
  let system: number;
  function pass(milliseconds: number): void {
    steady += milliseconds;
    system += milliseconds;
  }
  function started() {
    steady = 5.5;
    system = 1_000_000_000_000;
    return unixClock(
      () => steady,
      () => Math.floor(system),
    );
  }

  it('tells Unix time in parts of a millisecond', () => {
    const now = started();
    pass(0.25);
    expect(now()).toBe(1_000_000_000_000.25);
  });

  it('runs evenly while the system’s clock is adjusted a little', () => {
    const now = started();
    system += 20;
    pass(1);
    expect(now()).toBe(1_000_000_000_001);
    system -= 40;
    pass(1);
    expect(now()).toBe(1_000_000_000_002);
  });

  it.each([-3_600_000, 3_600_000])('follows the system’s clock when that is set (by %i ms)', (shift) => {
    const now = started();
    system += shift;
    pass(1);
    expect(now()).toBe(1_000_000_000_001 + shift);
    pass(1.5);
    expect(now()).toBe(1_000_000_000_002.5 + shift);
  });
});
