import { Batch, type BatchCall } from '../../src/counting/batch';
import { LARGEST_COUNT, type Operation } from '../../src/counting/operation';
import { DecisionError } from '../../src/counting/decision-error';
import { MemoryCounters } from '../../src/sinks/counters/memory/memory-counters';
import fc from '../support/data/properties';
import { operation, stopWhenOver } from '../support/data/operations';

interface Step {
  readonly key: string;
  readonly hits: number;
  readonly limit: number;
}

class Call implements BatchCall {
  isCancelled = false;
  outcome: readonly number[] | DecisionError | undefined;

  constructor(readonly operations: readonly Operation[]) {}

  settle(): void {
    this.outcome = this.operations.map(({ after }) => after);
  }

  fail(error: DecisionError): void {
    this.outcome = error;
  }
}

/** @param isGuarded whether the call's operations are one guarded step */
function call(steps: readonly Step[], isGuarded = false, windowSeconds = 60): Call {
  const group = isGuarded ? stopWhenOver() : undefined;
  return new Call(steps.map(({ key, hits, limit }) => operation(key, hits, { limit, windowSeconds, group })));
}

/** A call of operations written as `a+1` or `a-5`. */
function calls(...texts: readonly string[]): Call[] {
  return texts.map((text) =>
    call(text.split(' ').map((each) => ({ key: each[0] ?? '', hits: Number(each.slice(1)), limit: 10 }))),
  );
}

function sentBy(all: readonly Call[]): string {
  return new Batch(all).operations.map(({ key, hits }) => `${key}${hits < 0 ? '' : '+'}${hits}`).join(' ');
}

async function withCounters<T>(use: (counters: MemoryCounters) => T): Promise<T> {
  const counters = new MemoryCounters({ maxKeys: 1000, now: () => 0 });
  try {
    return use(counters);
  } finally {
    await counters.close();
  }
}

function send(counters: MemoryCounters, all: readonly Call[]): void {
  const window = new Batch(all);
  if (window.operations.length > 0) counters.apply(window.operations).subscribe((counts) => window.settle(counts));
}

describe('a merged window gives the counts of the same operations sent one by one', () => {
  function stepsOf(hits: fc.Arbitrary<number>, minLength: number) {
    const step = fc.record({ key: fc.constantFrom('a', 'b', 'c'), hits, limit: fc.integer({ min: 0, max: 12 }) });
    return fc.array(step, { minLength, maxLength: 4 });
  }
  const few = fc.oneof(
    fc.tuple(stepsOf(fc.integer({ min: -6, max: 6 }), 1), fc.constant(false)),
    fc.tuple(stepsOf(fc.nat(6), 2), fc.constant(true)),
  );
  const large = fc.constantFrom(1, 0, -1, 2 ** 32, LARGEST_COUNT, LARGEST_COUNT - 2 ** 32, 2 ** 52, -LARGEST_COUNT);

  it.each([
    ['exactly', few, Infinity],
    // All counts above the largest limit, 2^32 − 1, are judged alike.
    ['up to the largest limit where they saturate', fc.tuple(stepsOf(large, 1), fc.boolean()), 2 ** 32],
  ])('%s', async (_, oneCall, most) => {
    function judged({ outcome }: Call) {
      return Array.isArray(outcome) ? outcome.map((after: number) => Math.min(after, most)) : outcome;
    }
    const windows = fc.array(fc.array(oneCall, { maxLength: 12 }), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(windows, async (all) => {
        await withCounters((merged) =>
          withCounters((single) => {
            for (const window of all) {
              const [together, alone] = [0, 1].map(() => window.map(([steps, isGuarded]) => call(steps, isGuarded)));
              send(merged, together!);
              for (const one of alone!) send(single, [one]);
              expect(together!.map(judged)).toEqual(alone!.map(judged));
            }
            if (most === Infinity) expect(merged.size).toBe(single.size);
          }),
        );
      }),
      { numRuns: 500 },
    );
  });
});

