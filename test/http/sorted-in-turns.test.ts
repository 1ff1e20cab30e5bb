import * as fc from 'fast-check';
import { sortedInTurns } from '../../src/http/debug/sorted-in-turns';
import { partsOf } from '../support/data/parts-of';

/** What {@link sortedInTurns} yields, in one list. */
async function sorted(parts: readonly (readonly string[])[]): Promise<readonly string[]> {
  const all: string[] = [];
  for await (const part of sortedInTurns(partsOf(...parts), (text) => text)) all.push(...part);
  return all;
}

describe('sortedInTurns', () => {
  it('sorts what arrives in parts', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(fc.string({ maxLength: 2 }))), async (parts) => {
        expect(await sorted(parts)).toEqual(parts.flat().sort());
      }),
    );
  });

  it('keeps items with equal keys in their order', async () => {
    const items = Array.from({ length: 30 }, (_, i) => ({ key: String(i % 3), i }));
    const parts = sortedInTurns(partsOf(items.slice(0, 7), items.slice(7, 19), items.slice(19)), ({ key }) => key);
    const { value } = await parts.next();

    expect(value).toEqual(items.toSorted((one, other) => (one.i % 3) - (other.i % 3)));
  });

  it('lets the event loop turn, also while nothing is yielded', async () => {
    const parts = Array.from({ length: 16 }, (_, part) =>
      Array.from({ length: 1_000 }, (_item, i) => String((i * 16 + part) * 7919).padStart(12, '0')),
    );
    let turns = 0;
    let done = false;
    (function count() {
      turns += 1;
      if (!done) setImmediate(count);
    })();
    const result = await sorted(parts);
    done = true;

    expect(result).toEqual(parts.flat().sort());
    // Four rounds of merging and the output, each 16 steps.
    expect(turns).toBeGreaterThanOrEqual(5 * 16);
  });
});
