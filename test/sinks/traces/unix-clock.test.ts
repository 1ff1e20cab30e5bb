import { unixClock } from '../../../src/sinks/traces/unix-clock';

describe('unixClock', () => {
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

  it('returns Unix time with fractions of a millisecond', () => {
    const now = started();
    pass(0.25);
    expect(now()).toBe(1_000_000_000_000.25);
  });

  it('ignores small adjustments of the system clock', () => {
    const now = started();
    system += 20;
    pass(1);
    expect(now()).toBe(1_000_000_000_001);
    system -= 40;
    pass(1);
    expect(now()).toBe(1_000_000_000_002);
  });

  it.each([-3_600_000, 3_600_000])('follows the system clock when it is set (by %i ms)', (shift) => {
    const now = started();
    system += shift;
    pass(1);
    expect(now()).toBe(1_000_000_000_001 + shift);
    pass(1.5);
    expect(now()).toBe(1_000_000_000_002.5 + shift);
  });
});
