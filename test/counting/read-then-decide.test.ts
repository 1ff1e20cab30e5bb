import { ExpiringCounts, TimedCounts } from '../../src/counting/counts';
import { readOf } from '../../src/counting/operation';
import { decidedOnRead, hitsOnRead, stopsWhenOver } from '../../src/counting/read-then-decide';
import { run } from '../../src/counting/simulate';
import { FEW_HITS, MANY_HITS, anyCall, operationsOf } from '../support/data/calls';
import { operation, stopWhenOver } from '../support/data/operations';
import fc from '../support/data/properties';

describe('operations that are decided on counts which were read before', () => {
  it('have the counts of one step, if there are no others', () => {
    const calls = fc.array(anyCall({ hits: fc.oneof(FEW_HITS, MANY_HITS) }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(fc.array(calls, { maxLength: 4 }), (batches) => {
        const [read, atOnce] = [0, 1].map(() => new TimedCounts(new ExpiringCounts({ maxKeys: 100 })));
        for (const sketches of batches) {
          const [batch, same] = [0, 1].map(() => sketches.flatMap((sketch) => operationsOf(sketch)));
          const decided = decidedOnRead(batch!, run(batch!.map(readOf), read!));
          expect(run(decided, read!)).toEqual(run(same!, atOnce!));
          expect(decided.some(stopsWhenOver)).toBe(false);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('take what could not be read as 0, and keep long keys apart', () => {
    const [one, other] = ['1', '2'].map((end) => 'x'.repeat(1000) + end);
    const group = stopWhenOver();
    const batch = [one!, other!].map((key) => operation(key, 1, { limit: 2, group }));
    expect(hitsOnRead(batch, [new Error('no'), 1])).toEqual([1, 1]);
    expect(hitsOnRead(batch, [2, 1])).toEqual([1, 0]);
  });

  it('find a counter at 0 that more hits are given back to than it has', () => {
    const given = operation('k', -5, { limit: 1 });
    const next = operation('k', 1, { limit: 1, group: stopWhenOver() });
    expect(hitsOnRead([given, next], [1, 1])).toEqual([-5, 1]);
  });
});