describe('a window', () => {
  const most = LARGEST_COUNT - 2 ** 32;

  it.each([
    ['sends additions to one key as one operation', ['a+1', 'b+2', 'a+3', 'a+0'], 'a+4 b+2'],
    ['keeps negative hits at their position', ['a+1', 'a+2', 'a-5', 'a+3', 'a+4'], 'a+3 a-5 a+7'],
    ['merges up to the sum that shows each as over any limit', [`a+${most - 1}`, 'a+1', 'a+1'], `a+${most} a+1`],
    ['does not merge with a saturating addition', [`a+${LARGEST_COUNT}`, 'a+1'], `a+${LARGEST_COUNT} a+1`],
  ])('%s', (_, texts, sent) => {
    expect(sentBy(calls(...texts))).toBe(sent);
  });

  it('counts merged hits, and sends them with the longest of their windows', () => {
    expect(new Batch(calls('a+1', 'b+2', 'a+3', 'a+4', 'a+0')).mergedHits).toBe(7);
    const seconds = [60, 3600, 1].map((windowSeconds) => call([{ key: 'a', hits: 1, limit: 1 }], false, windowSeconds));
    expect(new Batch(seconds).operations).toMatchObject([
      { key: 'a', hits: 3, limit: { windowSeconds: 3600, requestsPerUnit: 1 } },
    ]);
  });

  it('sends the longest window in which hits are added, not of reads, and apart from the end of a window of the calendar', () => {
    function sentWindows(...of: readonly (readonly [hits: number, windowSeconds: number])[]) {
      const all = of.map(([hits, windowSeconds]) => call([{ key: 'a', hits, limit: 1 }], false, windowSeconds));
      return new Batch(all).operations.map(({ hits, limit: { windowSeconds } }) => [hits, windowSeconds]);
    }
    expect(sentWindows([0, 3600], [1, 60], [0, 3600], [2, 1])).toEqual([[3, 60]]);
    const [day, month] = [1_764_028_800, 1_764_547_200];
    expect(sentWindows([1, 60], [1, day], [1, month], [1, 604_800])).toEqual([
      [1, 60],
      [2, month],
      [1, 604_800],
    ]);
  });

  it('keeps guarded operations together and at their position', () => {
    const steps = ['a', 'b'].map((key) => ({ key, hits: 1, limit: 1 }));
    const [first, ...others] = calls('a+1', 'a+1', 'c+1', 'b+1');
    expect(sentBy([first!, call(steps, true), ...others])).toBe('a+1 a+1 b+1 a+1 c+1 b+1');
  });

  it('does not merge operations on keys that a map cannot find quickly, and counts them in order', async () => {
    for (const [length, operations] of [
      [4096, 2],
      [4097, 3],
    ] as const) {
      const key = 'x'.repeat(length);
      const all = [1, 2].flatMap((hits) => [call([{ key, hits, limit: 10 }]), ...calls(`a+${hits}`)]);
      expect(new Batch(all).operations).toHaveLength(operations);
      await withCounters((counters) => send(counters, all));
      expect(all.map(({ outcome }) => outcome)).toEqual([[1], [1], [3], [3]]);
    }
  });

  it('leaves out cancelled calls, which get no outcome', async () => {
    await withCounters((counters) => {
      const [cancelled, other] = calls('a+5', 'a+1');
      cancelled!.isCancelled = true;
      send(counters, [cancelled!, other!]);
      expect([cancelled!.outcome, other!.outcome]).toEqual([undefined, [1]]);
    });
  });

  it('fails only the calls of an operation that failed by itself, or every call when it fails as a whole', () => {
    const [error, late] = [new DecisionError('store_failed', 'no'), new DecisionError('store_timeout', 'late')];
    const all = calls('a+1', 'a+1 b+1', 'b+1');
    const window = new Batch(all);
    window.settle([error, 2]);
    expect(all.map(({ outcome }) => outcome)).toEqual([error, error, [2]]);
    window.fail(late);
    expect(all.map(({ outcome }) => outcome)).toEqual([late, late, late]);
  });
});
