import fc from 'fast-check';
import { Histogram } from '../../bench/suite/load/histogram';

const SHARES = [0, 0.01, 0.5, 0.9, 0.99, 0.999, 1];
const RELATIVE_ERROR = 0.016;

describe('a histogram', () => {
  it('returns each quantile of the values with an error of at most 1.6 %', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 600_000_000 }), { minLength: 1, maxLength: 300 }), (values) => {
        const histogram = new Histogram();
        for (const value of values) histogram.add(value);
        const sorted = values.toSorted((one, other) => one - other);
        for (const share of SHARES.slice(1)) {
          const exact = sorted[Math.ceil(sorted.length * share) - 1]!;
          expect(Math.abs(histogram.at(share) - exact)).toBeLessThanOrEqual(exact * RELATIVE_ERROR);
        }
        expect(histogram.max).toBe(sorted.at(-1));
        expect(histogram.count).toBe(values.length);
      }),
    );
  });

  it('returns small values exactly', () => {
    const histogram = new Histogram();
    for (let value = 1; value <= 100; value += 1) histogram.add(value);

    expect([0.01, 0.5, 0.99, 1].map((share) => histogram.at(share))).toEqual([1, 50, 99, 100]);
  });

  it('without values has quantiles and a maximum of 0', () => {
    const histogram = new Histogram();

    expect([histogram.at(0.5), histogram.max, histogram.count]).toEqual([0, 0, 0]);
  });
});
