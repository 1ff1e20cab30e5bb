import fc from 'fast-check';
import { type CounterOperation, LARGEST_COUNT } from '../../src/limiter/counter-operation';
import { DecisionError } from '../../src/limiter/decision-error';
import { MemoryCounters } from '../../src/sinks/counters/memory/memory-counters';
import { type WindowCall, type WindowOperation, Window } from '../../src/streams/window';

interface Step {
  readonly key: string;
  readonly hits: number;
  readonly limit: number;
}

class Call implements WindowCall {
  isCancelled = false;
  outcome: readonly number[] | DecisionError | undefined;

  constructor(readonly operations: readonly WindowOperation[]) {}

  settle(): void {
    this.outcome = this.operations.map(({ after }) => after);
  }

  fail(error: DecisionError): void {
    this.outcome = error;
  }
}

/** @param isGuarded whether the call's operations are one guarded step */
function call(steps: readonly Step[], isGuarded = false, windowSeconds = 60): Call {
  const guard = isGuarded ? { operations: steps.length } : undefined;
  return new Call(steps.map((step) => ({ ...step, windowSeconds, guard, after: -1 })));
}

function add(key: string, hits: number): Call {
  return call([{ key, hits, limit: 10 }]);
}

async function withCounters<T>(use: (counters: MemoryCounters) => T): Promise<T> {
  const counters = new MemoryCounters({ maxKeys: 1000, now: () => 0 });
  try {
    return use(counters);
  } finally {
    await counters.close();
  }
}

function send(counters: MemoryCounters, calls: readonly Call[]): void {
  const window = new Window(calls);
  if (window.batch.length > 0) counters.apply(window.batch).subscribe((counts) => window.settle(counts));
}

function arbitraryStep(hits: fc.Arbitrary<number>) {
  return fc.record({ key: fc.constantFrom('a', 'b', 'c'), hits, limit: fc.integer({ min: 0, max: 12 }) });
}
const arbitraryCall = fc.oneof(
  fc
    .array(arbitraryStep(fc.integer({ min: -6, max: 6 })), { minLength: 1, maxLength: 4 })
    .map((steps) => ({ steps, isGuarded: false })),
  fc
    .array(arbitraryStep(fc.integer({ min: 0, max: 6 })), { minLength: 2, maxLength: 4 })
    .map((steps) => ({ steps, isGuarded: true })),
);

it('a merged window gives exactly the counts of the same operations sent one by one', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(arbitraryCall, { maxLength: 12 }), { maxLength: 4 }), async (windows) => {
      await withCounters((merged) =>
        withCounters((single) => {
          for (const window of windows) {
            const together = window.map(({ steps, isGuarded }) => call(steps, isGuarded));
            send(merged, together);
            const alone = window.map(({ steps, isGuarded }) => call(steps, isGuarded));
            for (const one of alone) send(single, [one]);
            expect(together.map(({ outcome }) => outcome)).toEqual(alone.map(({ outcome }) => outcome));
          }
          expect(merged.size).toBe(single.size);
        }),
      );
    }),
    { numRuns: 2000 },
  );
});

it('a merged window judges hits that saturate a counter like the same operations sent one by one', async () => {
  const hits = fc.constantFrom(1, 0, -1, 2 ** 32, LARGEST_COUNT, LARGEST_COUNT - 2 ** 32, 2 ** 52, -LARGEST_COUNT);
  const aCall = fc.record({
    steps: fc.array(arbitraryStep(hits), { minLength: 1, maxLength: 3 }),
    isGuarded: fc.boolean(),
  });
  /** All counts above the largest limit, 2^32 − 1, are judged alike. */
  function judged({ outcome }: Call) {
    return Array.isArray(outcome) ? outcome.map((after: number) => Math.min(after, 2 ** 32)) : outcome;
  }
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(aCall, { maxLength: 8 }), { maxLength: 3 }), async (windows) => {
      await withCounters((merged) =>
        withCounters((single) => {
          for (const window of windows) {
            const together = window.map(({ steps, isGuarded }) => call(steps, isGuarded));
            send(merged, together);
            const alone = window.map(({ steps, isGuarded }) => call(steps, isGuarded));
            for (const one of alone) send(single, [one]);
            expect(together.map(judged)).toEqual(alone.map(judged));
          }
        }),
      );
    }),
    { numRuns: 2000 },
  );
});

