import fc from 'fast-check';
import { firstValueFrom } from 'rxjs';
import type { Count, CounterOperation, Guard } from '../../../src/limiter/counter-operation';
import { DecisionError } from '../../../src/limiter/decision-error';
import type { Counters } from '../../../src/streams/ports/counters';
import { until } from '../../support/waiting/until';

const LARGEST = Number.MAX_SAFE_INTEGER;

let prefixes = 0;

/** A key that no other scenario uses; all of one run share the text given. */
function fresh(): (text?: string) => string {
  prefixes += 1;
  const prefix = `scenario_${prefixes}_`;
  return (text = '') => prefix + text;
}

export function operation(key: string, hits: number, more: Partial<CounterOperation> = {}): CounterOperation {
  return { key, hits, windowSeconds: 60, guard: undefined, limit: 0, ...more };
}

export async function take(counters: Counters, ...batch: readonly CounterOperation[]): Promise<readonly Count[]> {
  return firstValueFrom(counters.apply(batch));
}

/** The same operations under one guard, each with the limit given. */
function guarded(limit: number, ...operations: readonly CounterOperation[]): readonly CounterOperation[] {
  const guard: Guard = { operations: operations.length };
  return operations.map((each) => ({ ...each, guard, limit }));
}

/**
 * What every store of counters does alike. Each scenario runs on keys of its own, so that stores may be shared.
 *
 * @param store the store under test, asked for when a scenario begins
 */
