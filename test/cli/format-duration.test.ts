import { formatDuration } from '../../src/cli/client/format-duration';

describe('formatDuration', () => {
  it.each([
    [0n, 0, '0s'],
    [42n, 0, '42s'],
    [60n, 0, '1m'],
    [15_023n, 0, '4h10m23s'],
    [3600n, 0, '1h'],
    [3605n, 0, '1h5s'],
    [604_799n, 0, '6d23h59m59s'],
    [31_536_000n, 0, '365d'],
    [1n, 500_000_000, '1.5s'],
    [60n, 1_000_000, '1m0.001s'],
    [-1n, -500_000_000, '-1.5s'],
  ])('shows %d seconds and %d nanoseconds as %s', (seconds, nanos, text) => {
    expect(formatDuration({ seconds, nanos })).toBe(text);
  });
});
