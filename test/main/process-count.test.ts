import { availableParallelism } from 'node:os';
import { processCount, usableCores } from '../../src/main/process-count';

describe('the number of workers', () => {
  it('is the value of WORKERS', () => {
    expect(processCount(3)).toBe(3);
  });

  it('is at most that of the cores with auto', () => {
    expect(processCount('auto')).toBeGreaterThanOrEqual(1);
    expect(processCount('auto')).toBeLessThanOrEqual(availableParallelism());
  });

  it.each([
    [8, [undefined, undefined], 8],
    [8, ['max 100000', undefined], 8],
    [8, ['200000 100000\n', undefined], 2],
    [8, ['250000 100000', undefined], 2],
    [8, ['50000 100000', undefined], 1],
    [2, ['400000 100000', undefined], 2],
    [8, [undefined, '-1\n 100000\n'], 8],
    [8, [undefined, '300000\n 100000\n'], 3],
    [8, ['nonsense', undefined], 8],
  ])('is with auto on %i cores and the limits %j of a container: %i', (cores, quotas, expected) => {
    expect(usableCores(cores, quotas)).toBe(expected);
  });
});
