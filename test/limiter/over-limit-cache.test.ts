import fc from 'fast-check';
import { OverLimitCache } from '../../src/limiter/over-limit-cache';

describe('a full cache of keys over their limit', () => {
  it('counts a removed oldest key as expired if its window has ended, otherwise as evicted', () => {
    // Room for two keys of four letters.
    const cache = new OverLimitCache(250);
    cache.add('brie', 1, 101, 100);
    cache.add('long', 1, 1000, 100);
    cache.add('next', 1, 1000, 100);
    expect([cache.size, cache.expired, cache.evicted]).toEqual([2, 0, 1]);

    cache.add('soon', 1, 103, 101);
    expect([cache.size, cache.expired, cache.evicted]).toEqual([2, 0, 2]);
    cache.add('last', 1, 1000, 102);
    cache.add('more', 1, 1000, 103);
    expect([cache.size, cache.expired, cache.evicted]).toEqual([2, 1, 3]);
    expect(cache.isOver('soon', 1, 103)).toBe(false);
    expect(cache.isOver('last', 1, 103)).toBe(true);
  });
});

describe('a cache of keys over their limit', () => {
  /** The keys over their limit 1, the oldest first, in a cache with room for `room` keys of one letter. */
  class Model {
    readonly #room: number;
    keys: readonly string[] = [];
    evicted = 0;

    constructor(room: number) {
      this.#room = room;
    }

    add(key: string): void {
      this.remove(key);
      this.keys = [...this.keys, key];
      if (this.keys.length <= this.#room) return;
      this.keys = this.keys.slice(1);
      this.evicted += 1;
    }

    remove(key: string): void {
      this.keys = this.keys.filter((each) => each !== key);
    }
  }

  const letters = ['a', 'b', 'c', 'd', 'e', 'f'];
  const steps = fc.array(
    fc.record({ key: fc.constantFrom(...letters), action: fc.constantFrom('add', 'add', 'remove') }),
    { minLength: 10, maxLength: 40 },
  );

  it('evicts the key that was added first, where a key added again counts as new', () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 5 }), (all, room) => {
        const model = new Model(room);
        const cache = new OverLimitCache(room * 121);
        for (const { key, action } of all) {
          if (action === 'add') {
            model.add(key);
            cache.add(key, 1, 1000, 100);
          } else {
            model.remove(key);
            cache.remove(key);
          }
          expect([cache.size, cache.evicted]).toEqual([model.keys.length, model.evicted]);
        }
        expect(letters.filter((key) => cache.isOver(key, 1, 100))).toEqual(
          letters.filter((key) => model.keys.includes(key)),
        );
      }),
    );
  });
});

describe('the memory of a cache of keys over their limit', () => {
  it('is that of a digest for a long key, and long keys are kept apart', () => {
    const cache = new OverLimitCache(2 * (120 + 44));
    const long = 'x'.repeat(1_000_000);
    cache.add(`${long}1`, 1, 1000, 100);
    cache.add(`${long}2`, 1, 1000, 100);
    expect([`${long}1`, `${long}2`, `${long}3`].map((key) => cache.isOver(key, 1, 100))).toEqual([true, true, false]);
    cache.remove(`${long}1`);
    expect([`${long}1`, `${long}2`].map((key) => cache.isOver(key, 1, 100))).toEqual([false, true]);
    for (let key = 0; key < 10; key += 1) cache.add(`${long}_${key}`, 1, 1000, 100);
    expect(cache.size).toBe(2);
  });

  it('is two bytes per character of a key that has one outside Latin-1', () => {
    // Room for two keys, or for three of one byte per character.
    const cache = new OverLimitCache(3 * (120 + 101));
    for (const key of ['1', '2', '3']) cache.add('鍵'.repeat(100) + key, 1, 1000, 100);
    expect([cache.size, cache.evicted]).toEqual([2, 1]);
  });
});

describe('a cache of keys over their limit whose clock goes back', () => {
  it('starts again, so that a window that comes again is counted by the store', () => {
    const cache = new OverLimitCache(10_000);
    cache.add('live', 1, 200, 100);
    cache.add('ahead', 1, 8000, 7300);
    expect(cache.isOver('ahead', 1, 7301)).toBe(true);
    expect(cache.isOver('live', 1, 101)).toBe(false);
    expect(cache.isOver('ahead', 1, 7302)).toBe(false);
    expect([cache.size, cache.expired, cache.averageAccessTime]).toEqual([0, 2, 0]);
    cache.add('again', 1, 8000, 7302);
    expect(cache.isOver('again', 1, 7303)).toBe(true);
  });

  it('does not add a key that was looked up before, because its window may come again', () => {
    const cache = new OverLimitCache(10_000);
    expect(cache.isOver('ahead', 1, 7300)).toBe(false);
    expect(cache.isOver('live', 1, 100)).toBe(false);
    cache.add('ahead', 1, 8000, 7300);
    cache.add('live', 1, 200, 100);
    expect(cache.isOver('live', 1, 101)).toBe(true);
    expect(cache.size).toBe(1);
  });
});

it('a cache of keys over their limit keeps its keys when the store has taken seconds for one of them', () => {
  const cache = new OverLimitCache(10_000);
  for (const key of ['slow', 'quick']) expect(cache.isOver(key, 1, 100)).toBe(false);
  cache.add('quick', 1, 200, 100);
  expect(cache.isOver('quick', 1, 105)).toBe(true);
  cache.add('slow', 1, 200, 100);
  for (const key of ['slow', 'quick']) expect(cache.isOver(key, 1, 105)).toBe(true);
});

describe('a cache of keys over their limit with a maximum age', () => {
  it('lets the store be asked again for a key of that age, though its window has not ended', () => {
    const cache = new OverLimitCache(10_000, 60);
    expect(cache.isOver('key', 1, 100)).toBe(false);
    cache.add('key', 1, 86_400, 100);
    expect([cache.isOver('key', 1, 159), cache.holds('key', 1, 159)]).toEqual([true, true]);
    expect([cache.holds('key', 1, 160), cache.isOver('key', 1, 160)]).toEqual([false, false]);
    cache.add('key', 1, 86_400, 160);
    expect(cache.isOver('key', 1, 219)).toBe(true);
  });

  it('drops a key when its window ends before', () => {
    const cache = new OverLimitCache(10_000, 60);
    expect(cache.isOver('key', 1, 100)).toBe(false);
    cache.add('key', 1, 110, 100);
    expect([cache.isOver('key', 1, 109), cache.isOver('key', 1, 110)]).toEqual([true, false]);
  });
});
