import fc from 'fast-check';
import { mergeOffenders } from '../../../src/limiter/offenders/merge-offenders';
import type { OffenderSummary } from '../../../src/limiter/offenders/offender';
import { SpaceSaving } from '../../../src/limiter/offenders/space-saving';

type Listed = OffenderSummary['offenders'][number];

function listed(key: string, limited: number, error = 0): Listed {
  return { key, domain: 'shop', rule: 'shop.user', descriptor: `user=${key}`, isShadow: false, limited, error };
}

function summaryOf(capacity: number, keys: readonly string[], since = 0): OffenderSummary {
  const sketch = new SpaceSaving<never>(capacity);
  for (const key of keys) {
    const slot = sketch.find(key);
    if (slot === undefined) sketch.admit(key);
    else sketch.increment(slot);
  }
  return {
    since,
    floor: sketch.floor,
    offenders: sketch.slots().map(({ key, count, error }) => listed(key, count, error)),
  };
}

describe('merged summaries of offenders', () => {
  it('add up, and begin with the earliest', () => {
    const parts = [
      { since: 600, floor: 0, offenders: [listed('anna', 5), listed('ben', 2)] },
      { since: 300, floor: 0, offenders: [listed('ben', 4, 1)] },
    ];
    expect(mergeOffenders(parts, 10)).toEqual({
      since: 300,
      floor: 0,
      offenders: [listed('ben', 6, 1), listed('anna', 5)],
    });
  });

  it('assume the floor of a part that does not list an offender', () => {
    const parts = [
      { since: 0, floor: 3, offenders: [listed('anna', 9), listed('ben', 3, 2)] },
      { since: 0, floor: 0, offenders: [listed('eva', 1)] },
    ];
    expect(mergeOffenders(parts, 10).offenders).toEqual([listed('anna', 9), listed('eva', 4, 3), listed('ben', 3, 2)]);
  });

  it('raise the floor to what they leave out', () => {
    const parts = [{ since: 0, floor: 0, offenders: [listed('anna', 9), listed('ben', 4), listed('eva', 3)] }];
    expect(mergeOffenders(parts, 1)).toMatchObject({ floor: 4, offenders: [listed('anna', 9)] });
  });

  it('hold the bounds of one sketch, whatever part of the calls each has counted', () => {
    const streams = fc.array(fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 2 })), {
      maxLength: 400,
    });
    fc.assert(
      fc.property(streams, fc.integer({ min: 1, max: 12 }), (calls, capacity) => {
        const parts = [0, 1, 2].map((part) =>
          summaryOf(
            capacity,
            calls.filter(([, of]) => of === part).map(([key]) => String(key)),
          ),
        );
        const { floor, offenders } = mergeOffenders(parts, capacity);
        const exact = new Map<string, number>();
        for (const [key] of calls) exact.set(String(key), (exact.get(String(key)) ?? 0) + 1);
        expect(floor).toBeLessThanOrEqual(Math.ceil(calls.length / capacity) * 2);
        for (const { key, limited, error } of offenders) {
          const truth = exact.get(key) ?? 0;
          expect(limited).toBeGreaterThanOrEqual(truth);
          expect(limited - error).toBeLessThanOrEqual(truth);
          exact.delete(key);
        }
        for (const truth of exact.values()) expect(truth).toBeLessThanOrEqual(floor);
      }),
      { numRuns: 300 },
    );
  });
});
