import { nearThreshold } from '../../src/limiter/applied-limit';

describe('the near threshold, computed in single precision as in the Go service', () => {
  it.each([
    [90, 0.7, 63],
    [100, 0.29, 29],
    [10, 0.8, 8],
    [1, 0.8, 0],
    [0, 0.8, 0],
    [7, 1, 7],
    [7, 0, 0],
    // Single precision rounds these up, above the limit.
    [16_777_219, 1, 16_777_219],
    [4_294_967_295, 1, 4_294_967_295],
  ])('of %i × %f is %i', (requestsPerUnit, ratio, threshold) => {
    expect(nearThreshold(requestsPerUnit, ratio)).toBe(threshold);
  });
});
