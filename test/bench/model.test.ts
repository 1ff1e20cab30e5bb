import { Model, PASSING } from '../../bench/soak/model';
import { trendOf } from '../../bench/soak/report';
import { Histogram } from '../../bench/suite/load/interval';
import { RateLimitResponse, RateLimitResponse_Code as Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import fc from '../support/data/properties';

const LIMIT = 1_000;
const VALUES = 2_000;

function answer(count: number, passes: boolean): Buffer {
  const nothing = RateLimitResponse.decode(new Uint8Array());
  const currentLimit = { requestsPerUnit: LIMIT, unit: 6, name: '' };
  const status = { code: Code.OK, currentLimit, limitRemaining: LIMIT - count, durationUntilReset: undefined };
  const statuses = [status, { ...status, code: passes ? Code.OK : Code.OVER_LIMIT }];
  return Buffer.from(RateLimitResponse.encode({ ...nothing, overallCode: Code.OK, statuses }).finish());
}

/** Calls of the first value with these counts in their answers; undefined for a call that fails. */
function played(counts: readonly (number | undefined)[], passing = PASSING): Model {
  const model = new Model(2, VALUES);
  for (const [index, count] of counts.entries()) {
    const call = index * VALUES;
    model.send(call);
    if (count === undefined) model.fail(call);
    else model.respond(call, answer(count, count <= passing));
  }
  return model;
}

describe('the model of the soak', () => {
  it.each([
    ['each count once, and the store has all', [1, 2, 3], 3],
    ['in another order', [3, 1, 2], 3],
    ['a failed call that was counted', [1, undefined, 3], 3],
    ['a failed call that was not counted', [1, undefined, 2], 2],
  ] as const)('finds no contradiction: %s', (_, counts, stored) => {
    expect(played(counts).contradictions(new Map([[0, stored]]))).toEqual([]);
  });

  it.each([
    ['a count was given twice', [1, 2, 2], 3, /add up to 5/],
    ['a count was skipped', [1, 2, 4], 4, /3 calls were answered/],
    ['the store has lost a count', [1, 2, 3], 2, /2 are stored/],
    ['the store has counted a call twice', [1, 2, 3], 4, /4 are stored/],
    ['an answer is ahead of the store', [1, 2, undefined, 9], 4, /count 9/],
  ] as const)('finds a contradiction: %s', (_, counts, stored, reason) => {
    expect(played(counts).contradictions(new Map([[0, stored]]))).toEqual([expect.stringMatching(reason)]);
  });

  it('finds a contradiction when too many or too few calls pass a limit', () => {
    for (const passing of [PASSING - 1, PASSING + 1]) {
      const found = played([1, 2, 3, 4, 5, 6, 7], passing).contradictions(new Map([[0, 7]]));
      expect(found).toEqual([expect.stringContaining(`${passing} of 7 calls passed`)]);
    }
  });

  it('uses new values after a turnover', () => {
    const model = new Model(2, VALUES);
    const before = model.send(1);
    model.turnOver();

    expect([before, model.send(1), model.generations]).toEqual([1, VALUES + 1, 2]);
    expect([model.firstOfGeneration, model.end]).toEqual([VALUES, 2 * VALUES]);
  });
});

describe('the trend of the memory', () => {
  it('is the slope of the points after the first third, times their time, as a share of their median', () => {
    const settled = [3, 4, 5, 6, 7, 8].map((at) => [at, 100 + 2 * at] as const);
    const { median, growth } = trendOf([[0, 0], [1, 500], [2, 50], ...settled]);

    expect(median).toBe(112);
    expect(growth).toBeCloseTo((2 * 5) / 112);
  });

  it('is no growth for one point', () => {
    expect(trendOf([[1, 5]])).toEqual({ median: 5, growth: 0 });
  });
});

it('a histogram returns each quantile of the values with an error of at most 1.6 %, and small values exactly', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 600_000_000 }), { minLength: 1, maxLength: 300 }), (values) => {
      const histogram = new Histogram();
      for (const value of values) histogram.add(value);
      const sorted = values.toSorted((one, other) => one - other);
      for (const share of [0.01, 0.5, 0.9, 0.99, 0.999, 1]) {
        const exact = sorted[Math.ceil(sorted.length * share) - 1]!;
        expect(Math.abs(histogram.at(share) - exact)).toBeLessThanOrEqual(exact < 128 ? 0 : exact * 0.016);
      }
      expect([histogram.max, histogram.count]).toEqual([sorted.at(-1), values.length]);
    }),
  );
  expect([new Histogram().at(0.5), new Histogram().max]).toEqual([0, 0]);
});
