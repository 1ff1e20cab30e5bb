import { LONGEST_TABLE_KEY, ownText, tableKey, textBytes } from '../../src/text/table-key';
import { heapAfterCollection } from '../support/processes/collect-garbage';

describe('the key of a table', () => {
  it('is the cache key itself up to a length, and above it a digest of 44 characters that ends unlike a cache key', () => {
    const longest = 'x'.repeat(LONGEST_TABLE_KEY);
    expect(tableKey(longest)).toBe(longest);
    expect(tableKey(`${longest}1`)).toMatch(/^[A-Za-z0-9+/]{43}=$/);
    expect(tableKey('鍵'.repeat(1_000_000))).toHaveLength(44);
  });

  it('is different for different long keys, wherever they differ, and the same for equal ones', () => {
    const long = 'x'.repeat(1000);
    const keys = [`${long}_1`, `${long}_2`, `1${long}_`, `${long}é1`, `${long}鍵1`];
    expect(new Set(keys.map(tableKey)).size).toBe(keys.length);
    expect(tableKey(`${long}_1`)).toBe(tableKey(['x'.repeat(500), 'x'.repeat(500), '_1'].join('')));
  });
});

describe('an own text', () => {
  const texts = ['', 'a', 'schlüssel', '\u0000\u00ff', '鍵', '🔑 and \ud800 alone', 'x'.repeat(100_000)];

  it.each(texts.map((text) => [text.slice(0, 20), text]))('is equal to the text: %j', (_, text) => {
    expect(ownText(text)).toBe(text);
  });

  it('takes one byte per character of Latin-1, otherwise two', () => {
    expect(texts.map((text) => textBytes(ownText(text)))).toEqual([0, 1, 9, 2, 2, 28, 100_000]);
  });

  it('does not keep the text in memory that it was a part of', () => {
    function heldBy(keep: (text: string) => string): number {
      const before = heapAfterCollection();
      const kept: string[] = [];
      for (let body = 0; body < 50; body += 1) {
        const text = Buffer.alloc(1_000_000, `body ${body} `).toString('latin1');
        kept.push(keep(text.slice(10, 60)), keep(`${text.slice(100, 150)}_${body}`));
      }
      const held = heapAfterCollection() - before;
      expect(kept).toHaveLength(100);
      return held;
    }
    expect(heldBy(ownText)).toBeLessThan(5_000_000);
    // Why it is needed.
    expect(heldBy((text) => text)).toBeGreaterThan(40_000_000);
  });
});
