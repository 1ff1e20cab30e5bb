import type { WindowsState } from '../../src/counting/algorithms/algorithm';
import { Batch } from '../../src/counting/batch';
import { ExpiringCounts, TimedCounts } from '../../src/counting/counts';
import { algorithmOf } from '../../src/counting/limit';
import { grantOf } from '../../src/counting/grant';
import { LARGEST_COUNT, type Operation } from '../../src/counting/operation';
import { run, simulate } from '../../src/counting/simulate';
import {
  type CallSketch,
  FEW_HITS,
  MANY_HITS,
  TestCall,
  anyCall,
  operationsOf,
  resultsOf,
} from '../support/data/calls';
import { operation, stopWhenOver } from '../support/data/operations';
import fc from '../support/data/properties';

/** In Unix seconds, 10 s before the end of an hour. */
const NOW = 1_764_003_590;

function emptyTable(): TimedCounts {
  const table = new TimedCounts(new ExpiringCounts({ maxKeys: 1000 }));
  table.now = NOW * 1000;
  return table;
}

describe('a simulated group that stops when one of its limits is over', () => {
  /**
   * A call written as `a+1 c+max`; in brackets, its operations are a group, and after `!` one that is over in any case.
   */
  function callOf(text: string, limit: number): readonly Operation[] {
    const [, isOver, grouped] = /^(!?)\[(.*)\]$/.exec(text) ?? [];
    const group = grouped === undefined ? undefined : stopWhenOver(isOver === '!');
    return (grouped ?? text).split(' ').map((each) => {
      return operation(each[0]!, Number(each.slice(1).replace('max', String(LARGEST_COUNT))), { limit, group });
    });
  }

  it.each<[what: string, limit: number, calls: Readonly<Record<string, readonly number[]>>]>([
    ['adds all while none exceeds its limit', 2, { '[a+1 b+2 c+0]': [1, 2, 0], 'c+0 a+1': [0, 2] }],
    ['adds only what exceeds its limit', 2, { 'a+1 b+2': [1, 2], '[a+1 b+2 c+1]': [1, 4, 0], 'a+1 c+1': [2, 1] }],
    ['always counts negative hits, and judges on the lowered count', 10, { 'a+10': [10], '[a-5 a+2 b+2]': [5, 7, 2] }],
    ['adds what is over after negative hits, too', 10, { 'a+10': [10], '[a-1 a+2 b+2]': [9, 11, 0] }],
    ['judges each on the count before the group', 2, { '[a+2 a+1]': [2, 3], '[b+1 a+0]': [0, 3] }],
    [
      'adds only what exceeds its limit when it is over',
      3,
      { '![a+3 b+4 b-1]': [0, 4, 3], '![a+1]': [0], '![a+4]': [4] },
    ],
    ['saturates', 10, { 'a+9': [9], '[a+max b+1]': [LARGEST_COUNT, 0], '[a-max a+2 b+1]': [0, 2, 1] }],
  ])('%s', (_, limit, calls) => {
    const table = emptyTable();
    for (const [text, counts] of Object.entries(calls)) {
      const call = callOf(text, limit);
      simulate(call, table);
      expect([text, call.map(({ countAfter }) => countAfter)]).toEqual([text, counts]);
    }
  });

  it('has as added hits what was added', () => {
    const call = callOf('[a+1 b+3 c-1]', 2);
    simulate(call, emptyTable());
    expect(call.map(({ addedHits }) => addedHits)).toEqual([0, 3, -1]);
  });
});

it('hits that are given back count in the window in which they were taken, and in no other', () => {
  const table = emptyTable();
  const algorithm = algorithmOf({ name: 'sliding_window', requestsPerUnit: 9, lengthSeconds: 60, burst: undefined });
  const { number } = algorithm.windowAt(algorithm.empty(table.now * 1000), 0)!;
  const used = [5, -2, -2].map((hits, at) => {
    const change = operation('k', hits, { algorithm });
    if (hits < 0) change.onlyInWindow = number;
    if (at === 2) table.now += 60_000;
    run([change], table);
    const { previous, current } = table.stateOf(change) as WindowsState;
    return `${previous} before ${current}`;
  });
  expect(used).toEqual(['0 before 5', '0 before 3', '3 before 0']);
});

it.each([
  ['a sixteenth of what is left', 50, 200, 18],
  ['what will be left at the end of the time', 50, 290, 9],
  ['what it was asked for', 7, 290, 7],
  ['nothing when it will be full then', 50, 299, 0],
])('a bucket lends at most %s', (_, wants, milliseconds, granted) => {
  const algorithm = algorithmOf({ name: 'token_bucket', requestsPerUnit: 1_000, lengthSeconds: 1, burst: 300 });
  const lent = operation('k', 0, { algorithm });
  lent.lease = { wants, milliseconds, sentAt: 0, granted: 0 };
  run([lent], emptyTable());
  expect(lent.lease.granted).toBe(granted);
});

describe('calls that are merged into batches', () => {
  /** Limits of two rates share a key. */
  function madeOf(call: CallSketch): readonly Operation[] {
    return operationsOf(call, (name) => name.replace('slower', 'slow'));
  }

  it.each([
    ['few hits', FEW_HITS],
    ['hits that saturate their counters', MANY_HITS],
  ])('have the counts and the outcomes that they have one by one, with %s', (_, hits) => {
    const [hour, day] = [NOW + 10, NOW + 10 + 86_400];
    const calls = fc.array(anyCall({ hits, windows: [1, 60, 60, 3600, hour, day] }), { maxLength: 8 });
    const batches = fc.array(fc.record({ pause: fc.constantFrom(0, 0, 0.3, 1, 8, 70, 4000), calls }), { maxLength: 5 });
    fc.assert(
      fc.property(batches, (all) => {
        const [merged, single] = [emptyTable(), emptyTable()];
        for (const { pause, calls: sketches } of all) {
          for (const table of [merged, single]) {
            table.now += pause * 1000;
            table.counts.removeOutside(table.now, table.now);
          }
          const together = sketches.map((sketch) => new TestCall(madeOf(sketch)));
          const batch = new Batch(together);
          batch.settle(run(batch.operations, merged));
          const alone = sketches.map(madeOf);
          for (const operations of alone) simulate(operations, single);
          expect(together.map(({ operations }) => resultsOf(operations))).toEqual(alone.map(resultsOf));
          expect(contentOf(merged, alone.flat())).toEqual(contentOf(single, alone.flat()));
        }
      }),
      { numRuns: 300 },
    );
  });

  function contentOf(table: TimedCounts, counters: readonly Operation[]) {
    const { size, bytes } = table.counts;
    return [size, bytes, ...counters.map((each) => (each.limit.algorithm ? table.stateOf(each) : table.countOf(each)))];
  }
});

it('a lease is granted a sixteenth of what is left of a limit, and none below two hits', () => {
  const grants = [160, 47, 32, 31, -5].map((left) => grantOf(5, left));
  expect([...grants, grantOf(1, 160)]).toEqual([5, 2, 2, 0, 0, 0]);
});
