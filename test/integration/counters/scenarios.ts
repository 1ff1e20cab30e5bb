import fc from 'fast-check';
import { firstValueFrom } from 'rxjs';
import type { Count, CounterOperation, Guard } from '../../../src/limiter/counter-operation';
import { DecisionError } from '../../../src/limiter/decision-error';
import type { CounterLane, Counters } from '../../../src/streams/ports/counters';
import { LaneClient } from '../../support/clients/lane-client';
import { until } from '../../support/waiting/until';

const LARGEST = Number.MAX_SAFE_INTEGER;

let prefixes = 0;

/** Returns a function that puts a prefix which no other scenario uses before a text. */
function freshKeys(): (text?: string) => string {
  prefixes += 1;
  const prefix = `scenario_${prefixes}_`;
  return (text = '') => prefix + text;
}

export function operation(key: string, hits: number, more: Partial<CounterOperation> = {}): CounterOperation {
  return { key, hits, windowSeconds: 60, guard: undefined, limit: 0, ...more };
}

/**
 * Applies a batch, the operations of each lane at the same time. Rejects when every lane fails as a whole; when only some do, their
 * operations get the error. A guard over several lanes is a call of its own, as in the decision path.
 */
export async function apply(counters: Counters, ...batch: readonly CounterOperation[]): Promise<readonly Count[]> {
  const counts: Count[] = Array.from({ length: batch.length });
  const byLane = new Map<CounterLane, number[]>();
  const spread = new Map<Guard, number[]>();
  for (const [index, { guard }] of batch.entries()) {
    const lanes = new Set(batch.filter((each) => each.guard === guard).map((each) => counters.laneOf(each)));
    if (guard !== undefined && lanes.size > 1) append(spread, guard, index);
    else append(byLane, counters.laneOf(batch[index] as CounterOperation), index);
  }
  using client = new LaneClient(counters);
  const outcomes = await Promise.allSettled([
    ...[...byLane].map(async ([lane, indices]) => {
      const results = await firstValueFrom(lane.apply(indices.map((index) => batch[index] as CounterOperation)));
      for (const [at, index] of indices.entries()) counts[index] = results[at] as Count;
    }),
    ...[...spread.values()].map(async (indices) => {
      const results = await client.call(indices.map((index) => batch[index] as CounterOperation));
      for (const [at, index] of indices.entries()) counts[index] = results[at] as Count;
    }),
  ]);
  const errors = outcomes.flatMap((outcome) =>
    outcome.status === 'rejected' ? [outcome.reason as DecisionError] : [],
  );
  if (errors.length === outcomes.length && errors.length > 0) throw errors[0];
  return counts.map((count) => count ?? errors[0]);
}

function append<K>(lists: Map<K, number[]>, key: K, index: number): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [index]);
  else list.push(index);
}

/** The operations under one guard, each with the limit given. */
function guarded(limit: number, ...operations: readonly CounterOperation[]): readonly CounterOperation[] {
  const guard: Guard = { operations: operations.length };
  return operations.map((each) => ({ ...each, guard, limit }));
}

/**
 * The behaviour that all counter stores have in common. Each scenario has its own keys, so that scenarios can share a store.
 *
 * @param store returns the store under test; called when a scenario begins
 */
