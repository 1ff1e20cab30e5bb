import type { CounterOperation } from '../../../src/limiter/counter-operation';
import { decideGuards } from '../../../src/sinks/counters/guarded-batch';
import { LONGEST_TABLE_KEY } from '../../../src/text/table-key';

function operation(key: string, more: Partial<CounterOperation> = {}): CounterOperation {
  return { key, hits: 1, windowSeconds: 60, limit: 1, guard: undefined, ...more };
}

describe('guards that are decided on counts which were read before', () => {
  it('are judged on what the operations before them will have left', () => {
    const guard = { operations: 2 };
    const batch = [operation('a'), operation('a', { guard }), operation('b', { guard }), operation('b')];
    expect(decideGuards(batch, [0, 0, 0, 0]).map(({ hits }) => hits)).toEqual([1, 1, 0, 1]);
  });

  it('keep no long key in a table: V8 hashes texts above 16,383 characters by their length alone', () => {
    const guard = { operations: 2 };
    const batch = ['1', '2'].map((end) => operation('x'.repeat(20_000) + end, { guard }));
    const add = jest.spyOn(Map.prototype, 'set');
    const decided = decideGuards(batch, [1, 0]);
    const lengths = add.mock.calls.map(([key]) => `${key}`.length);
    add.mockRestore();
    expect(decided.map(({ hits }) => hits)).toEqual([1, 0]);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(LONGEST_TABLE_KEY);
  });
});
