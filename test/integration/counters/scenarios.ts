import { firstValueFrom } from 'rxjs';
import { type Group, LARGEST_COUNT, type Operation, type Result } from '../../../src/counting/operation';
import type { DecisionError } from '../../../src/counting/decision-error';
import type { CounterLane, Counters } from '../../../src/streams/ports/counters';
import { LaneClient } from '../../support/clients/lane-client';
import { operation, stopWhenOver } from '../../support/data/operations';
import fc from '../../support/data/properties';
import { until } from '../../support/waiting/until';

export { operation } from '../../support/data/operations';

let prefixes = 0;

/** Returns a function that puts a prefix which no other scenario uses before a text. */
function freshKeys(): (text?: string) => string {
  prefixes += 1;
  const prefix = `scenario_${prefixes}_`;
  return (text = '') => prefix + text;
}

/**
 * Applies a batch, the operations of each lane at the same time. Rejects when every lane fails as a whole; when only some do, their
 * operations get the error. A group over several lanes is a call of its own, as in the decision path.
 */
export async function apply(counters: Counters, ...batch: readonly Operation[]): Promise<readonly Result[]> {
  const groups = new Map<CounterLane | Group, number[]>();
  for (const [index, each] of batch.entries()) {
    const group = each.group && isSpread(counters, batch, each.group) ? each.group : counters.laneOf(each);
    const indices = groups.get(group) ?? [];
    indices.push(index);
    groups.set(group, indices);
  }
  using client = new LaneClient(counters);
  const counts: Result[] = Array.from({ length: batch.length });
  const outcomes = await Promise.allSettled(
    [...groups].map(async ([group, indices]) => {
      const operations = indices.map((index) => batch[index]!);
      const results = await ('apply' in group ? firstValueFrom(group.apply(operations)) : client.call(operations));
      for (const [at, index] of indices.entries()) counts[index] = results[at]!;
    }),
  );
  const errors = outcomes.flatMap((outcome) =>
    outcome.status === 'rejected' ? [outcome.reason as DecisionError] : [],
  );
  if (errors.length === outcomes.length && errors.length > 0) throw errors[0];
  return counts.map((count) => count ?? errors[0]);
}

/** Whether the operations of a group are counted in several lanes. */
function isSpread(counters: Counters, batch: readonly Operation[], group: Group): boolean {
  return new Set(batch.filter((each) => each.group === group).map((each) => counters.laneOf(each))).size > 1;
}

/** The counts after operations without guards, of a plain map. */
function modelCounts(batch: readonly Operation[]): readonly number[] {
  const model = new Map<string, number>();
  return batch.map(({ key, hits }) => {
    const count = Math.min(LARGEST_COUNT, Math.max(0, (model.get(key) ?? 0) + hits));
    model.set(key, count);
    return count;
  });
}

function grouped(limit: number, group: Group, operations: readonly Operation[]): readonly Operation[] {
  return operations.map(({ key, hits }) => operation(key, hits, { limit, group }));
}

/** The operations under one group, each with the limit given. */
function guarded(limit: number, ...operations: readonly Operation[]): readonly Operation[] {
  return grouped(limit, stopWhenOver(), operations);
}

/** The same under a group that is over in any case. */
function guardedOver(limit: number, ...operations: readonly Operation[]): readonly Operation[] {
  return grouped(limit, stopWhenOver(true), operations);
}

export interface StoreTraits {
  /** Whether keys may have any length and contain white space and control characters; default true. */
  readonly hasAnyKey?: boolean;
}

/**
 * The behaviour that all counter stores have in common. Each scenario has its own keys, so that scenarios can share a store.
 *
 * @param store returns the store under test; called when a scenario begins
 */
