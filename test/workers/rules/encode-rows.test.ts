import fc from 'fast-check';
import { rowsOfRuleset } from '../../../src/rules/rows/rows-of-ruleset';
import type { RuleRow } from '../../../src/rules/rows/rule-rows';
import type { PlaceOf } from '../../../src/rules/rule-place';
import { buildRuleset } from '../../../src/rules/ruleset';
import { RowsDecoder } from '../../../src/workers/rules/decode-rows';
import { encodeRows } from '../../../src/workers/rules/encode-rows';
import { arbitraryDomains } from '../../support/data/arbitrary-rules';
import { rulesetOf } from '../../support/data/rules';

/** The rows after all messages; each is in a buffer that is used again, as those of a channel are. */
function transferred(rows: readonly RuleRow[]) {
  const decoder = new RowsDecoder();
  const sizes: number[] = [];
  const received: RuleRow[] = [];
  for (const message of encodeRows(rows)) {
    const buffer = Buffer.from(message);
    sizes.push(buffer.length);
    received.push(...decoder.add(buffer));
    buffer.fill(0xff);
  }
  return { received, sizes };
}

/** Rows with texts instead of arrays: comparing large arrays element by element takes seconds. */
function comparable(rows: readonly RuleRow[]): unknown {
  const text = JSON.stringify(rows, (_, value: unknown) =>
    value instanceof Int32Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex') : value,
  );
  return JSON.parse(text);
}

/** Different files and positions, and none for some rules. */
const placeOf: PlaceOf = ({ value }) =>
  value.length === 2 ? undefined : { file: `${value.length % 2}.yaml`, line: value.length, column: 3 };

const LARGEST = 64 * 1024 + 1;

describe('rows that are encoded and decoded', () => {
  it('are the same', () => {
    fc.assert(
      fc.property(arbitraryDomains, (configs) => {
        const rows = [...rowsOfRuleset(buildRuleset(configs, placeOf))];
        expect(comparable(transferred(rows).received)).toEqual(comparable(rows));
      }),
      { numRuns: 30 },
    );
  });

  it('are sent in messages of at most 64 KiB, however many rules or wildcards there are, and however long one is', () => {
    const long = { text: 'ä€😀'.repeat(50_000) };
    const many = Array.from({ length: 3_000 }, (_, index) => ({ key: 'user', value: `u${index}` }));
    const longKey = 'k'.repeat(200_000);
    const few = Array.from({ length: 9 }, (_, index) => ({ key: longKey, value: `${index}*` }));
    const wildcards = Array.from({ length: 500 }, (_, index) => ({ key: 'path', value: `/section${index}/*/x*` }));
    const rows = [...rowsOfRuleset(rulesetOf('shop', { key: 'k', metadata: long }, ...many, ...few, ...wildcards))];
    const { received, sizes } = transferred(rows);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(LARGEST);
    expect(sizes.length).toBeGreaterThan(30);
    expect(comparable(received)).toEqual(comparable(rows));
  });
});