export function countingScenarios(store: () => Counters): void {
  it('adds hits up, each key by itself', async () => {
    const key = fresh();
    expect(await take(store(), operation(key('a'), 1), operation(key('b'), 5))).toEqual([1, 5]);
    expect(await take(store(), operation(key('a'), 2))).toEqual([3]);
  });

  it('takes the steps of a batch in order, also those on one key', async () => {
    const key = fresh()();
    const steps = [5, -2, 1, 0, -10, 3].map((hits) => operation(key, hits));
    expect(await take(store(), ...steps)).toEqual([5, 3, 4, 4, 0, 3]);
  });

  it('reads with 0 hits, and counts 0 for a key that is not there', async () => {
    const key = fresh();
    await take(store(), operation(key('a'), 7));
    expect(await take(store(), operation(key('a'), 0), operation(key('absent'), 0))).toEqual([7, 0]);
  });

  it('takes away down to 0 and never below, and nothing from a key that is not there', async () => {
    const key = fresh();
    await take(store(), operation(key('a'), 3));
    const steps = [operation(key('a'), -2), operation(key('a'), -2), operation(key('absent'), -2)];
    expect(await take(store(), ...steps)).toEqual([1, 0, 0]);
    expect(await take(store(), operation(key('a'), 1), operation(key('absent'), 1))).toEqual([1, 1]);
  });

  it('lets a counter go when its window is over', async () => {
    const key = fresh()();
    await take(store(), operation(key, 4, { windowSeconds: 1 }));
    await until(
      'the counter is gone',
      async () => (await take(store(), operation(key, 0, { windowSeconds: 1 })))[0] === 0,
    );
    expect(await take(store(), operation(key, 1, { windowSeconds: 1 }))).toEqual([1]);
  });

  it.each([
    ['blanks and line ends', 'a b\r\nc\td'],
    ['braces', '{}{a}b}'],
    ['other scripts', 'schlüssel_鍵_🔑'],
    ['nothing but separators', '__'],
    ['NUL', 'a\u0000b'],
    ['a long text', 'x'.repeat(2000)],
  ])('counts on keys with %s', async (_, text) => {
    const key = fresh()(text);
    expect(await take(store(), operation(key, 1))).toEqual([1]);
    expect(await take(store(), operation(key, 1), operation(`${key}_`, 1))).toEqual([2, 1]);
  });

  it('takes more keys than one step in the store carries', async () => {
    const key = fresh();
    const batch = Array.from({ length: 1000 }, (_, index) => operation(key(String(index % 900)), 1 + (index % 3)));
    const model = new Map<string, number>();
    const expected = batch.map(({ key: each, hits }) => {
      const count = (model.get(each) ?? 0) + hits;
      model.set(each, count);
      return count;
    });
    expect(await take(store(), ...batch)).toEqual(expected);
  });

  it('is exact up to 2^53 − 1, and beyond it fails that key alone, whose count stays', async () => {
    const key = fresh();
    expect(await take(store(), operation(key('big'), LARGEST - 1))).toEqual([LARGEST - 1]);
    const [full, over, other] = await take(
      store(),
      operation(key('big'), 1),
      operation(key('big'), 1),
      operation(key('other'), 1),
    );
    expect(full).toBe(LARGEST);
    expect(over).toBeInstanceOf(DecisionError);
    expect(over).toMatchObject({ code: 'store_failed', message: expect.stringContaining('2^53') });
    expect(other).toBe(1);
    expect(await take(store(), operation(key('big'), 0), operation(key('big'), -LARGEST))).toEqual([LARGEST, 0]);
  });

  it('adds everything under a guard while nothing would go over', async () => {
    const key = fresh();
    const batch = guarded(2, operation(key('a'), 1), operation(key('b'), 2));
    expect(await take(store(), ...batch)).toEqual([1, 2]);
  });

  it('adds under a guard only to what is over or would go over, as soon as anything would', async () => {
    const key = fresh();
    await take(store(), operation(key('full'), 2), operation(key('room'), 1));
    const batch = guarded(2, operation(key('room'), 1), operation(key('full'), 1), operation(key('new'), 1));
    expect(await take(store(), ...batch)).toEqual([1, 3, 0]);
    expect(await take(store(), operation(key('new'), 0), operation(key('room'), 0))).toEqual([0, 1]);
  });

  it('judges each operation of a guard alone on the stored count, and guards in the order of the batch', async () => {
    const key = fresh();
    function request(): readonly CounterOperation[] {
      return guarded(2, operation(key('a'), 1), operation(key('b'), 1));
    }
    expect(await take(store(), ...request(), ...request(), ...request())).toEqual([1, 1, 2, 2, 3, 3]);
    expect(await take(store(), ...guarded(9, operation(key('a'), 7), operation(key('b'), 1)))).toEqual([10, 3]);
  });

  it('keeps operations without a guard apart from those with one', async () => {
    const key = fresh();
    const batch = [
      operation(key('plain'), 9),
      ...guarded(0, operation(key('over'), 1), operation(key('held'), 0)),
      operation(key('plain'), 1),
      operation(key('plain'), -4),
    ];
    expect(await take(store(), ...batch)).toEqual([9, 1, 0, 10, 6]);
  });

  it('counts batches at the same time exactly', async () => {
    const key = fresh();
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => take(store(), operation(key('a'), 1), operation(key('b'), 2))),
    );
    const counts = answers.map(([count]) => Number(count)).toSorted((one, other) => one - other);
    expect(counts).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
    expect(await take(store(), operation(key('b'), 0))).toEqual([200]);
  });

  it('behaves as a plain map does', async () => {
    const step = fc.record({ key: fc.constantFrom('a', 'b', 'c'), hits: fc.integer({ min: -4, max: 4 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        const key = fresh();
        const model = new Map<string, number>();
        const expected = steps.map(({ key: name, hits }) => {
          const count = Math.max(0, (model.get(name) ?? 0) + hits);
          model.set(name, count);
          return count;
        });
        const batch = steps.map(({ key: name, hits }) => operation(key(name), hits));
        expect(await take(store(), ...batch)).toEqual(expected);
      }),
      { numRuns: 25 },
    );
  });

  it('says that it is connected', async () => {
    expect(await firstValueFrom(store().connected$)).toBe(true);
  });
}
