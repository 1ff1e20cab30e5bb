import fc from 'fast-check';
import type { CounterOperation, Guard } from '../../../src/limiter/counter-operation';
import { MAX_BODY_BYTES } from '../../../src/workers/channel/channel';
import { BatchWriter, readBatch, readCounts, writeCounts } from '../../../src/workers/counters/batch-frames';
import { LONGEST_TABLE_KEY, tableKey } from '../../../src/text/table-key';

type Unguarded = Omit<CounterOperation, 'guard'>;

const operation: fc.Arbitrary<Unguarded> = fc.record({
  // With lone surrogates.
  key: fc.oneof(
    fc.string({ unit: 'grapheme-ascii' }),
    fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)), maxLength: 300 }),
  ),
  hits: fc.oneof(fc.nat(10), fc.maxSafeInteger()),
  windowSeconds: fc.constantFrom(1, 60, 366 * 86_400),
  limit: fc.nat(2 ** 32 - 1),
});
const batchOfCalls = fc.array(
  fc.record({ isGuarded: fc.boolean(), operations: fc.array(operation, { minLength: 1, maxLength: 5 }) }),
  { minLength: 1, maxLength: 30 },
);

function join(calls: readonly { isGuarded: boolean; operations: readonly Unguarded[] }[]): CounterOperation[] {
  return calls.flatMap(({ isGuarded, operations }) => {
    const guard: Guard | undefined = isGuarded ? { operations: operations.length } : undefined;
    return operations.map((each) => ({ ...each, guard }));
  });
}

function framesOf(writer: BatchWriter, batch: readonly CounterOperation[]): readonly Buffer[] {
  const frames: Buffer[] = [];
  // The writer reuses its memory. As in a chunk of a pipe, the copies begin anywhere.
  for (const body of writer.write(batch)) frames.push(Buffer.concat([Buffer.of(0), body]).subarray(1));
  return frames;
}

function expectSame(read: readonly CounterOperation[], written: readonly CounterOperation[]): void {
  function plain({ guard, key, ...rest }: CounterOperation): object {
    return { ...rest, guard: guard?.operations, key: tableKey(key) };
  }
  expect(read.map(plain)).toEqual(written.map(plain));
  expect(boundaries(read)).toEqual(boundaries(written));
}

/** Guards are compared by identity: where one begins. */
function boundaries(batch: readonly CounterOperation[]): readonly number[] {
  return [...batch.keys()].filter((index) => batch[index]?.guard !== batch[index - 1]?.guard);
}

describe('the frames of a batch', () => {
  it('contain its operations, with keys of any characters', () => {
    const writer = new BatchWriter();
    fc.assert(
      fc.property(batchOfCalls.map(join), (batch) => {
        expectSame(framesOf(writer, batch).flatMap(readBatch), batch);
      }),
    );
  });

  it('are several when the batch is large, and never part what one guard ties together', () => {
    const calls = Array.from({ length: 100 }, (_, call) => ({
      isGuarded: call % 3 === 0,
      operations: Array.from({ length: 100 }, (__, index) => ({
        key: `é${call}_${index}`.padEnd(200, 'x'),
        hits: 1,
        windowSeconds: 1,
        limit: 1,
      })),
    }));
    const batch = join(calls);
    const frames = framesOf(new BatchWriter(), batch);
    expect(frames.length).toBeGreaterThan(5);
    for (const frame of frames) {
      expect(frame.length).toBeLessThan(MAX_BODY_BYTES);
      const own = readBatch(frame);
      const guarded = own.filter(({ guard }) => guard !== undefined);
      // Each guard has 100 operations, and all of them are here.
      expect(guarded.length).toBe(100 * new Set(guarded.map(({ guard }) => guard)).size);
    }
    expectSame(frames.flatMap(readBatch), batch);
  });

  it.each([900, 950, 1000])('hold the largest call with a guard, also after %i other operations', (others) => {
    const operations = Array.from({ length: 1000 }, (_, index) => ({
      key: `${index}`.padEnd(LONGEST_TABLE_KEY, 'é'),
      hits: 1,
      windowSeconds: 1,
      limit: 1,
    }));
    const small = { isGuarded: false, operations: operations.slice(0, others) };
    const frames = framesOf(new BatchWriter(), join([small, { isGuarded: true, operations }]));
    for (const frame of frames) expect(frame.length).toBeLessThanOrEqual(MAX_BODY_BYTES);
    expect(frames.flatMap(readBatch)).toHaveLength(others + 1000);
  });

  it('are answered with the counts', () => {
    const counts = [0, 1, Number.MAX_SAFE_INTEGER];
    const body = Buffer.concat([Buffer.of(0), writeCounts(counts)]).subarray(1);
    expect([...readCounts(body)]).toEqual(counts);
  });
});
