import { LARGEST_COUNT } from '../../../../src/limiter/counter-operation';
import { DecisionError } from '../../../../src/limiter/decision-error';
import { Expiry } from '../../../../src/sinks/counters/expiry';
import { planBatch } from '../../../../src/sinks/counters/plaincache/counting/plan-batch';

const noJitter = new Expiry(0);

/** The plan for operations, each a key (or its error) and hits, after these values were read; its commands as text. */
function plan(
  operations: readonly (readonly [string | DecisionError, number])[],
  stored: Readonly<Record<string, number | undefined>> = {},
): { readonly counts: readonly unknown[]; readonly commands: readonly string[] } {
  const { counts, commands } = planBatch(
    operations.map(([, hits]) => ({ hits, windowSeconds: 60 })),
    { wires: operations.map(([wire]) => wire), stored: new Map(Object.entries(stored)) },
    noJitter,
  );
  return { counts, commands: commands.map(({ kind, key, hits, lifetime }) => `${kind} ${key} ${hits} ${lifetime}`) };
}

describe('the plan for a batch', () => {
  it('joins additions to a key, with operations on other keys between them', () => {
    const { counts, commands } = plan(
      [
        ['a', 1],
        ['b', 1],
        ['a', 2],
        ['a', 0],
        ['b', 5],
      ],
      { a: 10 },
    );
    expect(counts).toEqual([11, 1, 13, 13, 6]);
    expect(commands).toEqual(['incr a 3 60', 'incr b 6 60']);
  });

  it('does not join additions across a subtraction, which may reach 0', () => {
    const { counts, commands } = plan([
      ['a', 1],
      ['a', -3],
      ['a', 2],
      ['a', 2],
    ]);
    expect(counts).toEqual([1, 0, 2, 4]);
    expect(commands).toEqual(['incr a 1 60', 'decr a 3 0', 'incr a 4 60']);
  });

  it('creates no key by reading or subtracting', () => {
    const { counts, commands } = plan([
      ['a', 0],
      ['b', -1],
    ]);
    expect(counts).toEqual([0, 0]);
    expect(commands).toEqual([]);
  });

  it('adds only the hits that fit below the largest count', () => {
    const { counts, commands } = plan(
      [
        ['a', 1],
        ['a', 5],
        ['a', 5],
      ],
      { a: LARGEST_COUNT - 3 },
    );
    expect(counts).toEqual([LARGEST_COUNT - 2, LARGEST_COUNT, LARGEST_COUNT]);
    expect(commands).toEqual(['incr a 3 60']);
  });

  it('counts a value that is not a number as 0', () => {
    const { counts, commands } = plan([['a', 1]], { a: undefined });
    expect(counts).toEqual([1]);
    expect(commands).toEqual(['incr a 1 60']);
  });

  it('returns the error of a key that cannot be sent in its place', () => {
    const error = new DecisionError('invalid_request', 'not a key');
    const { counts, commands } = plan([
      ['a', 1],
      [error, 1],
      ['b', 2],
    ]);
    expect(counts).toEqual([1, error, 2]);
    expect(commands).toEqual(['incr a 1 60', 'incr b 2 60']);
  });
});