export function countingScenarios(store: () => Counters, { hasAnyKey = true }: StoreTraits = {}): void {
  it('adds hits to each key separately, subtracts down to 0, reads with 0 hits, and leaves absent keys absent', async () => {
    const key = freshKeys();
    const [a, b, absent] = [key('a'), key('b'), key('absent')];
    expect(await apply(store(), operation(a, 1), operation(b, 5))).toEqual([1, 5]);
    const steps = [2, -2, 0, -2, 3].map((hits) => operation(a, hits));
    expect(await apply(store(), ...steps, operation(absent, -2), operation(absent, 0))).toEqual([3, 1, 1, 0, 3, 0, 0]);
    expect(await apply(store(), operation(a, 0), operation(b, -4), operation(absent, 1))).toEqual([3, 1, 1]);
  });

  it('removes a counter when its window has passed, also a saturated one', async () => {
    const key = freshKeys();
    const second = { windowSeconds: 1 };
    const hits = [4, 9, LARGEST_COUNT].map((each, index) => operation(key(index === 0 ? 'a' : 'b'), each, second));
    await apply(store(), ...hits);
    const reads = [operation(key('a'), 0, second), operation(key('b'), 0, second)];
    await until('the counters have expired', async () =>
      (await apply(store(), ...reads)).every((count) => count === 0),
    );
    expect(await apply(store(), operation(key('a'), 1, second))).toEqual([1]);
  });

  it('counts on keys with other scripts, braces and, if the store allows them, any length and characters', async () => {
    const texts = [
      '{}{a}b}',
      'schlüssel_鍵_🔑',
      '__',
      ...(hasAnyKey ? ['a b\r\nc\td', 'a\u0000b', 'x'.repeat(2000)] : []),
    ];
    const keys = texts.map(freshKeys());
    expect(await apply(store(), ...keys.map((key) => operation(key, 1)))).toEqual(keys.map(() => 1));
    const batch = keys.flatMap((key) => [operation(key, 1), operation(`${key}_`, 1)]);
    expect(await apply(store(), ...batch)).toEqual(keys.flatMap(() => [2, 1]));
  });

  it('applies a batch with more keys than one script call takes', async () => {
    const key = freshKeys();
    const batch = Array.from({ length: 1000 }, (_, index) => operation(key(String(index % 900)), 1 + (index % 3)));
    expect(await apply(store(), ...batch)).toEqual(modelCounts(batch));
  });

  it('counts exactly up to 2^53 − 1, where a counter saturates', async () => {
    const key = freshKeys();
    const [most, other] = [key('most'), key('other')];
    expect(await apply(store(), operation(most, LARGEST_COUNT - 1))).toEqual([LARGEST_COUNT - 1]);
    const batch = [operation(most, 1), operation(most, 1), operation(other, 1), operation(most, 0)];
    expect(await apply(store(), ...batch)).toEqual([LARGEST_COUNT, LARGEST_COUNT, 1, LARGEST_COUNT]);
    expect(await apply(store(), operation(most, LARGEST_COUNT))).toEqual([LARGEST_COUNT]);
    expect(await apply(store(), operation(most, -1), operation(most, 7))).toEqual([LARGEST_COUNT - 1, LARGEST_COUNT]);
    expect(await apply(store(), operation(most, -LARGEST_COUNT), operation(most, 2))).toEqual([0, 2]);
    const jumps = [3, LARGEST_COUNT - 4, 1, 0, LARGEST_COUNT].map((hits) => operation(most, hits));
    expect(await apply(store(), ...jumps)).toEqual([5, ...jumps.slice(1).map(() => LARGEST_COUNT)]);
  });

  it('saturates a counter under a group, and judges the additions after negative hits exactly', async () => {
    const key = freshKeys();
    await apply(store(), operation(key('a'), 9));
    const over = guarded(10, operation(key('a'), LARGEST_COUNT), operation(key('b'), 1));
    expect(await apply(store(), ...over)).toEqual([LARGEST_COUNT, 0]);
    const lowered = guarded(10, operation(key('a'), -LARGEST_COUNT), operation(key('a'), 2), operation(key('b'), 1));
    expect(await apply(store(), ...over, ...lowered)).toEqual([LARGEST_COUNT, 0, 0, 2, 1]);
  });

  it('saturates a counter to which concurrent batches add', async () => {
    const key = freshKeys()();
    const hits = [LARGEST_COUNT, 1, LARGEST_COUNT - 1, 2 ** 32];
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, index) => apply(store(), operation(key, hits[index % 4] as number))),
    );
    // At least the second of the 20 large additions, whatever the order, and all after it.
    expect(results.filter(([count]) => count === LARGEST_COUNT).length).toBeGreaterThanOrEqual(19);
    expect(Math.max(...results.map(([count]) => Number(count)))).toBe(LARGEST_COUNT);
    expect(await apply(store(), operation(key, 0), operation(key, -LARGEST_COUNT))).toEqual([LARGEST_COUNT, 0]);
  });

  it('counts negative hits under a group always, and judges the additions after them on the lowered count', async () => {
    const key = freshKeys();
    await apply(store(), operation(key('a'), 10), operation(key('b'), 10));
    const batch = guarded(10, operation(key('a'), -5), operation(key('a'), 2), operation(key('c'), 2));
    expect(await apply(store(), ...batch)).toEqual([5, 7, 2]);
    const full = guarded(10, operation(key('b'), -1), operation(key('b'), 2), operation(key('c'), 2));
    expect(await apply(store(), ...full)).toEqual([9, 11, 2]);
  });

  it('adds all operations of a group while none exceeds its limit, then only those that exceed theirs', async () => {
    const key = freshKeys();
    function request(): readonly Operation[] {
      return guarded(2, operation(key('room'), 1), operation(key('full'), 2), operation(key('new'), 0));
    }
    expect(await apply(store(), ...request())).toEqual([1, 2, 0]);
    expect(await apply(store(), ...request())).toEqual([1, 4, 0]);
    expect(await apply(store(), operation(key('new'), 0), operation(key('room'), 0))).toEqual([0, 1]);
  });

  it('adds under a group that is over in any case only what exceeds its limit, also where it has one operation', async () => {
    const key = freshKeys();
    await apply(store(), operation(key('a'), 2), operation(key('c'), 3));
    const alone = [1, 2].flatMap((hits) => guardedOver(3, operation(key('a'), hits)));
    expect(await apply(store(), ...alone)).toEqual([2, 4]);
    const batch = guardedOver(3, operation(key('b'), 3), operation(key('b'), 4), operation(key('c'), -1));
    expect(await apply(store(), ...batch)).toEqual([0, 4, 2]);
  });

  it('judges each operation of a group by its own stored count, and groups in the order of the batch', async () => {
    const key = freshKeys();
    const requests = [2, 2, 2].flatMap((limit) => guarded(limit, operation(key('a'), 1), operation(key('b'), 1)));
    expect(await apply(store(), ...requests)).toEqual([1, 1, 2, 2, 3, 3]);
    expect(await apply(store(), ...guarded(9, operation(key('a'), 7), operation(key('b'), 1)))).toEqual([10, 3]);
    const lowered = [operation(key('c'), 3), operation(key('c'), -5)];
    // In one slot of a cluster.
    const [full, other] = [`{${key('d')}}full`, `{${key('d')}}other`];
    const last = guarded(2, operation(full, 1), operation(other, 1));
    expect(await apply(store(), ...guarded(2, operation(full, 2)), ...last)).toEqual([2, 3, 0]);
    const same = guarded(2, operation(key('c'), 2), operation(key('c'), 1));
    expect(await apply(store(), ...lowered, ...same)).toEqual([3, 0, 2, 3]);
  });

  it('applies operations without a group independently of groups in the same batch', async () => {
    const key = freshKeys();
    const batch = [
      operation(key('plain'), 9),
      ...guarded(2, operation(key('held'), 1), operation(key('over'), 5)),
      operation(key('plain'), 1),
      operation(key('plain'), -4),
    ];
    expect(await apply(store(), ...batch)).toEqual([9, 0, 5, 10, 6]);
  });

  it('counts concurrent batches exactly', async () => {
    const key = freshKeys();
    const results = await Promise.all(
      Array.from({ length: 100 }, () => apply(store(), operation(key('a'), 1), operation(key('b'), 2))),
    );
    const counts = results.map(([count]) => Number(count)).toSorted((one, other) => one - other);
    expect(counts).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
    expect(await apply(store(), operation(key('b'), 0))).toEqual([200]);
    expect(await firstValueFrom(store().connected$)).toBe(true);
  });

  const few = fc.integer({ min: -4, max: 4 });
  const many = fc.constantFrom(LARGEST_COUNT, LARGEST_COUNT - 1, 2 ** 52, 1, 0, -1, -(2 ** 32), -LARGEST_COUNT);
  it.each([
    ['few hits', few],
    ['hits up to 2^53 − 1', many],
  ])('returns the same counts as a plain map for random operations with %s', async (_, arbitraryHits) => {
    const step = fc.record({ key: fc.constantFrom('a', 'b', 'c'), hits: arbitraryHits });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        const key = freshKeys();
        const batch = steps.map(({ key: name, hits }) => operation(key(name), hits));
        expect(await apply(store(), ...batch)).toEqual(modelCounts(batch));
      }),
      { numRuns: 25 },
    );
  });
}
