import { LONGEST_TABLE_KEY, ownText, tableKey, textBytes } from '../../src/text/table-key';
import { PARTS, WideMap, partOf } from '../../src/text/wide-map';
import fc from '../support/data/properties';
import { heapAfterCollection } from '../support/processes/collect-garbage';

describe('the key of a table', () => {
  it('is the cache key itself up to a length, and above it a digest of 44 characters that ends unlike a cache key', () => {
    const longest = 'x'.repeat(LONGEST_TABLE_KEY);
    expect(tableKey(longest)).toBe(longest);
    expect(tableKey(`${longest}1`)).toMatch(/^[A-Za-z0-9+/]{43}=$/);
    expect(tableKey('鍵'.repeat(1_000_000))).toHaveLength(44);
    const long = 'x'.repeat(1000);
    const keys = [`${long}_1`, `${long}_2`, `1${long}_`, `${long}é1`, `${long}鍵1`];
    expect(new Set(keys.map(tableKey)).size).toBe(keys.length);
  });

  it('is kept as an own text, which is equal and takes one byte per character of Latin-1, otherwise two', () => {
    const texts = ['', 'a', 'schlüssel', '\u0000\u00ff', '鍵', '🔑 and \ud800 alone', 'x'.repeat(100_000)];
    expect(texts.map(ownText)).toEqual(texts);
    expect(texts.map((text) => textBytes(ownText(text)))).toEqual([0, 1, 9, 2, 2, 28, 100_000]);
  });

  it('does not keep the text in memory that it was a part of', () => {
    function heldBy(keep: (text: string) => string): number {
      const before = heapAfterCollection();
      const kept: string[] = [];
      for (let body = 0; body < 20; body += 1) {
        const text = Buffer.alloc(1_000_000, `body ${body} `).toString('latin1');
        kept.push(keep(text.slice(10, 60)), keep(`${text.slice(100, 150)}_${body}`));
      }
      const held = heapAfterCollection() - before;
      expect(kept).toHaveLength(40);
      return held;
    }
    expect(heldBy(ownText)).toBeLessThan(5_000_000);
    // Why it is needed.
    expect(heldBy((text) => text)).toBeGreaterThan(15_000_000);
  });
});

describe('a wide map', () => {
  it('returns what a Map returns, for random operations', () => {
    const key = fc.oneof(
      fc.constantFrom('', 'a', 'b', 'é', '鍵'),
      fc.nat(20).map((number) => `user_${number}_1700000000`),
    );
    const value = fc.option(fc.nat(), { nil: undefined });
    const operation = fc.tuple(fc.constantFrom('get', 'set', 'delete'), key, value);
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 200 }), (operations) => {
        const [wide, map] = [new WideMap<number | undefined>(), new Map<string, number | undefined>()];
        for (const [kind, name, stored] of operations) {
          if (kind === 'get') expect(wide.get(name)).toBe(map.get(name));
          else if (kind === 'delete') expect(wide.delete(name)).toBe(map.delete(name));
          else for (const each of [wide, map]) each.set(name, stored);
          expect(wide.size).toBe(map.size);
        }
      }),
    );
  });

  function keyOf(index: number): string {
    return `user_${index}_1700000000`;
  }

  it('that stays full of 5,000 keys loses none of the newer half', () => {
    const wide = new WideMap<number>();
    const [capacity, count] = [5_000, 100_000];
    let newest = 0;
    for (let index = 0; index < count; index += 1) {
      if (wide.size === capacity)
        newest = Math.max(newest, capacity - index + Number(wide.removeOldest()!.split('_')[1]));
      wide.set(keyOf(index), index);
    }
    expect(newest).toBeLessThan(capacity / 2);
  });

  it('loses its oldest keys, of each part in turn, also after it has got others', () => {
    const wide = new WideMap<number>();
    for (let index = 0; index < 3000; index += 1) wide.set(keyOf(index), index);
    const removed = Array.from({ length: 2000 }, (_, index) => {
      wide.set(keyOf(3000 + index), index);
      return wide.removeOldest()!;
    });
    while (wide.size > 0) removed.push(wide.removeOldest()!);
    expect(new Set(removed).size).toBe(5000);
    const oldestOfParts = Array.from({ length: PARTS }, (_, part) => removed.filter((key) => partOf(key) === part));
    for (const keys of oldestOfParts) {
      const numbers = keys.map((key) => Number(key.split('_')[1]));
      expect(numbers).toEqual(numbers.toSorted((one, other) => one - other));
    }
    expect(wide.removeOldest()).toBeUndefined();
    wide.set('new', 1);
    expect(wide.removeOldest()).toBe('new');
  });

  it.each([
    ['addresses', 1.5, (index: number) => `edge_remote_address_10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`],
    ['IPv6 networks', 1.5, (index: number) => `edge_remote_address_2001:db8:${index.toString(16)}::`],
    ['texts of other scripts', 1.5, (index: number) => `shop_name_山田${index}`],
    ['digests of long keys', 1.5, (index: number) => `${'x'.repeat(300)}${index}`],
    // Not all of the characters that differ are read.
    ['users before a path of all', 16, (index: number) => `shop_user_u${index}_path_/checkout`],
  ])('with keys of %s has at most %d times the average in a part', (_, most, body) => {
    const sizes = new Array<number>(PARTS).fill(0);
    for (let index = 0; index < 30_000; index += 1) sizes[partOf(tableKey(`${body(index)}_1700000000`))]! += 1;
    expect(Math.max(...sizes) / (30_000 / PARTS)).toBeLessThan(most);
  });
});
