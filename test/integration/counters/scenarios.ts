import { firstValueFrom } from 'rxjs';
import { ExpiringCounts, TimedCounts } from '../../../src/counting/counts';
import type { DecisionError } from '../../../src/counting/decision-error';
import { type Group, LARGEST_COUNT, type Operation, type Result } from '../../../src/counting/operation';
import { run, simulate } from '../../../src/counting/simulate';
import type { CounterLane, Counters } from '../../../src/streams/ports/counters';
import { LaneClient, applyTo } from '../../support/clients/lane-client';
import { FEW_HITS, MANY_HITS, anyCall, operationsOf, resultsOf } from '../../support/data/calls';
import { operation, stopWhenOver } from '../../support/data/operations';
import fc from '../../support/data/properties';
import { until } from '../../support/waiting/until';

export { operation } from '../../support/data/operations';

/** The time of stores that do not have one of their own, in Unix milliseconds. */
export const clock = { now: 1_764_000_000_000 };

let prefixes = 0;

/** Returns a function that puts a prefix which no other scenario uses before a text. */
function freshKeys(): (text?: string) => string {
  prefixes += 1;
  const prefix = `scenario_${prefixes}_`;
  return (text = '') => prefix + text;
}

/**
 * Applies a batch, the operations of each lane at the same time. Rejects when every lane fails as a whole; when only
 * some do, their operations get the error. A group over several lanes is a call of its own, as in the decision path.
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
      const results = await ('apply' in group ? applyTo(group, operations) : client.call(operations));
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

/** Counters at hand, as those of a store should be. */
function simulated(): TimedCounts {
  return new TimedCounts(new ExpiringCounts({ maxKeys: 10_000 }));
}

/**
 * Sends calls: at once when one lane has all of their keys, otherwise one after the other, as no step over several
 * lanes is atomic.
 */
async function send(counters: Counters, calls: readonly (readonly Operation[])[]): Promise<void> {
  using client = new LaneClient(counters);
  const lanes = new Set(calls.flat().map((each) => counters.laneOf(each)));
  if (lanes.size === 1) await Promise.all(calls.map((call) => client.call(call)));
  else for (const call of calls) await client.call(call);
}

export interface StoreTraits {
  /** Whether keys may have any length and contain white space and control characters; default true. */
  readonly hasAnyKey?: boolean;
  /** Whether it has the algorithms, at the time of {@link clock}; default true. */
  readonly hasAlgorithms?: boolean;
}

/**
 * The behaviour that all counter stores have in common. Each scenario has its own keys, so that scenarios can share a
 * store.
 *
 * @param store returns the store under test; called when a scenario begins
 */
export function countingScenarios(
  store: () => Counters,
  { hasAnyKey = true, hasAlgorithms = true }: StoreTraits = {},
): void {
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
    const second = { lengthSeconds: 1 };
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
    expect(await apply(store(), ...batch)).toEqual(run(batch, simulated()));
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

  it('reads for −0 hits of a group in the order of the call, and does not compare them with the limit', async () => {
    const key = freshKeys();
    await apply(store(), operation(key('a'), 3));
    function call(limit: number) {
      const own = stopWhenOver();
      return apply(
        store(),
        ...[operation(key('a'), -0, { group: own, limit: 2 }), operation(key('a'), 1, { group: own, limit })],
        operation(key('b'), 1, { group: own, limit: 10 }),
      );
    }
    expect(await call(10)).toEqual([3, 4, 1]);
    expect(await call(4)).toEqual([4, 5, 1]);
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

  callScenarios(store, hasAlgorithms);
}

/** Calls of every kind. @param hasAlgorithms whether the store has the algorithms, at the time of {@link clock} */
export function callScenarios(store: () => Counters, hasAlgorithms: boolean): void {
  it.each([
    ['few hits', FEW_HITS],
    ['hits up to 2^53 − 1', MANY_HITS],
  ])('gives the calls of a window what they are given in a simulation one by one, with %s', async (_, hits) => {
    const calls = fc.array(anyCall({ hits, windows: [86_400, 172_800], hasAlgorithms }), {
      minLength: 1,
      maxLength: 6,
    });
    const windows = fc.array(fc.record({ pause: fc.constantFrom(0, 300, 3_000, 61_000), calls }), {
      minLength: 1,
      maxLength: 3,
    });
    await fc.assert(
      fc.asyncProperty(windows, fc.boolean(), async (all, isInOneSlot) => {
        const [key, table] = [freshKeys(), simulated()];
        // The limits of one rule always are in one slot of a cluster.
        function keyOf(name: string): string {
          return isInOneSlot || name.length > 1 ? `{${key()}}${name}` : key(name);
        }
        for (const { pause, calls: sketches } of all) {
          if (hasAlgorithms) clock.now += pause;
          table.now = clock.now;
          const [sent, expected] = [0, 1].map(() => sketches.map((sketch) => operationsOf(sketch, keyOf)));
          await send(store(), sent!);
          for (const operations of expected!) simulate(operations, table);
          expect(sent!.map(resultsOf)).toEqual(expected!.map(resultsOf));
        }
      }),
      { numRuns: 25 },
    );
  });
}