export function countingScenarios(store: () => Counters): void {
  it('adds hits, to each key separately', async () => {
    const key = freshKeys();
    expect(await apply(store(), operation(key('a'), 1), operation(key('b'), 5))).toEqual([1, 5]);
    expect(await apply(store(), operation(key('a'), 2))).toEqual([3]);
  });

  it('applies the operations of a batch in order, also those on the same key', async () => {
    const key = freshKeys()();
    const steps = [5, -2, 1, 0, -10, 3].map((hits) => operation(key, hits));
    expect(await apply(store(), ...steps)).toEqual([5, 3, 4, 4, 0, 3]);
  });

  it('reads with 0 hits, and returns 0 for an absent key', async () => {
    const key = freshKeys();
    await apply(store(), operation(key('a'), 7));
    expect(await apply(store(), operation(key('a'), 0), operation(key('absent'), 0))).toEqual([7, 0]);
  });

  it('subtracts down to 0 and not below, and leaves an absent key absent', async () => {
    const key = freshKeys();
    await apply(store(), operation(key('a'), 3));
    const steps = [operation(key('a'), -2), operation(key('a'), -2), operation(key('absent'), -2)];
    expect(await apply(store(), ...steps)).toEqual([1, 0, 0]);
    expect(await apply(store(), operation(key('a'), 1), operation(key('absent'), 1))).toEqual([1, 1]);
  });

  it('removes a counter when its window has passed', async () => {
    const key = freshKeys()();
    await apply(store(), operation(key, 4, { windowSeconds: 1 }));
    await until(
      'the counter has expired',
      async () => (await apply(store(), operation(key, 0, { windowSeconds: 1 })))[0] === 0,
    );
    expect(await apply(store(), operation(key, 1, { windowSeconds: 1 }))).toEqual([1]);
  });

  it.each([
    ['blanks and line ends', 'a b\r\nc\td'],
    ['braces', '{}{a}b}'],
    ['other scripts', 'schlüssel_鍵_🔑'],
    ['nothing but separators', '__'],
    ['NUL', 'a\u0000b'],
    ['a long text', 'x'.repeat(2000)],
  ])('counts on keys with %s', async (_, text) => {
    const key = freshKeys()(text);
    expect(await apply(store(), operation(key, 1))).toEqual([1]);
    expect(await apply(store(), operation(key, 1), operation(`${key}_`, 1))).toEqual([2, 1]);
  });

  it('applies a batch with more keys than one script call takes', async () => {
    const key = freshKeys();
    const batch = Array.from({ length: 1000 }, (_, index) => operation(key(String(index % 900)), 1 + (index % 3)));
    const model = new Map<string, number>();
    const expected = batch.map(({ key: each, hits }) => {
      const count = (model.get(each) ?? 0) + hits;
      model.set(each, count);
      return count;
    });
    expect(await apply(store(), ...batch)).toEqual(expected);
  });

  it('counts exactly up to 2^53 − 1; beyond it only that operation fails, and the count stays', async () => {
    const key = freshKeys();
    expect(await apply(store(), operation(key('big'), LARGEST - 1))).toEqual([LARGEST - 1]);
    const [full, over, other] = await apply(
      store(),
      operation(key('big'), 1),
      operation(key('big'), 1),
      operation(key('other'), 1),
    );
    expect(full).toBe(LARGEST);
    expect(over).toBeInstanceOf(DecisionError);
    expect(over).toMatchObject({ code: 'store_failed', message: expect.stringContaining('2^53') });
    expect(other).toBe(1);
    expect(await apply(store(), operation(key('big'), 0), operation(key('big'), -LARGEST))).toEqual([LARGEST, 0]);
  });

  it('counts negative hits under a guard always, and judges the additions after them on the lowered count', async () => {
    const key = freshKeys();
    await apply(store(), operation(key('a'), 10), operation(key('b'), 10));
    const batch = guarded(10, operation(key('a'), -5), operation(key('a'), 2), operation(key('c'), 2));
    expect(await apply(store(), ...batch)).toEqual([5, 7, 2]);
    const full = guarded(10, operation(key('b'), -1), operation(key('b'), 2), operation(key('c'), 2));
    expect(await apply(store(), ...full)).toEqual([9, 11, 2]);
  });

  it('adds all operations of a guard while none exceeds its limit', async () => {
    const key = freshKeys();
    const batch = guarded(2, operation(key('a'), 1), operation(key('b'), 2));
    expect(await apply(store(), ...batch)).toEqual([1, 2]);
  });

  it('adds only the operations that exceed their limit when one of a guard does', async () => {
    const key = freshKeys();
    await apply(store(), operation(key('full'), 2), operation(key('room'), 1));
    const batch = guarded(2, operation(key('room'), 1), operation(key('full'), 1), operation(key('new'), 1));
    expect(await apply(store(), ...batch)).toEqual([1, 3, 0]);
    expect(await apply(store(), operation(key('new'), 0), operation(key('room'), 0))).toEqual([0, 1]);
  });

  it('judges each operation of a guard by its own stored count, and guards in the order of the batch', async () => {
    const key = freshKeys();
    function request(): readonly CounterOperation[] {
      return guarded(2, operation(key('a'), 1), operation(key('b'), 1));
    }
    expect(await apply(store(), ...request(), ...request(), ...request())).toEqual([1, 1, 2, 2, 3, 3]);
    expect(await apply(store(), ...guarded(9, operation(key('a'), 7), operation(key('b'), 1)))).toEqual([10, 3]);
  });

  it('applies operations without a guard independently of guards in the same batch', async () => {
    const key = freshKeys();
    const batch = [
      operation(key('plain'), 9),
      ...guarded(0, operation(key('over'), 1), operation(key('held'), 0)),
      operation(key('plain'), 1),
      operation(key('plain'), -4),
    ];
    expect(await apply(store(), ...batch)).toEqual([9, 1, 0, 10, 6]);
  });

  it('counts concurrent batches exactly', async () => {
    const key = freshKeys();
    const results = await Promise.all(
      Array.from({ length: 100 }, () => apply(store(), operation(key('a'), 1), operation(key('b'), 2))),
    );
    const counts = results.map(([count]) => Number(count)).toSorted((one, other) => one - other);
    expect(counts).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
    expect(await apply(store(), operation(key('b'), 0))).toEqual([200]);
  });

  it('returns the same counts as a plain map for random operations', async () => {
    const step = fc.record({ key: fc.constantFrom('a', 'b', 'c'), hits: fc.integer({ min: -4, max: 4 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        const key = freshKeys();
        const model = new Map<string, number>();
        const expected = steps.map(({ key: name, hits }) => {
          const count = Math.max(0, (model.get(name) ?? 0) + hits);
          model.set(name, count);
          return count;
        });
        const batch = steps.map(({ key: name, hits }) => operation(key(name), hits));
        expect(await apply(store(), ...batch)).toEqual(expected);
      }),
      { numRuns: 25 },
    );
  });

  it('is connected', async () => {
    expect(await firstValueFrom(store().connected$)).toBe(true);
  });
}
