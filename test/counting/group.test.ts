import { type Denies, judgeReservation } from '../../src/counting/group';
import { LARGEST_COUNT } from '../../src/counting/operation';

// What a group of operations adds: simulate.test.ts.

/**
 * A step written as `a+5`, on a counter with a limit of 10, after what it denies: `alone` is !, `together` &, `never`
 * nothing.
 */
function stepOf(text: string) {
  const [, sign, key, hits] = /^([!&]?)(\w)\+(\w+)$/.exec(text)!;
  const denies: Denies = sign === '!' ? 'alone' : sign === '&' ? 'together' : 'never';
  return {
    key: key!,
    hits: hits === 'max' ? LARGEST_COUNT : Number(hits),
    limit: { requestsPerUnit: 10, lengthSeconds: 60 },
    denies,
  };
}

describe('a reservation of which the counters a, b and c have 4, 8 and 10 hits', () => {
  const stored: Readonly<Record<string, number>> = { a: 4, b: 8, c: 10 };
  const COUNTERS = { count: (key: string) => stored[key]!, state: fail };

  it.each<[what: string, steps: string, isDenied: boolean, counts: readonly number[], added: readonly number[]]>([
    ['is counted within its limits', '!a+6 &b+2 !c+0', false, [10, 10, 10], [6, 2, 0]],
    ['is denied by one limit alone', '!a+6 !b+3', true, [4, 11], [0, 0]],
    ['is denied by all quotas together', '&b+3 &c+1 !a+1', true, [11, 11, 4], [0, 0, 0]],
    ['is denied by its only quota', '&b+3', true, [11], [0]],
    ['is not denied by one of several quotas', '&b+3 &a+1', false, [11, 5], [3, 1]],
    ['is not denied by a limit in shadow mode', 'b+9 !a+1', false, [17, 5], [9, 1]],
    ['counts twice on a counter that it has twice', '!a+3 !a+3', false, [7, 10], [3, 3]],
    ['is denied where both exceed it', '!a+3 !a+4', true, [4, 11], [0, 0]],
    ['saturates its counters', 'a+max a+1', false, [LARGEST_COUNT, LARGEST_COUNT], [LARGEST_COUNT - 4, 0]],
  ])('%s', (_, steps, isDenied, counts, added) => {
    const judged = judgeReservation(steps.split(' ').map(stepOf), false, COUNTERS);
    expect(judged.isDenied).toBe(isDenied);
    expect(judged.steps.map(({ count }) => count)).toEqual(counts);
    expect(judged.steps.map((step) => step.added)).toEqual(added);
  });

  it('has the counts as they are, and above their limits with its hits, when it is denied in any case', () => {
    const judged = judgeReservation(['a+1', '!b+3'].map(stepOf), true, COUNTERS);
    expect(judged).toMatchObject({
      isDenied: true,
      steps: [
        { count: 4, added: 0 },
        { count: 11, added: 0 },
      ],
    });
  });
});

function fail(): never {
  throw new Error('no algorithm decides');
}