describe('a window', () => {
  function hitsOf(batch: readonly CounterOperation[]) {
    return batch.map(({ key, hits }) => `${key}${hits >= 0 ? '+' : ''}${hits}`);
  }

  it('sends additions to one key as one operation', () => {
    const window = new Window([add('a', 1), add('b', 2), add('a', 3), add('a', 0)]);
    expect(hitsOf(window.batch)).toEqual(['a+4', 'b+2']);
    expect(window.mergedHits).toBe(3);
  });

  it('sends them with the longest window', () => {
    const seconds = [60, 3600, 1].map((windowSeconds) => call([{ key: 'a', hits: 1, limit: 1 }], false, windowSeconds));
    expect(new Window(seconds).batch).toMatchObject([{ key: 'a', hits: 3, windowSeconds: 3600 }]);
  });

  it('keeps negative hits at their position between additions', () => {
    const window = new Window([add('a', 1), add('a', 2), add('a', -5), add('a', 3), add('a', 4)]);
    expect(hitsOf(window.batch)).toEqual(['a+3', 'a-5', 'a+7']);
  });

  it('keeps guarded operations together and at their position', () => {
    const guarded = call(
      [
        { key: 'a', hits: 1, limit: 1 },
        { key: 'b', hits: 1, limit: 1 },
      ],
      true,
    );
    const window = new Window([add('a', 1), guarded, add('a', 1), add('c', 1), add('b', 1)]);
    expect(hitsOf(window.batch)).toEqual(['a+1', 'a+1', 'b+1', 'a+1', 'c+1', 'b+1']);
  });

  it('merges additions only as long as a saturated count shows that each of them is over any limit', () => {
    const most = LARGEST_COUNT - 2 ** 32;
    expect(hitsOf(new Window([add('a', most - 1), add('a', 1), add('a', 1)]).batch)).toEqual([`a+${most}`, 'a+1']);
    expect(hitsOf(new Window([add('a', LARGEST_COUNT), add('a', 1)]).batch)).toEqual([`a+${LARGEST_COUNT}`, 'a+1']);
  });

  it('gives each of its calls the saturated count', async () => {
    await withCounters((counters) => {
      send(counters, [add('a', LARGEST_COUNT)]);
      const calls = [add('a', 1), add('a', 0), add('a', 5)];
      send(counters, calls);
      expect(calls.map(({ outcome }) => outcome)).toEqual([[LARGEST_COUNT], [LARGEST_COUNT], [LARGEST_COUNT]]);
    });
  });

  it('does not merge operations on keys that a map cannot find quickly, and counts them in order', async () => {
    const long = 'x'.repeat(5000);
    const calls = [add(long, 1), add('a', 1), add(long, 2), add('a', 2)];
    expect(new Window(calls).batch.map(({ hits }) => hits)).toEqual([1, 3, 2]);
    await withCounters((counters) => send(counters, calls));
    expect(calls.map(({ outcome }) => outcome)).toEqual([[1], [1], [3], [3]]);
  });

  it('leaves out cancelled calls, which get no outcome', async () => {
    await withCounters((counters) => {
      const [cancelled, other] = [add('a', 5), add('a', 1)];
      cancelled.isCancelled = true;
      send(counters, [cancelled, other]);
      expect(cancelled.outcome).toBeUndefined();
      expect(other.outcome).toEqual([1]);
    });
  });

  it('fails only the calls of an operation that failed by itself', () => {
    const [one, both, other] = [
      add('a', 1),
      call([
        { key: 'a', hits: 1, limit: 1 },
        { key: 'b', hits: 1, limit: 1 },
      ]),
      add('b', 1),
    ];
    const window = new Window([one, both, other]);
    const error = new DecisionError('store_failed', 'no');
    window.settle([error, 2]);
    expect([one.outcome, both.outcome, other.outcome]).toEqual([error, error, [2]]);
  });

  it('fails every call when it fails as a whole', () => {
    const calls = [add('a', 1), add('b', 1)];
    const error = new DecisionError('store_timeout', 'late');
    new Window(calls).fail(error);
    expect(calls.map(({ outcome }) => outcome)).toEqual([error, error]);
  });
});
