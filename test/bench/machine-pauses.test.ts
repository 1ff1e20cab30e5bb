import fc from 'fast-check';
import { measurePauses, waitAt } from '../../bench/suite/measure/machine-pauses';

describe('the pauses of the machine', () => {
  it.each([
    ['no pause', [], 0],
    ['a pause in which fewer calls come than may wait', [9], 0],
    ['one of 20 ms in 1 s: 1 % of the calls come in its first 10 ms and wait for longer than 10 ms', [20], 10],
    ['two of 20 ms: 1 % come in the first 5 ms of either', [20, 20], 15],
    ['a short one beside a long one', [30, 1], 20],
  ] as const)('are turned into the wait that 99 %% of the calls do not exceed: %s', (_, pauses, wait) => {
    expect(waitAt(0.99, pauses, 1_000)).toBeCloseTo(wait, 9);
  });

  it('are exceeded by exactly the rest of the calls', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0.05, max: 50, noNaN: true }), { minLength: 1, maxLength: 100 }),
        fc.constantFrom(0.9, 0.99, 0.999),
        (pauses, share) => {
          const wait = waitAt(share, pauses, 10_000);
          const exceeding = pauses.reduce((sum, pause) => sum + Math.max(0, pause - wait), 0) / 10_000;
          if (wait > 0) expect(exceeding).toBeCloseTo(1 - share, 9);
          else expect(exceeding).toBeLessThanOrEqual(1 - share + 1e-9);
        },
      ),
    );
  });

  it('are measured on all cores at once', async () => {
    const { p99, p999, longest } = await measurePauses(50);

    expect([p99, p999, longest]).toEqual([p99, p999, longest].toSorted((one, other) => one - other));
  });
});
