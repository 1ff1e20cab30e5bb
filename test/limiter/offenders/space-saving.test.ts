import fc from 'fast-check';
import { SpaceSaving } from '../../../src/limiter/offenders/space-saving';

type Occurrence = readonly [key: string, weight: number];

function weightedSketch(capacity: number, stream: readonly Occurrence[]): SpaceSaving<string> {
  const sketch = new SpaceSaving<string>(capacity);
  for (const [key, weight] of stream) {
    const slot = sketch.find(key);
    if (slot === undefined) sketch.admit(key, weight).item = `item of ${key}`;
    else sketch.increment(slot, weight);
  }
  return sketch;
}

function sketchOf(capacity: number, keys: readonly string[]): SpaceSaving<string> {
  return weightedSketch(
    capacity,
    keys.map((key) => [key, 1]),
  );
}

function exactCounts(stream: readonly Occurrence[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const [key, weight] of stream) counts.set(key, (counts.get(key) ?? 0) + weight);
  return counts;
}

function contentsOf(sketch: SpaceSaving<string>) {
  return sketch.slots().map(({ key, count, error }) => ({ key, count, error }));
}

/** Streams of few keys that occur often and many that do not. */
const streams: fc.Arbitrary<readonly Occurrence[]> = fc.array(
  fc.tuple(
    fc
      .oneof(
        { weight: 3, arbitrary: fc.integer({ min: 0, max: 3 }) },
        { weight: 2, arbitrary: fc.integer({ min: 4, max: 60 }) },
      )
      .map(String),
    fc.constantFrom(1, 1, 1, 2, 16),
  ),
  { maxLength: 400 },
);
const capacities = fc.integer({ min: 1, max: 20 });

describe('a Space-Saving sketch', () => {
  it('counts exactly while there are no more keys than slots', () => {
    expect(contentsOf(sketchOf(3, ['a', 'b', 'a', 'c', 'a', 'c']))).toEqual([
      { key: 'a', count: 3, error: 0 },
      { key: 'c', count: 2, error: 0 },
      { key: 'b', count: 1, error: 0 },
    ]);
  });

  it('gives a new key the slot of the rarest one, and its count as the error', () => {
    expect(contentsOf(sketchOf(2, ['a', 'a', 'a', 'b', 'b', 'c']))).toEqual([
      expect.objectContaining({ count: 3 }),
      expect.objectContaining({ count: 3 }),
    ]);
    expect(contentsOf(sketchOf(2, ['a', 'a', 'a', 'b', 'b', 'c']))).toContainEqual({ key: 'c', count: 3, error: 2 });
  });

  it('keeps no item of the key that had the slot before', () => {
    const sketch = sketchOf(1, ['a']);
    expect(sketch.admit('b').item).toBeUndefined();
    expect(sketch.find('a')).toBeUndefined();
  });

  it('holds the bounds of the algorithm for every stream', () => {
    fc.assert(
      fc.property(streams, capacities, (stream, capacity) => {
        const exact = exactCounts(stream);
        const total = stream.reduce((sum, [, weight]) => sum + weight, 0);
        const sketch = weightedSketch(capacity, stream);
        const slots = sketch.slots();
        expect(slots.length).toBe(Math.min(capacity, exact.size));
        expect(slots.reduce((sum, { count }) => sum + count, 0)).toBe(total);
        expect(sketch.floor).toBeLessThanOrEqual(total / capacity);
        for (const { key, count, error, item } of slots) {
          const truth = exact.get(key) ?? 0;
          expect(count).toBeGreaterThanOrEqual(truth);
          expect(count - error).toBeLessThanOrEqual(truth);
          expect(error).toBeLessThanOrEqual(sketch.floor);
          expect(item).toBe(`item of ${key}`);
        }
        // Every key without a slot occurred at most `floor` times.
        const listed = new Set(slots.map(({ key }) => key));
        for (const [key, truth] of exact) if (!listed.has(key)) expect(truth).toBeLessThanOrEqual(sketch.floor);
      }),
      { numRuns: 300 },
    );
  });

  it('lists its slots in descending order of their counts', () => {
    fc.assert(
      fc.property(streams, capacities, (stream, capacity) => {
        const counts = contentsOf(weightedSketch(capacity, stream)).map(({ count }) => count);
        expect(counts).toEqual(counts.toSorted((one, other) => other - one));
      }),
    );
  });
});
